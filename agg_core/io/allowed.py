"""Files and folders of this machine that its owner lets the app open: `FLOWS_FOLDERS` names them.

Nobody types a path: what lies directly within an allowed folder has a name there, and only what
has one can be opened. A link that leads out of its folder has none.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from agg_core.base.disk import folder_named, is_folder
from agg_core.base.errors import InputError
from agg_core.base.report import printable

__all__ = ["FLOWS_FOLDERS", "MOST_OFFERED", "allowed_folders", "allowed_source", "allowed_sources"]

FLOWS_FOLDERS = "FLOWS_FOLDERS"
"""The environment variable: folders, set apart as in PATH."""

MOST_OFFERED = 1_000
"""Files and folders that are offered at most."""


def allowed_folders() -> tuple[Path, ...]:
    """The folders that are allowed and there, links followed; none where nothing is said."""
    named = os.environ.get(FLOWS_FOLDERS, "").split(os.pathsep)
    found = (folder_named(name) for name in named if name.strip())
    return tuple(dict.fromkeys(path.resolve() for path in found if is_folder(path)))


def allowed_sources() -> Mapping[str, Path]:
    """What may be opened: the files and folders in each allowed folder, by "folder/name".

    Hidden ones and links that lead out are left out; where two folders are called alike, the later
    has a number.
    """
    found: dict[str, Path] = {}
    titles: dict[str, int] = {}
    for folder in allowed_folders():
        called = _as_text(folder.name)
        titles[called] = titles.get(called, 0) + 1
        number = titles[called]
        title = called if number == 1 else f"{called} ({number})"
        try:
            entries = sorted(folder.iterdir())
        except OSError:  # it may have gone, or be closed to us
            continue
        for entry in entries:
            if len(found) < MOST_OFFERED and _is_within(entry, folder):
                found.setdefault(f"{title}/{_as_text(entry.name)}", entry)
    return found


def allowed_source(name: str) -> Path:
    """The path behind a name of `allowed_sources`, as it is allowed now.

    Raises
    ------
    InputError
        If there is no such name.
    """
    path = allowed_sources().get(name)
    if path is None:
        raise InputError(
            f"{printable(name)} is not among the files that this server may open; choose another "
            "one.",
            code="source-not-allowed",
        )
    return path


def _as_text(name: str) -> str:
    """A name as it is shown; bytes of it that are no letters are question marks."""
    return name.encode("utf-8", "replace").decode("utf-8")


def _is_within(entry: Path, folder: Path) -> bool:
    """Whether a shown file or folder is really there, and no link that leads out."""
    try:
        there = entry.is_file() or entry.is_dir()
        real = entry.resolve()
    except (OSError, RuntimeError):
        return False
    return there and not entry.name.startswith(".") and folder in real.parents
