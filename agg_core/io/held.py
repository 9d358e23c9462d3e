"""Files that are read together: the first are held in memory, others are opened once more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from agg_core.base.errors import InputError
from agg_core.base.report import Guess, printable
from agg_core.io.archives import Archive
from agg_core.io.contents import Data
from agg_core.io.source import RawRows, RawSource

__all__ = [
    "HELD_BYTES",
    "MOST_FILES",
    "Member",
    "Opener",
    "Shelf",
    "check_number",
    "files_in",
    "members_of",
]

HELD_BYTES = 64 << 20
"""Most bytes of content that many opened files hold together."""

MOST_FILES = 20_000

IntArray = npt.NDArray[np.int64]
Kind = TypeVar("Kind", bound=Hashable)
Opener = Callable[[Data, str], RawSource]
"""What opens content that is called so."""


@dataclass(frozen=True)
class Member:
    """One file of many: its name with the folders it lies in, its size, and what reads it."""

    name: str
    size: int
    read: Callable[[], Data]


def members_of(archive: Archive) -> list[Member]:
    """The files of an archive; reading one that cannot be read tells why."""

    def refuse(fault: InputError) -> Data:
        raise fault

    return [
        *(
            Member(entry.name, entry.size, partial(archive.read, entry))
            for entry in archive.entries
        ),
        *(Member(name, 0, partial(refuse, fault)) for name, fault in archive.unread),
    ]


def files_in(folder: Path) -> list[Path]:
    """The files of a folder and of those within it, in order, but for hidden ones.

    Raises
    ------
    InputError
        If one is a link that leads out of the folder, or the folder cannot be read.
    """

    def is_shown(path: Path) -> bool:
        return not any(part.startswith(".") for part in path.relative_to(folder).parts)

    try:
        shown = [path for path in sorted(folder.rglob("*")) if is_shown(path)]
        found, home = [path for path in shown if path.is_file()], folder.resolve()
        astray = (
            path for path in shown if path.is_symlink() and home not in path.resolve().parents
        )
        link = next(astray, None)
    except (OSError, RuntimeError) as error:
        raise InputError(
            f"{printable(folder.name)} cannot be read; check who may open it and its links.",
            code="file-not-opened",
        ) from error
    if link is not None:
        raise InputError(
            f"{printable(link.relative_to(folder).as_posix())} is a link that leads out of the "
            "folder; put the file itself there, or take the link away.",
            code="link-leads-out",
        )
    return found


def check_number(n_files: int, name: str) -> None:
    """Refuse no files, and more than are read together; ``name`` is what holds them.

    Raises
    ------
    InputError
        If there are none, or too many.
    """
    if n_files == 0:
        raise InputError(f"{name} holds no file; choose another one.", code="no-files")
    if n_files > MOST_FILES:
        raise InputError(
            f"{name} holds {n_files:,} files; at most {MOST_FILES:,} are read together.",
            code="too-many-files",
        )


def of_one_kind(
    kinds: Sequence[tuple[str, Kind]],
    refused: Mapping[str, str],
    likely: Sequence[Kind] = (),
    files: str = "",
) -> tuple[Kind, Guess]:
    """The kind that most files are of, and what to say of the others; ``kinds`` by their names.

    ``refused`` are files that are of none, by why; ``likely`` the kinds of those that count, if
    not all do; ``files`` what they are called.
    """
    usual = Counter(likely or [kind for _, kind in kinds]).most_common(1)[0][0]
    strange = "its columns are others than those of most files"
    refused = {**refused, **{name: strange for name, kind in kinds if kind != usual}}
    n_kept = sum(kind == usual for _, kind in kinds)
    name, why = next(iter(refused.items()), ("", ""))
    note = f"{printable(name)} is not: {why}" if refused else ""
    return usual, Guess(f"{n_kept:,} of {n_kept + len(refused):,}{files} read", (), note)


class Shelf:
    """Opens one file after the other, and holds no more of them than `HELD_BYTES`."""

    def __init__(self, opener: Opener) -> None:
        self._opener, self._held = opener, 0

    def open(self, member: Member, content: Data | None = None) -> RawSource:
        """The opened file, whose content may be at hand; beyond what is held, its first rows only.

        Raises
        ------
        InputError
            If it cannot be read.
        """

        def again() -> RawSource:
            return self._opener(member.read(), printable(member.name))

        opened = again() if content is None else self._opener(content, printable(member.name))
        if self._held + member.size <= HELD_BYTES:
            self._held += member.size
            return opened
        return _opened_again(opened, again)


def _opened_again(opened: RawSource, opener: Callable[[], RawSource]) -> RawSource:
    """A source that opens its file for each reading, and to tell the lines of its rows."""

    def stream(positions: Sequence[int]) -> Iterator[RawRows]:
        # Whoever keeps the rows' line numbers must not keep the content with them.
        at_hand: list[Callable[[IntArray], IntArray]] = []

        def line_numbers(rows: IntArray) -> IntArray:
            return at_hand[0](rows) if at_hand else _line_numbers(opener(), rows)

        try:
            for rows in opener().batches(positions):
                at_hand[:] = [rows.line_numbers]
                yield replace(rows, line_numbers=line_numbers)
        finally:
            at_hand.clear()

    return replace(opened, load=None, stream=stream, passing_over=None)


def _line_numbers(source: RawSource, rows: IntArray) -> IntArray:
    """Lines of rows of a file, which only a reading of all of it can tell."""
    *_, last = source.batches([0])
    return last.line_numbers(rows)
