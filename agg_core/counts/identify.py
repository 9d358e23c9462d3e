"""Whether counts can tell flows apart at all, before anything is learned from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from agg_core.counts.local import Nearby
from agg_core.counts.pairs import CountPairs

__all__ = ["Identifiability", "identifiability", "near_identifiability"]

FloatArray = npt.NDArray[np.float64]

ALIKE = 0.995
"""Correlation over pairs from which on two cells are taken to rise and fall together."""

MOST_NAMED = 20
AT_ONCE = 500
LOOKED_AT = 100
"""Cells that stand for all where moves are within a reach."""

LEAST_SINGULAR = 1e-9


@dataclass(frozen=True)
class Identifiability:
    """What the counts can say of the transitions, without a prior.

    Attributes
    ----------
    n_states : cells, and outside if there is one, d
    n_pairs : pairs of successive counts
    rank : independent patterns among the first counts; flows are told apart if it is d
    condition : largest over smallest singular value of the patterns that there are
    alike : pairs of cells whose counts rise and fall together, so that what leaves one could as
        well have left the other
    has_outside : whether the last state is outside of all cells
    within_reach : whether states are those within reach of a single one, patterns those among their
        counts: of the one of which these tell least
    """

    n_states: int
    n_pairs: int
    rank: int
    condition: float
    alike: tuple[tuple[int, int], ...]
    has_outside: bool = False
    within_reach: bool = False

    @property
    def identified(self) -> bool:
        """Whether the counts alone fix the mean of every flow."""
        return self.rank >= self.n_states

    @property
    def refusal(self) -> str:
        """Why nothing is learned without a prior, in one sentence."""
        return (
            f"Without a prior these counts do not fix the flows, as {self._patterns}; give the "
            "prior a weight, load more days, or use larger cells."
        )

    @property
    def _patterns(self) -> str:
        pairs = f"{self.n_pairs:,} pair{'s' if self.n_pairs != 1 else ''} of successive counts"
        found = f"{self.rank:,} independent pattern{'s' if self.rank != 1 else ''}"
        return f"{pairs} hold {found} and {self._unknown} need {self.n_states:,}"

    @property
    def _unknown(self) -> str:
        outside = " and the outside" if self.has_outside else ""
        near = " within reach of one" if self.within_reach else ""
        return f"{self.n_states - self.has_outside:,} cells{near}{outside}"

    @property
    def sentence(self) -> str:
        """What that means, in plain words."""
        pairs = f"{self.n_pairs:,} pair{'s' if self.n_pairs != 1 else ''} of successive counts"
        if not self.identified:
            return (
                f"These counts alone do not fix the flows, as {self._patterns}: what is learned "
                "rests on the prior. Load more days, or use larger cells."
            )
        words = f"The counts can tell the flows apart: {pairs} for {self._unknown}"
        if not self.alike:
            return words + "."
        number = f"{len(self.alike)}{' or more' if len(self.alike) == MOST_NAMED else ''}"
        rise = f"{number} pairs of cells rise and fall"
        if len(self.alike) == 1:
            rise = "1 pair of cells rises and falls"
        return (
            f"{words}, but {rise} together, and who left one of them could as well have left the "
            "other."
        )


def identifiability(pairs: CountPairs) -> Identifiability:
    """Rank and condition of the first counts against the unknown rows.

    The means of the next counts are linear in the transitions, z = y A: the pairs tell all d rows
    apart only if the first counts (P, d) have rank d. Columns are compared about their scale, so
    that small cells count like large ones. The spread of the counts tells a little more (see
    `agg_core.counts.dense`), but of how many move rather than of who goes where.
    """
    rank, condition = _patterns(pairs.before)
    return Identifiability(
        pairs.n_states, pairs.n_pairs, rank, condition, _alike(pairs.before), pairs.has_outside
    )


def near_identifiability(pairs: CountPairs, near: Nearby) -> Identifiability:
    """What the counts can say of moves within a reach: of the cell of which they say least.

    Means of the next counts of a cell are told by the counts of those that people come from into
    it. Cells are compared on a sample of them; a state that people come from anywhere into, the
    outside, is not among them.
    """
    of = near.pattern
    n_cells = of.n_states - pairs.has_outside
    sample = np.unique(np.linspace(0, n_cells - 1, min(n_cells, LOOKED_AT)).astype(np.int64))
    chosen = np.isin(of.dest, sample)
    origins = {cell: [cell] for cell in sample.tolist()}
    for origin, dest in zip(of.origin[chosen].tolist(), of.dest[chosen].tolist(), strict=True):
        origins[dest].append(origin)
    found = [(len(those), *_patterns(pairs.before[:, those])) for those in origins.values()]
    n, rank, condition = max(found, key=lambda each: (each[0] - each[1], each[2]))
    alike = _alike(pairs.before)
    return Identifiability(n, pairs.n_pairs, rank, condition, alike, pairs.has_outside, True)


def _patterns(y: FloatArray) -> tuple[int, float]:
    """The rank of counts (P, d) about their scale, and the condition of the patterns there are."""
    scale = np.sqrt((y**2).sum(axis=0))
    values = np.linalg.svd(y / np.where(scale > 0, scale, 1.0), compute_uv=False)
    seen = values > LEAST_SINGULAR * max(values.max(initial=0.0), 1e-300) * max(y.shape)
    rank = int(seen.sum())
    return rank, float(values[0] / values[rank - 1]) if rank else np.inf


def _alike(y: FloatArray) -> tuple[tuple[int, int], ...]:
    """Cells whose changes about their mean are nearly in proportion, at most `MOST_NAMED` pairs."""
    spread = y - y.mean(axis=0)
    size = np.sqrt((spread**2).sum(axis=0))
    moves = np.flatnonzero(size > 0)
    if len(y) < 3 or len(moves) < 2:
        return ()
    unit = spread[:, moves] / size[moves]
    named: list[tuple[int, int]] = []
    # Some at a time, as all correlations of thousands of cells would be a table of gigabytes.
    for first in range(0, len(moves), AT_ONCE):
        close = unit[:, first : first + AT_ONCE].T @ unit > ALIKE
        i, j = np.nonzero(np.triu(close, first + 1))
        named += zip(moves[first + i].tolist(), moves[j].tolist(), strict=True)
        if len(named) >= MOST_NAMED:
            break
    return tuple(named[:MOST_NAMED])
