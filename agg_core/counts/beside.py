"""What is known beside counts, as learners take it: moves of a panel, and trips of an old matrix.

People of a panel are among those who were counted. What they did is known, so that they are taken
from the counts, and the others are learned from the rest (`apart_from_panel`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from agg_core.counts.erring import ErringPairs
from agg_core.counts.old_trips import OldTrips
from agg_core.counts.pair_tables import PairFlows
from agg_core.counts.pairs import CountPairs
from agg_core.counts.panel import Panel, allowed
from agg_core.counts.rows import Strength

__all__ = [
    "Evidence",
    "Known",
    "apart_from_panel",
    "evidence_beside",
    "joined_flows",
    "moved_again",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

LEAST_CHANCE = 1e-300


class Known(NamedTuple):
    """Pairs of the others, and moves of the panel that were taken from them, None without any.

    ``n_beyond`` moves are of more people than were counted, which are not taken.
    """

    pairs: CountPairs
    panel: Panel | None
    n_beyond: int


def apart_from_panel(pairs: CountPairs) -> Known:
    """Pairs without the people of their panel, and these.

    Nobody is taken from counts that err, or from scaled ones: who of the panel was counted is not
    known there.
    """
    panel = pairs.panel
    if panel is None or not panel.among or isinstance(pairs, ErringPairs):
        return Known(replace(pairs, panel=None), None, 0)
    kept = allowed(panel, pairs.before, pairs.after)
    known = panel.some(kept)
    before, after = known.at_ends(pairs.n_pairs, pairs.n_states)
    crossings = pairs.crossings
    if crossings is not None:
        crossings = crossings.without(known.pair, known.origin, known.dest)
    others = replace(
        pairs, panel=None, crossings=crossings, before=np.maximum(pairs.before - before, 0.0),
        after=np.maximum(pairs.after - after, 0.0),
    )  # fmt: skip
    return Known(others, known, int((~kept).sum()))


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a learner adds to the counts: weighed moves (H, d, d) of a panel, and old trips.

    ``people`` (H, d) are in each cell at each time of day; ``weight`` is that of the trips.
    """

    moves: FloatArray | None
    trips: OldTrips | None
    people: FloatArray
    weight: float

    def expected(self, transmats: FloatArray, moves: FloatArray) -> FloatArray:
        """What is to be added to ``moves`` (H, d, d) that counts make expected by ``transmats``.

        Of an old matrix they are trips, with as many stays as leave the share who go as it is: that
        of the moves over the day, by ``transmats`` from time to time. Were it theirs alone, much
        weight would keep it where it began.
        """
        found = np.zeros(transmats.shape) if self.moves is None else self.moves.copy()
        if self.trips is not None:
            own = np.arange(transmats.shape[-1])
            there = self.people[:, :, None] * transmats
            stay, seen = there[:, own, own], moves[:, own, own]
            there[:, own, own] = 0.0
            gone = there.sum(axis=-1)
            trips = self.weight * self.trips.shared(there)
            odds = _over(transmats[:, own, own], 1 - transmats[:, own, own], 0.0)
            by_counts = _over(seen.sum(axis=0), (moves.sum(axis=-1) - seen).sum(axis=0), np.nan)
            level = _over(by_counts, _over(stay.sum(axis=0), gone.sum(axis=0), np.nan), np.nan)
            odds = odds * np.where(np.isfinite(level) & (level > 0), level, 1.0)
            trips[:, own, own] = trips.sum(axis=-1) * odds
            found += trips
        return found

    def log_likelihood(self, transmats: FloatArray) -> tuple[float, FloatArray]:
        """Log-likelihood of transitions (H, d, d) by what is known beside, and its slope."""
        value, slope = 0.0, np.zeros(transmats.shape)
        if self.moves is not None:
            some = self.moves > 0
            chances = np.maximum(transmats[some], LEAST_CHANCE)
            value += float((self.moves[some] * np.log(chances)).sum())
            slope[some] += self.moves[some] / chances
        if self.trips is not None:
            likely, by_trips = self.trips.log_likelihood(transmats, self.people)
            value += self.weight * likely
            slope += self.weight * by_trips
        return value, slope


def _over(a: FloatArray, b: FloatArray, otherwise: float) -> FloatArray:
    return np.asarray(np.divide(a, b, out=np.full(a.shape, otherwise), where=b > 0))


def evidence_beside(pairs: CountPairs, strength: Strength) -> tuple[CountPairs, Evidence | None]:
    """Pairs to learn from, and what is known beside them as a strength weighs it.

    A panel that counts for nothing is a part of the counts, like everybody.
    """
    panel, trips = pairs.panel, pairs.old_trips
    weighs_panel = panel is not None and panel.n_moves > 0 and strength.panel > 0
    weighs_trips = trips is not None and strength.matrix > 0
    plain = replace(pairs, panel=None, old_trips=None)
    if not (weighs_panel or weighs_trips):
        return plain, None
    n_slots = len(pairs.slots) if strength.by_time else 1
    moves, others = None, plain
    if weighs_panel:
        assert panel is not None
        slot = pairs.slot if strength.by_time else np.zeros_like(pairs.slot)
        moves = strength.panel * panel.moves(slot, n_slots, pairs.n_states, weighed=True)
        others = replace(apart_from_panel(pairs).pairs, old_trips=None)
    people = pairs.people
    if not strength.by_time:
        people = people.sum(axis=0, keepdims=True)
    return others, Evidence(moves, trips if weighs_trips else None, people, strength.matrix)


def joined_flows(flows: PairFlows, panel: Panel) -> PairFlows:
    """Flows of single pairs with the moves of a panel added."""
    d = flows.n_states
    pair = np.concatenate([flows.pair, panel.pair])
    at = np.concatenate([flows.at, panel.origin * d + panel.dest])
    people = np.concatenate([flows.people, np.ones(panel.n_moves)])
    key, number = np.unique(pair * d**2 + at, return_inverse=True)
    summed = np.bincount(number, people, len(key)).astype(np.float64)
    return PairFlows(d, key // d**2, key % d**2, summed)


def moved_again(origin: IntArray, moves: IntArray, rng: np.random.Generator) -> IntArray:
    """Dests (n,) of people of a panel from ``origin`` (n,), who make some of ``moves`` (d, d).

    Each of a cell is as likely to be one of them; there must be enough.
    """
    dest = np.empty_like(origin)
    for cell in np.unique(origin):
        mine = np.flatnonzero(origin == cell)
        goes = np.repeat(np.arange(moves.shape[1]), moves[cell])
        dest[mine] = rng.choice(goes, size=len(mine), replace=False)
    return dest
