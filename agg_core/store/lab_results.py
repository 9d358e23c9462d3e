"""Results of the Lab that outlive a session: opened by the address, and not learned twice.

What the Lab learns from is made up, so that a result holds nothing of anybody: all sessions of a
server may see it. Its key is a digest of its settings, which give the same result each time.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from agg_core.base import version
from agg_core.base.errors import InputError
from agg_core.lab.experiments import LabResult, LabSettings
from agg_core.lab.teaching import TeachingResult, TeachingSettings
from agg_core.store.codec import load_lab, load_teaching
from agg_core.store.jobs import EXPERIMENT, TEACHING, Kind
from agg_core.store.runs import DAMAGE

__all__ = ["MOST_RESULTS", "KeptResult", "LabStore"]

MOST_RESULTS = 40
"""Results that are kept; one more and the one that was not looked at for longest goes."""

ABOUT = "about.json"
RESULT = "result"
KEY = re.compile(r"[0-9a-f]{32}")
LEFT_OVER_S = 3600.0
"""A copy that began so long ago was left by a process that ended in the middle of it."""

KINDS = MappingProxyType({kind.name: kind for kind in (EXPERIMENT, TEACHING)})
LOADS: MappingProxyType[str, Callable[[Path], LabResult | TeachingResult]] = MappingProxyType(
    {EXPERIMENT.name: load_lab, TEACHING.name: load_teaching}
)


@dataclass(frozen=True)
class KeptResult:
    """What is known of a result without opening it, and when it was made, UTC."""

    key: str
    kind: str
    title: str
    settings: LabSettings | TeachingSettings
    made: datetime


class LabStore:
    """The results of a folder, which need not exist yet; any number of processes may use it."""

    def __init__(self, folder: Path, most: int = MOST_RESULTS) -> None:
        self.folder = folder
        self.most = most

    @staticmethod
    def key_of(kind: Kind[Any, Any, Any], settings: LabSettings | TeachingSettings) -> str:
        """The key of the result of some settings, by this version of the learners."""
        text = json.dumps([version.__version__, kind.name, settings.to_dict()], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def keep(
        self,
        kind: Kind[Any, Any, Any],
        settings: LabSettings | TeachingSettings,
        title: str,
        result: Path,
    ) -> str:
        """Keep a copy of the folder of a result, whole or not at all; returns its key.

        Raises
        ------
        InputError
            If the disk refuses.
        """
        key = self.key_of(kind, settings)
        partial = self.folder / f".{key}.{secrets.token_hex(4)}"
        about = {
            "kind": kind.name, "title": title, "settings": settings.to_dict(), "made": time.time(),
        }  # fmt: skip
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            shutil.copytree(result, partial / RESULT)
            (partial / ABOUT).write_text(json.dumps(about), encoding="utf-8")
            self._put(partial, key)
        except OSError as fault:
            raise InputError(
                f"The result could not be kept ({fault.strerror or fault}); free space on the "
                "disk, or set FLOWS_HOME to a folder that can be written.",
                code="result-not-kept",
            ) from fault
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        self._clear(but=key)
        return key

    def _put(self, partial: Path, key: str) -> None:
        """Give a whole copy its name in place of what is there."""
        aside = self.folder / f".{key}.{secrets.token_hex(4)}"
        for last in (False, False, True):
            with suppress(OSError):
                os.replace(self.folder / key, aside)
            shutil.rmtree(aside, ignore_errors=True)
            try:
                os.replace(partial, self.folder / key)
                return
            except OSError:
                # Another process may have been faster: its result is of the same settings.
                with suppress(InputError):
                    self.about(key)
                    return
                if last:
                    raise

    def touch(self, key: str) -> None:
        """Note that a result was looked at."""
        if KEY.fullmatch(key):
            with suppress(OSError):
                os.utime(self.folder / key)

    def about(self, key: str) -> KeptResult:
        """What is known of a result.

        Raises
        ------
        InputError
            If there is none of that key, or it cannot be read.
        """
        if not KEY.fullmatch(key):
            raise _missing()
        try:
            found = json.loads((self.folder / key / ABOUT).read_text(encoding="utf-8"))
            kind = KINDS[found["kind"]]
            settings = kind.settings.from_dict(found["settings"])
            made = datetime.fromtimestamp(found["made"], UTC)
            return KeptResult(key, kind.name, str(found["title"]), settings, made)
        except DAMAGE as fault:
            raise _missing() from fault

    def load(self, key: str) -> LabResult | TeachingResult:
        """Open a result.

        Raises
        ------
        InputError
            If there is none of that key, or it cannot be read.
        """
        about = self.about(key)
        found = LOADS[about.kind](self.folder / key / RESULT)
        self.touch(key)
        return found

    def _clear(self, but: str) -> None:
        """Delete what was not looked at for longest, and copies that were never finished."""
        kept: list[tuple[float, Path]] = []
        with suppress(OSError):
            for each in self.folder.iterdir():
                changed = each.stat().st_mtime
                if KEY.fullmatch(each.name):
                    kept.append((changed, each))
                elif each.name.startswith(".") and time.time() - changed > LEFT_OVER_S:
                    shutil.rmtree(each, ignore_errors=True)
        for _, oldest in sorted(kept)[: max(len(kept) - self.most, 0)]:
            if oldest.name != but:
                shutil.rmtree(oldest, ignore_errors=True)


def _missing() -> InputError:
    return InputError(
        "This server has no such result of the Lab any more; run it again.", code="no-lab-result"
    )
