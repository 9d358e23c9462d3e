"""How sure flows from groups are: worlds simulated from what was learned, and learned again."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

from agg_core.base.checkpoints import checkpoints
from agg_core.base.moves import AnyMoves, entries, moves_like
from agg_core.base.relay import last_of
from agg_core.counts.days import DayErrors
from agg_core.learn.em import LearnState
from agg_core.learn.learners import learn_steps, least_squares_start, mostly
from agg_core.learn.saem import m_steps_per_iteration
from agg_core.learn.table import LEARNERS
from agg_core.learn.worlds import SimulatedWorlds
from agg_core.model.aggregates import Aggregates
from agg_core.model.hmm import HMM
from agg_core.study.days import DayWorlds, MovesOfDays
from agg_core.study.result import ESTIMATE
from agg_core.tables.certainty import Interval, RootErrors, varied_rows
from agg_core.tables.ensemble import Ensemble, EnsembleMaker
from agg_core.tables.flows import flow_matrix, flow_matrix_at

__all__ = ["Doubts", "Learned", "doubt_steps", "drawn_iterations"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

PLAIN = 2
"""Worlds whose people move just as was learned, as far as groups leave it open."""

FEWEST_ITERATIONS, M_STEPS_EACH = 6, 3
"""Iterations in a world of a learner that draws, at least, and M-steps for each person of a group:
groups of M people hide all but about 1 / M of what EM goes by, so that with as many steps as these
little is left of where it began."""

MOST_STEPS = 3
"""Single steps of a window whose errors are looked at, spread over it."""

NEAR = 1e-2
"""Change of a learner that goes on from what was learned, at which it is near enough to its end."""


@dataclass(frozen=True)
class Learned:
    """What was learned of a time of day from groups, and how, so that it can be learned again.

    Attributes
    ----------
    observed : the groups
    within : (K,) the window of each group, of whose people it was formed at random
    start : what learning began from, with the emission that was allowed for
    chain : what was learned of the people
    learner, prior, calibrate : who learned, pulled by how many people, corrected by how many
        replicates
    n_iter, tol : most iterations, and the change that ended it
    by_least_squares : whether learning began from the least squares fit
    """

    observed: Aggregates
    within: IntArray
    start: HMM
    chain: HMM
    learner: str
    prior: float
    n_iter: int
    tol: float
    calibrate: int = 0
    by_least_squares: bool = False

    @property
    def n_people(self) -> int:
        """People, who are as many at each step."""
        return int(self.observed.n_individuals)

    @property
    def drawn_iterations(self) -> int:
        """Iterations in a world of a learner that draws."""
        return drawn_iterations(self.n_people, self.observed.length, int(self.observed.sizes.max()))

    def flows(self, chain: HMM, step: int | None = None) -> AnyMoves:
        """People per step from each state to each by a chain, (d, d), as a mean or at a step."""
        if step is None:
            return flow_matrix(chain.startprob, chain.transmat, self.n_people, self.observed.length)
        return flow_matrix_at(chain.startprob, chain.transmat, self.n_people, step)

    def worlds(self, rng: np.random.Generator) -> SimulatedWorlds:
        """Groups and moves in one world after the other."""
        people = replace(self.chain, emission=self.start.emission)
        return SimulatedWorlds(people, self.observed, self.within, rng)

    def again(self, groups: Aggregates, rng: np.random.Generator) -> tuple[HMM, LearnState]:
        """Learn from other groups: the chain of their people, and the last iteration.

        A learner that is pulled goes on from what was learned here, with a part of where that
        began: one that draws for `drawn_iterations`, another until it is `NEAR` its end. All others
        begin where learning began and end as it did, as nothing says how near their end they are,
        and so does one that was not given more iterations than it is here.
        """
        start, row = self.start, LEARNERS[self.learner]
        options: dict[str, Any] = {"n_iter": self.n_iter, "tol": self.tol}
        if row.pulled and not self.calibrate and self.n_iter > self.drawn_iterations:
            options["begin"] = mostly(self.chain.startprob, self.chain.transmat, start)
            if row.drawn:
                options["n_iter"] = self.drawn_iterations
            else:
                options["tol"] = max(self.tol, NEAR)
        elif self.by_least_squares:
            start = least_squares_start(groups, start, fixed=("emission",))
        steps = learn_steps(
            groups, start, inference=self.learner, fixed=("emission",), prior=self.prior,
            calibrate=self.calibrate, random_state=rng, **options,
        )  # fmt: skip
        last = last_of(steps)
        return (last.hmm if last.of_people is None else last.of_people), last


def drawn_iterations(n_people: int, length: int, group_size: int) -> int:
    """Iterations of a learner that draws in a world of people in groups, over so many steps."""
    each = m_steps_per_iteration(n_people * length)
    return max(-(-M_STEPS_EACH * group_size // each), FEWEST_ITERATIONS)


@dataclass(frozen=True)
class Doubts:
    """What worlds tell of the flows of each time of day, and of sums of flows.

    ``intervals`` are those of a mean step at each time, entry by entry of a table, ``step_ends``
    the ends around roots of the flows of single steps by their size (see `SizedErrors.ends`),
    ``of_days`` what worlds tell of flows of chosen days, None where there is one day.
    """

    intervals: tuple[Interval, ...]
    step_ends: FloatArray
    ensemble: Ensemble | None
    of_days: DayErrors | None = None


def doubt_steps(
    parts: Sequence[Learned],
    n_worlds: int,
    random_state: int | np.random.Generator | None = None,
    *,
    days: DayWorlds | None = None,
) -> Generator[LearnState, None, Doubts]:
    """Simulate worlds and learn from them as from the real groups; returns what they tell.

    In each world there are people who may have been, given all that was observed, in new groups
    and with new noise (`SimulatedWorlds`), from which is learned as it was from the real ones. An
    error is how many of them moved, less how many are estimated to have: it holds what groups do
    not tell, the learner's own bias and noise, and how groups happened to be formed. The chances
    that people of the first `PLAIN` worlds are drawn by are those learned, which are smoother than
    those of real people where groups tell little: those of a later one differ from them as far as
    what was learned in those worlds differed from who moved, but for chance.

    With ``days`` each world is told to these, day by day, too.

    Yields the last iteration of each part in each world; as its number that of the part, from 1 and
    over all worlds.
    """
    rng = np.random.default_rng(random_state)
    d, steps = parts[0].chain.n_states, parts[0].observed.length - 1
    # All tables are told entry by entry, those of sparse ones having one pattern.
    like = parts[0].chain.transmat
    shape = entries(like).shape
    errors, seen = RootErrors((len(parts), *shape)), RootErrors((len(parts), *shape))
    single = RootErrors(shape)
    transmats = np.stack([entries(part.chain.transmat) for part in parts])
    estimates = np.stack([steps * entries(part.flows(part.chain)) for part in parts])
    maker = EnsembleMaker(np.ones(len(parts), dtype=np.int64), d, (ESTIMATE,), like=like)
    worlds = [part.worlds(rng) for part in parts]
    iteration = count(1)

    def simulated(numbers: range) -> Iterator[_Simulated]:
        """One world after the other, part by part: people go on from those of the one before."""
        for number in numbers:
            rows = transmats
            if number >= PLAIN:
                rows = varied_rows(transmats, estimates, seen, rng, like)
            for place, part in enumerate(parts):
                groups, moves = worlds[place].drawn(moves_like(like, rows[place]))
                yield _Simulated(
                    place, part, groups, np.stack([entries(at) for at in moves]),
                    worlds[place].paths, worlds[place].part_of_path,
                    None if days is None else days.days.of_window[place], *rng.spawn(2),
                )  # fmt: skip

    # The first ones tell how those after them vary.
    for numbers in (range(min(PLAIN, n_worlds)), range(PLAIN, n_worlds)):
        moved, learned = np.zeros((2, len(parts), *shape))
        name = f"worlds from {numbers.start}"
        for found in checkpoints().each(name, _learned_again, simulated(numbers)):
            moved[found.place], learned[found.place] = found.moves.sum(axis=0), found.total
            if days is not None and found.of_days is not None:
                days.add(found.place, found.of_days)
            for step in np.unique(np.linspace(0, steps - 1, MOST_STEPS).astype(int)):
                flows = parts[found.place].flows(found.chain, int(step))
                single.add(found.moves[step], entries(flows))
            yield replace(found.last, iteration=next(iteration))
            if found.place < len(parts) - 1:
                continue
            if days is not None:
                days.end()
            errors.add(moved, learned)
            if numbers.start < PLAIN:
                seen.add(moved, learned)
            maker.add(moved / steps, {ESTIMATE: learned / steps})
    return Doubts(
        tuple(
            _per_step(errors.at(place).interval(flows), steps)
            for place, flows in enumerate(estimates)
        ),
        single.sized.ends(),
        maker.made(),
        None if days is None else days.errors,
    )


@dataclass(frozen=True)
class _Simulated:
    """A time of day in a world: its groups, who moved, on which days, and chances to come.

    ``moves`` are the entries of tables at each step, (T - 1, d, d) or (T - 1, n).
    """

    place: int
    part: Learned
    groups: Aggregates
    moves: FloatArray
    paths: IntArray
    part_of_path: IntArray
    of_window: IntArray | None
    learning: np.random.Generator
    telling: np.random.Generator


@dataclass(frozen=True)
class _Again:
    """What was learned there: entries of moves, summed over the steps too, the chain, and days."""

    place: int
    moves: FloatArray
    total: FloatArray
    chain: HMM
    last: LearnState
    of_days: MovesOfDays | None


def _learned_again(world: _Simulated) -> _Again:
    """Learn from the groups of a world."""
    part = world.part
    chain, last = part.again(world.groups, world.learning)
    flows, of_days = part.flows(chain), None
    total = moves_like(flows, (part.observed.length - 1) * entries(flows))
    if world.of_window is not None:
        of_days = MovesOfDays.of(
            world.of_window, world.paths, world.part_of_path, part.within, world.groups,
            replace(chain, emission=part.start.emission), total, world.telling,
        )  # fmt: skip
    return _Again(world.place, world.moves, entries(total), chain, last, of_days)


def _per_step(interval: Interval, steps: int) -> Interval:
    return replace(interval, low=interval.low / steps, high=interval.high / steps)
