"""Opened files of many: the first are held in memory, the others are opened again to be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from agg_core.io.source import RawRows, RawSource

__all__ = ["HELD_BYTES", "Member", "Shelf"]

HELD_BYTES = 64 << 20
"""Most bytes of content that many opened files hold together."""

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Member:
    """One file of many: its name with the folders it lies in, its size, and what opens it."""

    name: str
    size: int
    open: Callable[[], RawSource]


class Shelf:
    """Opens one file after the other, and holds no more of them than `HELD_BYTES`."""

    def __init__(self) -> None:
        self._held = 0

    def open(self, member: Member) -> RawSource:
        """The opened file; beyond what is held, one that keeps nothing but its first rows.

        Raises
        ------
        InputError
            If it cannot be read.
        """
        opened = member.open()
        if self._held + member.size <= HELD_BYTES:
            self._held += member.size
            return opened
        return _opened_again(opened, member.open)


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

    return replace(opened, load=None, stream=stream)


def _line_numbers(source: RawSource, rows: IntArray) -> IntArray:
    """Lines of rows of a file, which only a reading of all of it can tell."""
    *_, last = source.batches([0])
    return last.line_numbers(rows)
