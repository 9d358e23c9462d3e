"""A panel: a few of the people who were counted, whose moves are known.

A panel may be biased: people of one area are likelier to be in it than those of another. How much
likelier is learned from the counts, by where the people of the panel live (`area_weights`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from agg_core.base.errors import InputError

__all__ = ["Panel", "allowed", "area_weights", "areas_of", "homes_of", "panel_of"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

PULLS = np.geomspace(0.1, 1e5, 61)
"""People of the panel by which areas are pulled to what all have in common, to try."""

PER_AREA = 2
"""People of a panel for each area that is told apart."""

MOST_AREAS = 16


@dataclass(frozen=True, eq=False)
class Panel:
    """Moves of K people who are among those counted: n moves, each within a pair of counts.

    Attributes
    ----------
    pair : (n,) number of the pair, in ascending order
    origin, dest : (n,) states before and after; a person who stays has both alike
    person : (n,) number of the person
    weights : (K,) what each person counts for, a mean of 1
    among : whether these people are known to be among those counted
    """

    pair: IntArray
    origin: IntArray
    dest: IntArray
    person: IntArray
    weights: FloatArray
    among: bool = True

    @property
    def n_moves(self) -> int:
        """Moves, and stays, that are known."""
        return len(self.pair)

    @property
    def n_people(self) -> int:
        """People of whom a move is known."""
        return len(np.unique(self.person))

    def take(self, rows: IntArray, n_pairs: int) -> Panel:
        """The moves within some of ``n_pairs`` pairs, ``rows`` (m,), which are numbered anew."""
        if len(np.unique(rows)) < len(rows):
            # Pairs that are drawn several times have their people each time.
            counts = np.bincount(self.pair, minlength=n_pairs)
            starts = np.cumsum(counts) - counts
            of = counts[rows]
            kept = np.repeat(starts[rows] - (np.cumsum(of) - of), of) + np.arange(of.sum())
            return self._of(kept.astype(np.int64), np.repeat(np.arange(len(rows)), of))
        number = np.full(n_pairs, -1)
        number[rows] = np.arange(len(rows))
        mine = number[self.pair]
        kept = np.flatnonzero(mine >= 0)
        kept = kept[np.argsort(mine[kept], kind="stable")]
        return self._of(kept, mine[kept])

    def _of(self, kept: IntArray, pair: IntArray) -> Panel:
        return replace(
            self, pair=pair.astype(np.int64), origin=self.origin[kept], dest=self.dest[kept],
            person=self.person[kept],
        )  # fmt: skip

    def some(self, kept: npt.NDArray[np.bool_]) -> Panel:
        """Some of the moves, by a mask (n,)."""
        return self._of(np.flatnonzero(kept), self.pair[kept])

    def moves(
        self, group: IntArray, n_groups: int, n_states: int, *, weighed: bool = False
    ) -> FloatArray:
        """Moves (G, d, d) by the ``group`` (P,) of their pair, each as it is or weighed."""
        d = n_states
        at = (group[self.pair] * d + self.origin) * d + self.dest
        weights = self.weights[self.person] if weighed else None
        found = np.bincount(at, weights, n_groups * d * d)
        return found.astype(np.float64).reshape(n_groups, d, d)

    def at_ends(self, n_pairs: int, n_states: int) -> tuple[FloatArray, FloatArray]:
        """People of the panel in each state before and after each pair, (P, d) both."""
        sides = (self.origin, self.dest)
        before, after = (
            np.bincount(self.pair * n_states + side, minlength=n_pairs * n_states)
            .astype(np.float64)
            .reshape(n_pairs, n_states)
            for side in sides
        )
        return before, after


def panel_of(states: IntArray, first: IntArray) -> Panel:
    """A panel of people's ``states`` (T, K) at T moments, -1 where one is not known.

    ``first`` (P,) are the first moments of pairs; the second is the moment after.

    Raises
    ------
    InputError
        If no state of two successive moments is known of anybody.
    """
    before, after = states[first], states[first + 1]
    pair, person = np.nonzero((before >= 0) & (after >= 0))
    if not len(pair):
        raise InputError(
            "Nobody of the panel is seen at two successive moments of the counts; give people who "
            "were there at the same time and in the same cells.",
            code="panel-elsewhere",
        )
    return Panel(
        pair.astype(np.int64), before[pair, person], after[pair, person], person.astype(np.int64),
        np.ones(states.shape[1]),
    )  # fmt: skip


def allowed(panel: Panel, before: FloatArray, after: FloatArray) -> npt.NDArray[np.bool_]:
    """Which moves (n,) can be those of people who were counted.

    Of more people of a panel than were counted in a cell, before or after (P, d), the last ones are
    not among them.
    """
    kept = np.ones(panel.n_moves, dtype=bool)
    for side, counts in ((panel.origin, before), (panel.dest, after)):
        at = panel.pair * counts.shape[1] + side
        mine = np.flatnonzero(kept)
        order = mine[np.argsort(at[mine], kind="stable")]
        _, start, size = np.unique(at[order], return_index=True, return_counts=True)
        rank = np.arange(len(order)) - np.repeat(start, size)
        # A count of 3 that was rounded on its way is still one of 3.
        kept[order] &= rank < np.floor(counts.ravel()[at[order]] + 1e-6)
    return kept


def homes_of(states: IntArray, night: npt.NDArray[np.bool_]) -> IntArray:
    """The cell (K,) that each person is in most at ``night`` (T,), else where they are first.

    ``states`` (T, K) are -1 where nothing is known, and so is a home.
    """
    homes = np.full(states.shape[1], -1)
    for person, track in enumerate(states.T):
        at_night = track[night & (track >= 0)]
        known = track[track >= 0]
        if len(at_night):
            homes[person] = np.bincount(at_night).argmax()
        elif len(known):
            homes[person] = known[0]
    return homes


def areas_of(people: FloatArray, places: FloatArray | None, n_panel: int) -> IntArray:
    """The area (d,) of each cell, so that areas hold about as many of ``people`` (d,).

    Cells are halved across the longer side of their ``places`` (d, 2) as often as a panel of so
    many people can tell areas apart. Without places each cell is an area.
    """
    if places is None:
        return np.arange(len(people))
    area = np.zeros(len(people), dtype=np.int64)
    n_areas = 1
    while 2 * n_areas <= min(MOST_AREAS, max(n_panel // PER_AREA, 1)):
        halved = np.zeros_like(area)
        for number in range(n_areas):
            mine = np.flatnonzero(area == number)
            if not len(mine):
                continue
            wide = np.argmax(np.ptp(places[mine], axis=0))
            order = mine[np.argsort(places[mine, wide], kind="stable")]
            running = np.cumsum(people[order] + 1e-9)
            halved[order] = running > running[-1] / 2
        area = 2 * area + halved
        n_areas *= 2
    return area


def area_weights(n_panel: FloatArray, n_people: FloatArray) -> FloatArray:
    """What a person of the panel counts for in each area (A,), a mean of 1 over the panel.

    ``n_panel`` (A,) people of the panel live in each area, and ``n_people`` (A,) people who were
    counted. The chance to be in the panel is gamma distributed over areas, so that those of the
    panel in an area are negative binomial. Its shape is how strongly areas are pulled to what all
    have in common: each of `PULLS` counts by how likely it makes the panel, and a weight is one
    over the chance that is expected then.
    """
    total = float(n_people.sum())
    if total <= 0 or n_panel.sum() == 0:
        return np.ones(len(n_panel))
    expected = np.maximum(n_people, 1e-9) * n_panel.sum() / total
    logs = np.array([_log_chance(n_panel, expected, pull) for pull in PULLS])
    likely = np.exp(logs - logs.max())
    each = (expected + PULLS[:, None]) / (n_panel + PULLS[:, None])
    weights = likely @ each / likely.sum()
    return np.asarray(weights * n_panel.sum() / (weights @ n_panel))


def _log_chance(seen: FloatArray, expected: FloatArray, pull: float) -> float:
    """Of as many people as were seen in areas where so many are expected, negative binomial."""
    found = gammaln(seen + pull) - gammaln(pull) - gammaln(seen + 1)
    found += pull * np.log(pull / (pull + expected)) + seen * np.log(expected / (pull + expected))
    return float(found.sum())
