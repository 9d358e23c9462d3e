"""Flow tables of single pairs of counts, of which most entries are nobody."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from agg_core.base.moves import (
    as_moves,
    ends_of,
    entries,
)
from agg_core.tables.ensemble import thinned

__all__ = ["GRAIN", "MOST_ENTRIES", "PairFlows", "PairTables"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

GRAIN = 0.05
"""People below which a flow of a single pair is kept as none or as so many."""

MOST_ENTRIES = 5_000_000
"""Flows of single pairs, some 20 bytes each, above which they are not kept."""

TURN = (5**0.5 - 1) / 2
"""Part of a grain that each table begins further on: multiples of it lie evenly (Weyl)."""


@dataclass(frozen=True)
class PairFlows:
    """Flows of P pairs between d states: n of them, each with its pair, its states and people.

    ``at`` (n,) is the origin times d plus the dest, ``pair`` (n,) a number, ``people`` (n,).
    """

    n_states: int
    pair: IntArray
    at: IntArray
    people: FloatArray

    def summed(self, group: IntArray) -> tuple[IntArray, FloatArray]:
        """Sums by group (P,) of pairs and by states; pairs of groups below 0 are left out.

        Gives (m,) keys in order, each the group times d squared plus ``at``, and people.
        """
        mine = group[self.pair]
        some = mine >= 0
        keys, number = np.unique(mine[some] * self.n_states**2 + self.at[some], return_inverse=True)
        return keys, np.bincount(number, self.people[some], len(keys)).astype(np.float64)


class PairTables:
    """Takes in the tables (d, d) of pairs one after the other, and keeps what is not nobody.

    Tables may be sparse.
    """

    def __init__(self, n_states: int, *, grain: float = GRAIN, most: int = MOST_ENTRIES) -> None:
        self.n_states, self.grain, self.most = n_states, grain, most
        self.n = 0
        self.parts: list[tuple[IntArray, IntArray, FloatArray]] | None = []

    def add(self, pair: int, table: npt.NDArray[np.number] | sparse.csr_array) -> None:
        """Take in people from each state to each; more of the same pair are added to these.

        Entries below a grain become nobody or a whole grain, so that sums of neighbours stay right;
        where a table begins with that differs from pair to pair, so that sums over pairs do, too.
        """
        if self.parts is None:
            return
        flows = as_moves(table)
        people = entries(flows)
        if self.grain > 0:
            people = thinned(people, self.grain, pair * TURN % 1 - 0.5)
        some = people != 0
        origin, dest = ends_of(flows, some)
        self.n += len(origin)
        self.parts.append((np.full(len(origin), pair), origin * self.n_states + dest, people[some]))
        if self.n > self.most:
            self.parts = None

    def made(self) -> PairFlows | None:
        """The flows; None where there are too many."""
        if self.parts is None:
            return None
        pair, at, people = (
            np.concatenate([np.zeros(0, dtype=kind), *parts])
            for parts, kind in zip(
                zip(*self.parts, strict=True) if self.parts else ((), (), ()),
                (np.int64, np.int64, np.float64),
                strict=True,
            )
        )
        return PairFlows(self.n_states, pair, at, people)
