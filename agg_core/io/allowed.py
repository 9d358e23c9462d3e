"""Files and folders of this machine that its owner lets the app open: `FLOWS_FOLDERS` names them.

Nobody types a path: what lies directly within an allowed folder has a name there, and only what
has one can be opened. A link that leads out of its folder has none.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

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
    found = (Path(name).expanduser() for name in named if name.strip())
    return tuple(dict.fromkeys(path.resolve() for path in found if path.is_dir()))


def allowed_sources() -> Mapping[str, Path]:
    """What may be opened: the files and folders in each allowed folder, by "folder/name".

    Hidden ones and links that lead out are left out; where two folders are called alike, the later
    has a number.
    """
    found: dict[str, Path] = {}
    titles: dict[str, int] = {}
    for folder in allowed_folders():
        titles[folder.name] = titles.get(folder.name, 0) + 1
        number = titles[folder.name]
        title = folder.name if number == 1 else f"{folder.name} ({number})"
        try:
            entries = sorted(folder.iterdir())
        except OSError:  # it may have gone, or be closed to us
            continue
        for entry in entries:
            if len(found) < MOST_OFFERED and _is_within(entry, folder):
                found[f"{title}/{entry.name}"] = entry
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


def _is_within(entry: Path, folder: Path) -> bool:
    """Whether a shown file or folder is really there, and no link that leads out."""
    try:
        there = entry.is_file() or entry.is_dir()
        real = entry.resolve()
    except (OSError, RuntimeError):
        return False
    return there and not entry.name.startswith(".") and folder in real.parents
