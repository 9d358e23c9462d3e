"""How sure flows from counts are: a parametric bootstrap of the error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from agg_core.base.checkpoints import checkpoints
from agg_core.base.relay import last_of
from agg_core.counts.choosing import DENSE, DRAWN, learn_flows, most_iterations
from agg_core.counts.crossings import met_by_gates, varied_by_gates
from agg_core.counts.erring import ErringPairs
from agg_core.counts.filling import sums_by
from agg_core.counts.pair_tables import PairFlows, PairTables
from agg_core.counts.pairs import CountPairs
from agg_core.counts.posterior import QUICK, happened_flows
from agg_core.counts.rows import Strength
from agg_core.counts.smoothing import expected_people
from agg_core.counts.state import FlowState
from agg_core.counts.worlds import simulated_world, with_movement
from agg_core.tables.certainty import RootErrors, varied_rows

__all__ = ["flows_by_slot", "people_by_slot", "replicates"]

FloatArray = npt.NDArray[np.float64]

REPLICATE_ITERATIONS = {
    (DRAWN, False): 20, (DRAWN, True): 20, (DENSE, False): 60, (DENSE, True): 20
}  # fmt: skip
"""Most iterations in a simulated world, by learner and whether it learns by time of day."""

PLAIN = 2
"""Replicates whose people move just as was learned, and which tell how others vary."""


def flows_by_slot(pairs: CountPairs, transmats: FloatArray) -> FloatArray:
    """People from each state to each at every time of day (H, d, d), a sum over the days."""
    return np.asarray(people_by_slot(pairs, transmats)[:, :, None] * transmats)


def people_by_slot(pairs: CountPairs, transmats: FloatArray) -> FloatArray:
    """People at the beginning of the pairs of each time of day (H, d), a sum over the days.

    Where counts err it is what all of them tell, with transitions (H, d, d) or (1, d, d).
    """
    return sums_by(pairs.slot, len(pairs.slots), expected_people(pairs, transmats))


def replicates(
    pairs: CountPairs,
    shape: FloatArray,
    transmats: FloatArray,
    learner: str,
    strength: Strength,
    n: int,
    *,
    expansion: float = 1.0,
    movement: float = 1.0,
    others: Sequence[Strength] = (),
    start: FlowState | None = None,
    by_pair: Callable[[PairFlows, PairFlows], None] | None = None,
    random_state: int | np.random.Generator | None = None,
) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
    """Flows (H, d, d) of ``n`` simulated worlds: who moved, and two estimates of it.

    These are the flows that happened, those that are usual by what was learned there, and what
    happened as it is estimated from what was learned and from both counts (`happened_flows`). In
    each world the people of every first count move by chances near ``transmats``; from the first
    and the next counts, and nothing else, transitions are learned as the real ones were, with the
    same ``strength``, or each with one of ``others`` in turn, those that may have been chosen as
    well (a parametric bootstrap, of the choice too). So the difference holds what counts do not
    tell, the learner's own bias and noise, and chance in who moves; not that people may follow
    other laws than these. The chances of the first `PLAIN` worlds are ``transmats``, which are
    smoother than those of real people: those of a later one differ from them as those worlds
    differed from what was learned there. Where there are gates, chances to pass them differ from
    ``transmats`` in all worlds (`agg_core.counts.crossings.varied_by_gates`).

    Each one who was counted stands for ``expansion`` people, of whom the others move on their own
    by the same chances; flows are those of all. What is learned in a world is corrected by the
    factor ``movement`` as the real transitions were (`agg_core.counts.worlds.movement_factor`).

    ``by_pair`` is told who moved within each pair of a world, and what happened there as it is
    estimated, unless these flows are too many to keep.
    """
    people, d = expected_people(pairs, transmats), pairs.n_states
    most = REPLICATE_ITERATIONS[learner, strength.by_time]
    if isinstance(pairs, ErringPairs):
        most = most_iterations(pairs, learner, strength)
    seen, seen_then = RootErrors((d, d)), RootErrors((len(pairs.slots), d, d))
    learned_in = _Learning(
        pairs, shape, people, learner, most, start, expansion, movement, by_pair is not None
    )
    chances = np.random.default_rng(random_state).spawn(n)

    def worlds(numbers: range) -> Iterator[_World]:
        for number in numbers:
            # Streams of their own, so that who moves does not hang on what else is drawn.
            draws, other = chances[number].spawn(2)
            rows = transmats
            if number >= PLAIN:
                rows = varied_rows(rows, flows_by_slot(pairs, rows).sum(axis=0)[None], seen, other)
            if number >= PLAIN and len(rows) > 1:
                rows = varied_rows(rows, flows_by_slot(pairs, rows), seen_then, other)
            if pairs.crossings is not None:
                rows = varied_by_gates(pairs, rows, chances[number].spawn(1)[0])
            taken = others[number % len(others)] if others else strength
            yield _World(rows, taken, chances[number], draws)

    # The first ones tell how those after them vary.
    for numbers in (range(min(PLAIN, n)), range(PLAIN, n)):
        for found in checkpoints().each(
            f"worlds from {numbers.start}", learned_in, worlds(numbers)
        ):
            if numbers.start < PLAIN:
                seen.add(found.happened.sum(axis=0), found.learned.sum(axis=0))
                seen_then.add(found.happened, found.learned)
            if by_pair is not None and found.moved is not None and found.estimate is not None:
                by_pair(found.moved, found.estimate)
            yield found.of_all, expansion * found.learned, expansion * found.told


@dataclass(frozen=True)
class _World:
    """Transitions by which people move, the strength to learn with, and the chances.

    These are for who moves and how it is learned, and for what happened and who is not counted.
    """

    rows: FloatArray
    strength: Strength
    moving: np.random.Generator
    telling: np.random.Generator


@dataclass(frozen=True)
class _Found:
    """Flows (H, d, d) of a world: of those who were counted, of all, learned, and as estimated.

    Those within each pair are ``moved`` and ``estimate``, None unless asked for.
    """

    happened: FloatArray
    of_all: FloatArray
    learned: FloatArray
    told: FloatArray
    moved: PairFlows | None
    estimate: PairFlows | None


@dataclass(frozen=True)
class _Learning:
    """What is learned from a world, and how."""

    pairs: CountPairs
    shape: FloatArray
    people: FloatArray
    learner: str
    most: int
    start: FlowState | None
    expansion: float
    movement: float
    keep_pairs: bool

    def __call__(self, world: _World) -> _Found:
        rows, uncounted = world.rows, self.expansion - 1
        kept = PairTables(self.pairs.n_states, grain=0.0) if self.keep_pairs else None
        happened, pairs = simulated_world(self.pairs, self.people, rows, world.moving, kept)
        steps = learn_flows(
            pairs, self.shape, self.learner, world.strength, n_iter=self.most, start=self.start,
            random_state=world.moving,
        )  # fmt: skip
        last = last_of(steps)
        learned = met_by_gates(pairs, with_movement(last.transmats, self.movement))
        of_all = happened
        if uncounted > 0:
            of_all = happened + world.moving.poisson(uncounted * flows_by_slot(pairs, rows))
        told = happened_flows(
            pairs, learned, effort=QUICK, keep_pairs=self.keep_pairs, random_state=world.telling
        )
        moved = estimate = None
        if kept is not None:
            if uncounted > 0:
                _add_uncounted(kept, pairs, rows, uncounted, world.telling)
            moved, estimate = kept.made(), told.by_pair
        if estimate is not None:
            estimate = replace(estimate, people=self.expansion * estimate.people)
        return _Found(happened, of_all, flows_by_slot(pairs, learned), told.flows, moved, estimate)


def _add_uncounted(
    kept: PairTables,
    pairs: CountPairs,
    transmats: FloatArray,
    each: float,
    rng: np.random.Generator,
) -> None:
    """Add those who were not counted, ``each`` per person, moving within each pair by chance."""
    people = each * np.maximum(expected_people(pairs, transmats), 0.0)
    for p, which in enumerate(pairs.which(transmats)):
        kept.add(p, rng.poisson(people[p][:, None] * transmats[which]))
