"""How long learning takes, told before it begins: sizes of the work, by rates that were measured.

Each stage of the work is so many units of a few kinds (a person at a step of a round, a table of
cells times cells, ...), and a unit takes so many probes (see `agg_core.base.speed`), which was
fitted to studies of several kinds of data (``python -m benchmarks lasting``). All amounts and rates
are 0 or more, so that more people, cells or simulated worlds never take less.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial import KDTree

from agg_core.base.durations import about
from agg_core.base.speed import probe_s
from agg_core.base.threads import number_of_threads
from agg_core.counts.checks import FEWEST_DAYS
from agg_core.counts.choosing import (
    DENSE,
    DRAWN,
    LOCAL_AGAIN,
    LOCAL_TRIAL,
    learners_for,
    local_iterations,
    times_are_tried,
)
from agg_core.counts.erring import ErringPairs
from agg_core.counts.held_out import held_out_days
from agg_core.counts.local import BLOCK
from agg_core.counts.measuring import exact_pairs, may_err
from agg_core.counts.pairs import DAY_TYPES, CountPairs
from agg_core.counts.posterior import can_be_drawn
from agg_core.counts.worlds import WORLDS
from agg_core.learn.choosing import n_parts_aside
from agg_core.learn.learners import best_for
from agg_core.learn.noise import FEWEST_STEPS, asked_in_turn, asked_parts
from agg_core.learn.saem import m_steps_per_iteration
from agg_core.learn.table import AUTO, GAUSSIAN_PAIRS, LEARNERS, LEAST_SQUARES, PAPERS, SAMPLING
from agg_core.model.hmm import allowed_moves
from agg_core.space.grid import BaseGrid
from agg_core.study.doubting import drawn_iterations
from agg_core.study.settings import (
    CountLearnSettings,
    LearnSettings,
    StudySettings,
    WindowSettings,
)
from agg_core.tables.counts import CountTable
from agg_core.tables.sequences import Sequences, to_sequences
from agg_core.tables.trajectories import Trajectories

__all__ = [
    "ERRING",
    "RATES_FILE",
    "TESTED_STATES",
    "TRIALS_OF_PRIOR",
    "CountSizes",
    "Course",
    "Lasting",
    "PeopleSizes",
    "Rates",
    "Stage",
    "course",
    "lasting",
    "n_moves_within",
    "shipped_rates",
    "trials_of_times",
    "tried_alike",
]

FloatArray = npt.NDArray[np.float64]

RATES_FILE = Path(__file__).with_name("lasting.json")

TESTED_STATES = 500
"""Cells up to which noise that is given is held against the fixes: it takes as long as learning."""

MOST_FIXES = 60_000
"""Fixes that sizes are found of: those of as many people, spread over the file, as have so many."""

TRIALS = 32
"""Iterations of trials of the prior on a part of the groups that is kept aside."""

SETTLED_AFTER = 40
"""Iterations after which EM for single people has mostly settled."""

FEWEST_DRAWN, DRAWN_EACH = 4.0, 2.5
"""Iterations after which draws have mostly settled, at least and for each person of a group: the
larger it is, the less of a step is gone."""

ROUNDS_OF_NOISE, ROUNDS_TOLD = 28, 16
"""Rounds that learning the noise mostly takes, and those more by which a stated one is tested."""

MOST_SCORED = 500
"""Groups kept aside that are predicted at most."""

POISSON_SWEEPS = 100
"""Sweeps that an E-step of the learners with Poisson noise mostly takes."""

NEAR = 3.0
"""How many times as long a person at a step takes to draw where moves are within a reach."""

TOUCHING = 9
"""States that a person who is counted in a cell may be in, as a rule."""

ERRING = "erring"
"""The dense learner, where counts err."""

TURNS_OF_MEASURING = {"learned": 150, "given": 40}
TRIALS_OF_PRIOR = {False: 5, True: 1}
TRIALS_OF_TIMES, TRIALS_OF_TYPE = {False: 9, True: 4}, 4
TRIAL_ITERATIONS = {DRAWN: (16, 16), DENSE: (40, 15), ERRING: (8, 4)}
ITERATIONS = {DRAWN: (40, 20), DENSE: (60, 40), ERRING: (15, 15)}
"""About how often: turns by which the error of counts is measured; strengths and ties of times of
day that are tried, by whether the strength is given, and more of these for each type of days that
is named; iterations of a first trial, and of one that
goes on from it; and those of a fit, and of one in a simulated world."""

NEARBY, WINDOW = "nearby", 600
"""Rates of moves within a reach, and the cells of a window with half of those about it."""

PROBES_NEARBY = {"calls": 10.0, "blocks": 8.5e-5, "moments": 0.01, "flows": 1e-4}
"""Probes that these take. They were measured on a simulated city of 500 m cells
(``python -m benchmarks local-counts``), no studies being fitted."""

REMEMBERED = {
    **dict.fromkeys(("noise/single", "noise/estimate", "choosing/estimate", "measuring"), 0.0),
    "choosing": 0.3,
}
"""Part of a stage that is left where what trials found is remembered: from counts, the fits that
the chosen strength goes on from are made again."""

LATER = ("iterations", "replicates", "threshold")
"""Settings that trials do not hang on."""

ALONE = 0.5
"""Part of the work that one thread does while the others wait."""

LEAST_S = 0.1

Amounts = dict[str, float]


@dataclass(frozen=True)
class Stage:
    """A part of the work: ``rate`` names its rates, ``amounts`` are units by kind, 0 or more.

    ``part`` tells apart what has the same name and is done one after the other.
    """

    name: str
    rate: str
    amounts: Amounts
    part: int = 0

    def times(self, factor: float) -> Stage:
        """So many times the stage."""
        return replace(self, amounts={k: factor * v for k, v in self.amounts.items()})


@dataclass(frozen=True)
class PeopleSizes:
    """What the time of a study of people in groups hangs on, besides its settings.

    Attributes
    ----------
    sequences : people in a window, over all days, at each time of day
    days : days on which windows begin
    length, states : steps T of a window, cells and outside d
    occupied : cells that a group holds at a step
    fixes : fixes of the file
    near : moves within a reach; None where all may be
    """

    sequences: tuple[int, ...]
    days: int
    length: int
    states: int
    occupied: float
    fixes: int
    near: int | None = None

    @property
    def moves(self) -> int:
        """Moves that may be."""
        return self.states**2 if self.near is None else self.near

    @classmethod
    def of(
        cls,
        trajectories: Trajectories,
        grid: BaseGrid,
        window: WindowSettings,
        group_size: int,
        reach_m: float | None = None,
    ) -> PeopleSizes:
        """Sizes of a study, about: those of some of the people, and as many times as there are.

        Raises
        ------
        InputError
            As `agg_core.tables.sequences.to_sequences`, of these people.
        """
        some, each = _some_of(trajectories)
        found = to_sequences(
            some, grid, step=window.step, length=window.length, start=list(window.times) or None,
            max_gap=window.max_gap,
        )  # fmt: skip
        near = None if reach_m is None else n_moves_within(grid, reach_m)
        sizes = cls.seen(found, window, group_size, len(trajectories.table), near)
        return replace(sizes, sequences=tuple(round(each * n) for n in sizes.sequences))

    @classmethod
    def seen(
        cls,
        found: Sequences,
        window: WindowSettings,
        group_size: int,
        n_fixes: int,
        near: int | None = None,
    ) -> PeopleSizes:
        """Sizes of a study of sequences that are known."""
        begins = found.windows["time"].to_numpy()[found.window]
        counts = [int((begins == time).sum()) for time in window.times] or [len(found)]
        shares = np.bincount(found.states.ravel(), minlength=found.n_states) / found.states.size
        return cls(
            sequences=tuple(counts),
            days=max(found.windows["local_date"].nunique(), 1),
            length=window.length,
            states=found.n_states,
            occupied=float((1 - (1 - shares) ** group_size).sum()),
            fixes=n_fixes,
            near=near,
        )

    def stages(self, learn: LearnSettings) -> Iterator[Stage]:
        """What is done, stage by stage."""
        group, single = learn.group_size, learn.group_size == 1
        slots = sum(self.sequences) * self.length
        work = {"calls": 1.0, "fixes": self.fixes, "slots": slots, "tables": float(self.moves)}
        yield Stage("preparing", "preparing", work)
        yield from self._noise(learn)
        learner = self.learner(learn)
        chosen = learn.pulled and learn.strength == "auto"
        for part, n in enumerate(self.sequences):
            name, amounts = self._e_step(learner, n, group, learn)
            n_parts = n_parts_aside(n // group, self.length) if chosen else 0
            if n_parts:
                trials = Stage("choosing/estimate", f"choosing/{name}", amounts, part)
                yield trials.times(n_parts * TRIALS)
                if learn.observed == "cells":
                    scores = {"scores": self._scores(n, group) * n_parts}
                    yield Stage("choosing/estimate", "scoring", scores, part)
            fit = Stage("learning/estimate", f"learning/{name}", amounts, part)
            yield fit.times(self._iterations(learner, learn))
            if not single:
                name, amounts = self._e_step(PAPERS, n, 1, learn)
                fit = Stage("learning/single", f"learning/{name}", amounts, part)
                yield fit.times(min(learn.iterations, SETTLED_AFTER))
        yield from self._worlds(learner, learn)

    def lasting(self, learn: LearnSettings, *, remembered: bool = False) -> Lasting:
        """How long a study takes on this machine (see `lasting`)."""
        return lasting(
            self.stages(learn), self.kind(learn), remembered=remembered,
            threads=number_of_threads(),
        )  # fmt: skip

    def kind(self, learn: LearnSettings) -> str:
        """The kind of work, by which what is told is more or less sure."""
        learner = self.learner(learn)
        if learn.observed == "positions":
            return "people/positions"
        return f"people/{learner}" if learner in (SAMPLING, GAUSSIAN_PAIRS, PAPERS) else "people"

    def learner(self, learn: LearnSettings) -> str:
        """Who learns from the groups, as far as sizes tell it."""
        if learn.group_size == 1 and learn.inference in (AUTO, "cavity"):
            return PAPERS
        if learn.inference != AUTO:
            return learn.inference
        if learn.reach_m is not None:
            return SAMPLING
        most = max(self.sequences)
        cells = learn.observed == "cells"
        crowd = learn.group_size / max(self.occupied, 1e-9) if cells else 1.0
        choice = best_for(
            crowd, most // learn.group_size, self.length, most, self.states, known=cells
        )
        return choice.learner

    def _noise(self, learn: LearnSettings) -> Iterator[Stage]:
        if self.length < FEWEST_STEPS or (learn.noise == "given" and self.states > TESTED_STATES):
            return
        placed = learn.observed == "positions"
        alone = learn.noise == "given" or learn.group_size == 1 or learn.reach_m is not None
        sources = [1] if alone else [1, learn.group_size]
        rounds = ROUNDS_OF_NOISE + ROUNDS_TOLD * (learn.noise == "given")
        for group in sources:
            learner = PAPERS if group == 1 else "cavity"
            source = "single" if group == 1 and learn.group_size > 1 else "estimate"
            for number, every in asked_parts(self.sequences, single=group == 1, placed=placed):
                n = self.sequences[number] // every
                in_turn = asked_in_turn(n, placed=placed)
                n_parts = n_parts_aside(n // group, self.length, in_turn=in_turn)
                if not n_parts:
                    continue
                name, amounts = self._e_step(learner, n, group, learn)
                yield Stage(f"noise/{source}", f"noise/{name}", amounts).times(n_parts * rounds)

    def _e_step(
        self, learner: str, people: int, group: int, learn: LearnSettings
    ) -> tuple[str, Amounts]:
        """One iteration of a learner: the name of its rates, and amounts."""
        d, steps, groups = self.states, self.length, people / group
        tables = {"calls": 1.0, "tables": float(self.moves)}
        single = group == 1
        placed = learn.observed == "positions"
        ending = "/placed" if placed else ""
        occupied = (float(group) if placed else min(self.occupied, group)) if not single else 1.0
        tokens = groups * steps * occupied
        row = LEARNERS[learner]
        if learner == SAMPLING:
            updates = float(m_steps_per_iteration(people * steps))
            return "sampling" + ending, {
                "calls": updates, "tables": updates * self.moves,
                "slots": updates * people * steps * (1.0 if self.near is None else NEAR),
            }  # fmt: skip
        if single and not row.steps and not row.readings:
            return "single" + ending, {**tables, "slots": float(people * steps)}
        if learner == GAUSSIAN_PAIRS:
            return "gaussian_pairs", {
                **tables, "pairs": groups * steps * occupied**2 * d, "cubes": float(d**3),
            }  # fmt: skip
        if learner == LEAST_SQUARES:
            return "least_squares", {**tables, "slots": tokens, "cubes": float(d**3)}
        if row.readings:
            return "poisson", {**tables, "states": groups * steps * d * d * POISSON_SWEEPS}
        name = learner if learner == PAPERS else "cavity"
        again = 1 + learn.calibrate
        if name == PAPERS:
            ways = float(self.moves)
            if self.near is not None:
                # Those from where a group may be: its cells and the ones that touch them.
                ways = min(ways, TOUCHING * occupied * self.near / d)
            work = {**tables, "tokens": tokens, "states": groups * steps * ways}
        else:
            work = {**tables, "tokens": tokens, "pairs": tokens * occupied}
        return name + ending, {k: again * v for k, v in work.items()}

    def _iterations(self, learner: str, learn: LearnSettings) -> float:
        if learner == LEAST_SQUARES:
            return min(learn.iterations, 2)
        if learn.group_size == 1:
            return min(learn.iterations, SETTLED_AFTER)
        if learner == SAMPLING:
            return min(learn.iterations, max(FEWEST_DRAWN, DRAWN_EACH * learn.group_size))
        return learn.iterations

    def _scores(self, people: int, group: int) -> float:
        """Work of predicting groups of a part kept aside."""
        held = min(people // group / 4, MOST_SCORED)
        return held * (self.length - 1) * self.occupied**2 * self.moves / self.states

    def _worlds(self, learner: str, learn: LearnSettings) -> Iterator[Stage]:
        worlds, row = learn.replicates, LEARNERS[learner]
        for n in self.sequences if worlds else ():
            name, amounts = self._e_step(learner, n, learn.group_size, learn)
            iterations = self._iterations(learner, learn)
            drawn = drawn_iterations(n, self.length, learn.group_size)
            if row.pulled and not learn.calibrate and learn.iterations > drawn:
                iterations = drawn if row.drawn else min(iterations, SETTLED_AFTER / 4)
            again = Stage("doubting/estimate", f"doubting/{name}", amounts)
            yield again.times(worlds * iterations)
            made = {
                "calls": 1.0, "slots": float(n * self.length), "tables": float(self.moves),
                "days": float((self.days if self.days > 1 else 0) * self.moves),
            }  # fmt: skip
            yield Stage("doubting/estimate", "worlds", made).times(worlds)


def trials_of_times(given: bool, types: int) -> int:
    """About how many trials have times of day apart, if there are so many types of days.

    Fewer of them if the strength is ``given``.
    """
    return TRIALS_OF_TIMES[given] + TRIALS_OF_TYPE * max(types - len(DAY_TYPES), 0)


def n_moves_within(grid: BaseGrid, reach_m: float) -> int:
    """How many moves `agg_core.model.hmm.allowed_moves` has between cells, without listing them."""
    places = KDTree(grid.centroids_m)
    return int(places.count_neighbors(places, reach_m * (1 + 1e-9)))


def _some_of(trajectories: Trajectories) -> tuple[Trajectories, float]:
    """Some of the people, spread over the table, and how many times they are all."""
    fixes = len(trajectories.table)
    every = -(-fixes // MOST_FIXES)
    if every == 1:
        return trajectories, 1.0
    codes = trajectories.user_codes
    n = int(codes[-1]) + 1
    first = min(every // 2, n - 1)
    table = trajectories.table.loc[codes % every == first].reset_index(drop=True)
    return replace(trajectories, table=table), n / len(range(first, n, every))


@dataclass(frozen=True)
class CountSizes:
    """What the time of learning from counts hangs on.

    Attributes
    ----------
    pairs, states, slots : pairs of moments P, cells and outside d, times of day H
    days : days, or runs, that pairs come from
    people : people times pairs
    parts, rest : parts kept aside in turn, and the share of pairs that each leaves
    types : types of days that can be told apart, 1 for none
    times : whether times of day are tried
    errs : whether counts are held for such that may err
    given : whether their error is given
    learners : those that are tried where counts are exact
    drawn : whether who went where is drawn then
    moves : moves from a cell to others within the reach; None where all are learned
    """

    pairs: int
    states: int
    slots: int
    days: int
    people: float
    parts: int
    rest: float
    types: int
    times: bool
    errs: bool
    given: bool
    learners: tuple[str, ...]
    drawn: bool
    moves: float | None = None

    @classmethod
    def of(cls, table: CountTable, learn: CountLearnSettings) -> CountSizes:
        """Sizes of a table of counts.

        Raises
        ------
        InputError
            If there are no pairs, too few to keep some aside, or days are named of unknown dates.
        """
        learn.days.check(table)
        pairs = exact_pairs(table, learn.expansion, learn.days)
        seen = cls.seen(pairs, learn)
        if learn.reach_m is None:
            return replace(seen, errs=may_err(table, pairs, learn.count_error))
        moves = 0.0
        if table.grid is not None:
            moves = allowed_moves(table.grid.make(), learn.reach_m).nnz / table.n_cells - 1
        return replace(seen, moves=moves, learners=(DENSE,), drawn=False)

    @classmethod
    def seen(cls, pairs: CountPairs, learn: CountLearnSettings) -> CountSizes:
        """Sizes of pairs of counts that are known to be exact, or to err.

        Raises
        ------
        InputError
            If there are too few to keep some aside.
        """
        kept = held_out_days(pairs)
        return cls(
            pairs=pairs.n_pairs,
            states=pairs.n_states,
            slots=len(np.unique(pairs.slot)),
            days=pairs.n_days,
            people=float(pairs.before.sum()),
            parts=len(kept),
            rest=float(np.mean([1 - aside.mean() for aside in kept])),
            types=1 + len(pairs.types_apart),
            times=bool(times_are_tried(pairs, learn.time)),
            errs=isinstance(pairs, ErringPairs),
            given=learn.count_error is not None,
            learners=learners_for(pairs),
            drawn=can_be_drawn(pairs),
        )

    @property
    def kind(self) -> str:
        """The kind of work, by which what is told is more or less sure."""
        return "counts/erring" if self.errs else "counts/exact"

    def lasting(self, learn: CountLearnSettings, *, remembered: bool = False) -> Lasting:
        """How long learning takes on this machine (see `lasting`)."""
        return lasting(
            self.stages(learn), self.kind, remembered=remembered, threads=number_of_threads()
        )

    def stages(self, learn: CountLearnSettings) -> Iterator[Stage]:
        """What is done, stage by stage."""
        if self.moves is not None:
            yield from self._stages_nearby(learn)
            return
        P, d, H = self.pairs, self.states, self.slots * self.types
        G, layers = (H, "times") if self.times else (1, "one")
        yield Stage("preparing", "preparing/counts", {"pairs": P * d, "cubes": float(d**3)})
        if self.errs:
            kind = "given" if self.given else "learned"
            turns = Stage("measuring", f"measuring/{kind}", self._turn(P, G))
            yield turns.times(TURNS_OF_MEASURING[kind])
        learners = (ERRING,) if self.errs else self.learners
        told = learn.strength == "given"
        for number, name in enumerate(learners):
            people = self.people * self.rest
            first, each = TRIAL_ITERATIONS[name]
            its: float = first + each * TRIALS_OF_PRIOR[told]
            trial = self._iteration(name, P * self.rest, 1, people)
            trials = Stage("choosing", f"choosing/{name}", trial, 2 * number)
            yield trials.times(self.parts * its)
            if self.times:
                its = each * trials_of_times(told, self.types) / (3 if name == DENSE else 1)
                trial = self._iteration(name, P * self.rest, H, people)
                trials = Stage("choosing", f"choosing/{name}/times", trial, 2 * number + 1)
                yield trials.times(self.parts * its)
        for stage in ("learning", "moving"):
            for name in learners:
                most, _ = ITERATIONS[name]
                fit = self._iteration(name, P, G, self.people)
                yield Stage(stage, f"{stage}/{name}/{layers}", fit).times(most / len(learners))
        checks = float(self.days >= FEWEST_DAYS)
        work = {
            "calls": 1.0, "pairs": P * d * d, "cubes": P * d**3, "checks": checks,
            "checked": checks * P * d,
        }  # fmt: skip
        yield Stage("validating", "validating", work)
        how = "drawn" if self.drawn and not self.errs else "normal"
        work = {"people": self.people} if how == "drawn" else {"cubes": P * d**3}
        happened = {"calls": 1.0, "pairs": P * d * d, **work}
        yield Stage("drawing", f"drawing/{how}", happened)
        for name in learners:
            _, there = ITERATIONS[name]
            fit = self._iteration(name, P, G, self.people)
            again = Stage("doubting", f"doubting/{name}/{layers}", fit)
            yield again.times(there * learn.replicates / len(learners))
        yield Stage("doubting", f"worlds/{how}", happened).times(learn.replicates)

    def _stages_nearby(self, learn: CountLearnSettings) -> Iterator[Stage]:
        """The same of moves within a reach: strengths are tried in a window."""
        P, H, told = self.pairs, self.slots * self.types, learn.strength == "given"
        d, pools = self.states, H if self.times else 1
        yield Stage("preparing", "preparing/counts", {"pairs": float(P * d)})
        some = min(d, WINDOW)
        its: float = LOCAL_TRIAL[False] + LOCAL_AGAIN[False] * TRIALS_OF_PRIOR[told]
        yield Stage("choosing", NEARBY, self._in_blocks(some, 1)).times(self.parts * its)
        if self.times:
            its = LOCAL_TRIAL[True] + LOCAL_AGAIN[True] * trials_of_times(told, self.types)
            yield Stage("choosing", NEARBY, self._in_blocks(some, H), 1).times(self.parts * its)
        most = local_iterations(d, by_time=self.times)
        yield Stage("learning", NEARBY, self._in_blocks(d, pools)).times(most)
        yield Stage("moving", NEARBY, self._in_blocks(some, pools)).times(WORLDS * most)
        yield Stage("validating", NEARBY, {"moments": float(P * some)})
        yield Stage("drawing", NEARBY, {"flows": P * d * (1 + (self.moves or 0.0))})

    def _in_blocks(self, cells: float, pools: int) -> Amounts:
        """An iteration of so many cells: those that people may come from, for each of them."""
        side = np.sqrt(BLOCK) + 2 * np.sqrt((self.moves or 0.0) / np.pi)
        return {"calls": 1.0, "blocks": float(pools * cells * side**2)}

    def _iteration(self, name: str, pairs: float, pools: int, people: float) -> Amounts:
        if name == DRAWN:
            return {"calls": 1.0, "tables": float(pools * self.states**2), "slots": people}
        if name == DENSE:
            d = self.states
            return {"calls": 1.0, "tables": float(pools * d**2), "cubes": float(pools * d**3)}
        return self._turn(pairs, pools)

    def _turn(self, pairs: float, pools: int) -> Amounts:
        """A turn of the smoother, and the descent after it."""
        d = self.states
        return {
            "calls": 1.0, "moments": pairs, "pairs": pairs * d**2, "smoothed": pairs * d**3,
            "cubes": float(pools * d**3), "tables": float(pools * d**2),
        }  # fmt: skip


@dataclass(frozen=True)
class Rates:
    """Probes per unit of each kind by the name of rates, and how far what was told was off.

    ``spread`` are factors from what is told to the ends of a range that held eight in ten studies
    that were not fitted to, by the kind of work.
    """

    probes: Mapping[str, Mapping[str, float]]
    spread: Mapping[str, tuple[float, float]]

    @classmethod
    def read(cls, path: Path) -> Rates:
        """Rates of a file that ``python -m benchmarks lasting fit`` wrote."""
        values = json.loads(path.read_text(encoding="utf-8"))
        spread = {name: (float(low), float(high)) for name, (low, high) in values["spread"].items()}
        return cls(values["probes"], spread)

    def probes_of(self, stage: Stage) -> float:
        """Probes that a stage takes."""
        rates = self.probes.get(stage.rate, {})
        return sum(rates.get(kind, 0.0) * amount for kind, amount in stage.amounts.items())


@dataclass(frozen=True)
class Lasting:
    """Seconds that work takes, from ``low_s`` to ``high_s``, eight times in ten."""

    low_s: float
    high_s: float

    @property
    def words(self) -> str:
        """The range in round numbers, such as "20 s to 1 min"."""
        return about(self.low_s, self.high_s)

    @property
    def told_s(self) -> list[float]:
        """Both ends with two figures, for JSON."""
        return [float(f"{end:.2g}") for end in (self.low_s, self.high_s)]


@cache
def shipped_rates() -> Rates:
    """The rates that come with the package."""
    rates = Rates.read(RATES_FILE)
    return replace(rates, probes={**rates.probes, NEARBY: PROBES_NEARBY})


Course = dict[tuple[str, int], tuple[float, float]]


def course(stages: Iterable[Stage], rates: Rates | None = None) -> Course:
    """Share of all work, 0 to 1, at which each stage begins and ends, by its name and part.

    Preparing comes before the first of them, and is no share.
    """
    rates = shipped_rates() if rates is None else rates
    probes: dict[tuple[str, int], float] = {}
    for stage in stages:
        if stage.name != "preparing":
            key = stage.name, stage.part
            probes[key] = probes.get(key, 0.0) + rates.probes_of(stage)
    ends = np.minimum(np.cumsum([*probes.values()]) / max(sum(probes.values()), LEAST_S), 1.0)
    begins = [0.0, *ends[:-1].tolist()]
    return dict(zip(probes, zip(begins, ends.tolist(), strict=True), strict=True))


def lasting(
    stages: Iterable[Stage],
    kind: str,
    *,
    remembered: bool = False,
    rates: Rates | None = None,
    probe: float | None = None,
    threads: int = 1,
) -> Lasting:
    """How long stages of a kind of work take on this machine.

    Of what is ``remembered`` little is left to do (see `tried_alike`). ``probe`` are the seconds of
    `probe_s`, that of this machine by itself. So many ``threads`` share what they can: `ALONE` of
    the work at the lower end, nothing at the upper end, as others may use the cores.
    """
    rates = shipped_rates() if rates is None else rates
    probe = probe_s() if probe is None else probe
    seconds = 0.0
    for stage in stages:
        left = REMEMBERED.get(stage.name, 1.0) if remembered else 1.0
        seconds += left * probe * rates.probes_of(stage)
    low, high = rates.spread[kind]
    shared = ALONE + (1 - ALONE) / max(threads, 1)
    return Lasting(max(low * seconds * shared, LEAST_S), max(high * seconds, LEAST_S))


def tried_alike(
    before: StudySettings | CountLearnSettings, now: StudySettings | CountLearnSettings
) -> bool:
    """Whether trials of a study with other settings, of the same data, tell all that is tried."""
    if isinstance(before, StudySettings) or isinstance(now, StudySettings):
        return (
            isinstance(before, StudySettings)
            and isinstance(now, StudySettings)
            and (before.grid, before.window) == (now.grid, now.window)
            and _tried_by(before.learn) == _tried_by(now.learn)
        )
    return _tried_by(before) == _tried_by(now)


def _tried_by(learn: LearnSettings | CountLearnSettings) -> dict[str, Any]:
    return {name: value for name, value in vars(learn).items() if name not in LATER}
