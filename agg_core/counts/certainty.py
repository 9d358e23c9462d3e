"""How sure flows from counts are: a parametric bootstrap of the error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from agg_core.base.engine import current
from agg_core.counts.choosing import DENSE, DRAWN, learn_flows, most_iterations
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
"""Replicates whose people move just as was learned."""


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
    differed from what was learned there.

    Each one who was counted stands for ``expansion`` people, of whom the others move on their own
    by the same chances; flows are those of all. What is learned in a world is corrected by the
    factor ``movement`` as the real transitions were (`agg_core.counts.worlds.movement_factor`).

    ``by_pair`` is told who moved within each pair of a world, and what happened there as it is
    estimated, unless these flows are too many to keep.
    """
    rng = np.random.default_rng(random_state)
    # A stream of its own, so that worlds do not hang on how much is drawn of what happened there.
    (draws,) = rng.spawn(1)
    (chance,) = draws.spawn(1)
    people, d = expected_people(pairs, transmats), pairs.n_states
    most = REPLICATE_ITERATIONS[learner, strength.by_time]
    if isinstance(pairs, ErringPairs):
        most = most_iterations(pairs, learner, strength)
    seen, seen_then = RootErrors((d, d)), RootErrors((len(pairs.slots), d, d))

    def world(number: int) -> _World:
        rows = transmats
        if number > PLAIN:
            rows = varied_rows(rows, flows_by_slot(pairs, rows).sum(axis=0)[None], seen, rng)
        if number > PLAIN and len(rows) > 1:
            rows = varied_rows(rows, flows_by_slot(pairs, rows), seen_then, rng)
        kept = None if by_pair is None else PairTables(d, grain=0.0)
        taken = others[(number - 1) % len(others)] if others else strength
        moved, counted = simulated_world(pairs, people, rows, rng, kept)
        return _World(number, rows, moved, counted, taken, kept)

    def learned_in(world: _World) -> FloatArray:
        steps = learn_flows(
            world.pairs, shape, learner, world.strength, n_iter=most, start=start, random_state=rng
        )
        *_, last = steps
        return with_movement(last.transmats, movement)

    for numbers in _batches(n, learner):
        worlds = [world(number) for number in numbers]
        for there, found in zip(worlds, current().map(learned_in, worlds), strict=True):
            happened, learned = there.happened, flows_by_slot(there.pairs, found)
            if there.number <= PLAIN:
                seen.add(happened.sum(axis=0), learned.sum(axis=0))
                seen_then.add(happened, learned)
            told = happened_flows(
                there.pairs, found, effort=QUICK, keep_pairs=by_pair is not None, random_state=draws
            )
            if expansion > 1:
                uncounted = (expansion - 1) * flows_by_slot(there.pairs, there.rows)
                happened = happened + rng.poisson(uncounted)
            if by_pair is not None and there.kept is not None:
                if expansion > 1:
                    _add_uncounted(there.kept, there.pairs, there.rows, expansion - 1, chance)
                moved, estimate = there.kept.made(), told.by_pair
                if moved is not None and estimate is not None:
                    by_pair(moved, replace(estimate, people=expansion * estimate.people))
            yield happened, expansion * learned, expansion * told.flows


AT_ONCE = {DRAWN: 1, DENSE: 4}
"""Worlds that are simulated before one is learned from: those of the dense learner side by side."""


@dataclass(frozen=True)
class _World:
    """Transitions, who moved by them, what was counted, and the strength to learn with.

    Moves within each pair are ``kept``, if they are asked for.
    """

    number: int
    rows: FloatArray
    happened: FloatArray
    pairs: CountPairs
    strength: Strength
    kept: PairTables | None


def _batches(n: int, learner: str) -> Iterator[range]:
    """Numbers of worlds from 1 on: the first `PLAIN` tell how those after them vary."""
    first = 1
    while first <= n:
        last = min(first + AT_ONCE[learner] - 1, PLAIN if first <= PLAIN else n, n)
        yield range(first, last + 1)
        first = last + 1


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
