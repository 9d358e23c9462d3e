"""A study: trajectories and settings to flows learned from groups, from single people, and counted.

This is the whole experiment of the paper's last section, in the one place that the command line
and the pages share: grid the people, make the observations noisy, form groups of M, learn, and
hold the flows against the M = 1 fit and against the flows counted before the noise.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from time import perf_counter
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from agg_core.base.checkpoints import checkpoints
from agg_core.base.errors import InputError
from agg_core.base.moves import (
    AnyMoves,
    at_pairs,
    diagonal,
    ends_of,
    entries,
    moves_like,
)
from agg_core.base.relay import relayed
from agg_core.base.remembered import Remembered, fingerprint
from agg_core.counts.pair_tables import PairTables
from agg_core.learn.choosing import PriorChoice, n_trial_steps, prior_steps
from agg_core.learn.em import Iteration, LearnState
from agg_core.learn.estimator import AggregateHMM
from agg_core.learn.learners import Reason, log_likelihood
from agg_core.learn.noise import LearnedNoise, n_noise_steps, noise_steps
from agg_core.learn.table import AUTO, LEARNERS, LEAST_SQUARES, PAPERS
from agg_core.model.aggregates import Aggregates, aggregate, aggregate_points
from agg_core.model.emissions import CategoricalEmission, Emission, Misplacing, Noise
from agg_core.model.gaussian import Blurring, grid_positions
from agg_core.model.hmm import HMM, allowed_moves, distance_decay_transmat
from agg_core.space.grid import BaseGrid
from agg_core.study.days import DayWorlds, ObservedDays, PeopleDays, moves_by_day
from agg_core.study.doubting import Doubts, Learned, doubt_steps
from agg_core.study.lasting import TESTED_STATES, Course, PeopleSizes, course, n_moves_within
from agg_core.study.result import ESTIMATE, FlowResult, States, apart, around, days_not_kept
from agg_core.study.settings import LearnSettings, StudySettings
from agg_core.tables.certainty import Interval, interval_by_size
from agg_core.tables.ensemble import Ensemble, told_of
from agg_core.tables.flows import (
    FlowComparison,
    compare_flows,
    count_matrix,
    count_matrix_at,
    filled_like,
    flow_matrix,
    flow_matrix_at,
    matrix_rows,
)
from agg_core.tables.sequences import Sequences, to_sequences
from agg_core.tables.trajectories import Trajectories

__all__ = [
    "ALL_DAY",
    "BEYOND_REACH",
    "SOURCES",
    "SOURCE_LABELS",
    "AllowedNoise",
    "Fit",
    "Progress",
    "StudyResult",
    "TimeResult",
    "check_people",
    "estimate_megabytes",
    "likelihoods_of_people",
    "observed_at",
    "reach_words",
    "study_steps",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

ALL_DAY = "all day"
"""Name of the only time of a study without times of day: windows of the whole day pooled."""

SOURCES = ("estimate", "single", "counted")
"""Where flows come from: groups of M, the M = 1 fit, or counted before the noise."""

SOURCE_LABELS = dict(
    zip(
        SOURCES,
        ("Learned from groups", "Single people, M = 1", "Counted, before noise"),
        strict=True,
    )
)
"""The same as headings."""

LEARNED = SOURCES[:2]
"""The sources that have parameters."""

BEYOND_REACH = "somebody moved farther in a step than the farthest move"
"""Why sequences are left out that have a move beyond the reach."""

FIT_TOL = 1e-5

LEAST_FLOW = 0.005
"""People per step, at the upper end of the interval, below which a flow of nobody is not listed."""


@dataclass(frozen=True)
class Progress:
    """Where a study stands: fit number ``fit`` of ``n_fits``, at ``iteration`` of ``n_iter``.

    ``stage`` is "noise" while that is learned, "choosing" while the weight of the prior is tried,
    "learning" then, and "doubting" while worlds are simulated: there an iteration is a world at a
    time of day, and there is one fit. The stage is the share from ``begins`` to ``ends`` of all
    work (see `agg_core.study.lasting.course`).
    """

    time: str
    source: str
    fit: int
    n_fits: int
    iteration: int
    n_iter: int
    free_energy: float
    change: float
    people: int
    stage: str = "learning"
    begins: float = 0.0
    ends: float = 1.0

    @property
    def share(self) -> float:
        """Share of all work done, 0 to 1."""
        return self.begins + (self.ends - self.begins) * self.iteration / self.n_iter


@dataclass(frozen=True)
class Fit:
    """A learned chain and how the learning went.

    ``learner`` is the one that did it and ``choice`` says why, if it was chosen by itself; so do
    ``prior``, the people per row that pulled it, None where nothing did, and ``prior_choice``.
    ``history`` is the free energy of each iteration; ``n_unconverged`` the sequences whose counts
    were not met to a thousandth in the last E-step; ``change`` the last move of the parameters.
    """

    startprob: FloatArray
    transmat: AnyMoves
    history: tuple[float, ...]
    reason: Reason
    change: float
    n_unconverged: int
    wall_s: float
    learner: str = PAPERS
    choice: str = ""
    prior: float | None = None
    prior_choice: str = ""

    @property
    def converged(self) -> bool:
        """Whether the parameters stood still."""
        return self.reason == "converged"

    @property
    def iterations(self) -> int:
        """Iterations done."""
        return len(self.history)

    @property
    def unsettled(self) -> float:
        """Share of the people whose next cell more iterations may change, about; 0 to 1.

        It is half of the distance that ``change`` is, and 0 where the parameters stood still.
        """
        return 0.0 if self.converged else min(self.change / 2, 1.0)


@dataclass(frozen=True)
class AllowedNoise:
    """The noise that was allowed for, of groups and of single people.

    Of ``unit`` "share" it is the chance of a fix to lie in a neighbour cell, of "metres" the
    standard deviation of positions in each direction. ``told`` is a sentence where the fixes
    contradict what was given, or where they could not tell the noise; else empty.
    """

    groups: float
    single: float
    learned: bool
    told: str = ""
    unit: str = "share"

    def of(self, source: str) -> float:
        """That of a source, "estimate" or "single"."""
        return {"estimate": self.groups, "single": self.single}[source]


@dataclass(frozen=True)
class TimeResult:
    """The models of one time of day and what their flows are worth."""

    time: str
    n_sequences: int
    n_groups: int
    estimate: Fit
    single: Fit
    vs_single: FlowComparison
    vs_counted: FlowComparison
    observed: FloatArray | None
    """People observed in each cell (and outside) at each step, noise and all, (T, n_states);
    None where positions are observed."""
    low: AnyMoves | None = None
    high: AnyMoves | None = None
    """Ends (S, S) of an interval of nine in ten around the flows of a mean step; None without
    simulated worlds."""

    def fit(self, source: str) -> Fit:
        """The chain learned from groups ("estimate") or from single people ("single")."""
        return {"estimate": self.estimate, "single": self.single}[source]


@dataclass(frozen=True)
class StudyResult(FlowResult):
    """Everything that a study found.

    Times are those at which windows start, sources are `SOURCES`.

    The learned flows are those of the chains in ``by_time`` (see `matrix` and `table`);
    ``counted_steps`` holds the counted flows of each step: time, step (from 0), origin, dest,
    count. With several times ``vs_single`` and ``vs_counted`` compare all their flows together.
    ``step_ends`` are the ends of intervals around roots of flows of a single step, by their size
    (2, sizes), and ``ensemble`` has the errors of whole flow tables, both in simulated worlds; None
    without these, and in runs that were saved before there were any. ``by_day`` is what happened
    on each day; None where all people were observed on one, and in runs that were saved without it.
    Of ``chosen_days`` (see `of_days`) are all flows, people and comparisons; none for all days.
    """

    kind = "study"

    settings: StudySettings
    n_individuals: int
    n_states: int
    has_outside: bool
    dropped: Mapping[str, int]
    by_time: tuple[TimeResult, ...]
    counted_steps: pd.DataFrame
    vs_single: FlowComparison
    vs_counted: FlowComparison
    wall_s: float
    noise: AllowedNoise | None = None
    """None of studies kept before the noise was learned, of positions later than of cells."""
    step_ends: FloatArray | None = None
    ensemble: Ensemble | None = None
    by_day: PeopleDays | None = None
    chosen_days: tuple[str, ...] = ()
    remembered: Mapping[str, Any] = field(default_factory=dict)
    """What trials found (see `agg_core.base.remembered`)."""

    @property
    def n_sequences(self) -> int:
        """Sequences of single people, over all times."""
        return sum(a.n_sequences for a in self._shown)

    @property
    def n_groups(self) -> int:
        """Aggregate sequences, over all times."""
        return sum(a.n_groups for a in self._shown)

    @property
    def iterations(self) -> int:
        """Most iterations that a model learned from groups took."""
        return max(a.estimate.iterations for a in self.by_time)

    @property
    def converged(self) -> bool:
        """Whether all fits, also those at M = 1, stood still before the limit."""
        return all(a.estimate.converged and a.single.converged for a in self.by_time)

    @property
    def learner(self) -> str:
        """Who learned from the groups, in the end; several names if it was not one for all."""
        return ", ".join(dict.fromkeys(a.estimate.learner for a in self.by_time))

    @cached_property
    def busiest(self) -> str:
        """The time at which most people move, as counted."""
        moves = {time: _moves(self.matrix(time, "counted")) for time in self.times_of_day}
        if not any(moves.values()):
            return self.times_of_day[0]
        return max(sorted(moves), key=moves.__getitem__)

    @property
    def has_intervals(self) -> bool:
        """Whether worlds were simulated."""
        kept = self.by_day
        told = not self.chosen_days or (kept is not None and kept.estimate.spread is not None)
        return self.step_ends is not None and told

    def _erring(self, source: str) -> str | None:
        return ESTIMATE if source == ESTIMATE else None

    @cached_property
    def _errors_of_days(self) -> Ensemble | None:
        """The errors of the estimate on the chosen days."""
        kept = self.by_day
        if kept is None or kept.estimate.errors is None:
            return None
        return kept.estimate.errors.of_days(kept.estimate.numbers(self.chosen_days))

    def _ensemble(self, source: str) -> Ensemble | None:  # noqa: ARG002  # the estimate alone errs
        return self._errors_of_days if self.chosen_days else self.ensemble

    def _steps_erring(self, time: str, source: str) -> int:  # noqa: ARG002  # alike at all times
        # Errors of days are sums over the steps, those of all days are of a mean step.
        return self._n_moves if self.chosen_days else 1

    def _slot(self, time: str) -> int | None:
        return next(number for number, a in enumerate(self.by_time) if a.time == time)

    @property
    def days_summed(self) -> int:
        """Days that a flow is the sum over: those of the data, or those that were chosen."""
        return max(len(self.chosen_days or self.days), 1)

    @property
    def days(self) -> tuple[str, ...]:
        """Days on which people were observed, if these are several and kept apart."""
        return () if self.by_day is None else self.by_day.dates

    def of_days(self, days: Sequence[str]) -> StudyResult:
        """The same of some `days`: what groups of these tell, single people and counted ones.

        Flows are sums over the days, like those of all of them, of a mean step (see
        `agg_core.study.days.moves_by_day`); they are not told step by step. What was learned stays.
        """
        kept = self.by_day
        if kept is None or not kept.dates:
            raise days_not_kept(
                "All people were observed on one day, or this run was saved without single days; "
                "leave the day out, or learn again."
                if kept is None
                else None
            )
        numbers = kept.estimate.numbers(days)
        of_days = replace(self, chosen_days=tuple(kept.dates[number] for number in numbers))
        found = replace(
            of_days,
            by_time=tuple(
                of_days._time_of_days(number, found, numbers)
                for number, found in enumerate(self.by_time)
            ),
        )
        return found._compared_again()

    def _time_of_days(self, slot: int, found: TimeResult, days: IntArray) -> TimeResult:
        """A time of day with the people, intervals and comparisons of the chosen days."""
        assert self.by_day is not None, "it was found there"
        low = high = None
        if self.has_intervals:
            low, high = (self._matrix_of_days(slot, ESTIMATE, end) for end in ("low", "high"))
        matrices = {source: self._matrix_of_days(slot, source) for source in SOURCES}
        observed = self.by_day.observed
        return replace(
            found,
            n_sequences=int(self.by_day.sequences[days, slot].sum()),
            n_groups=int(self.by_day.groups[days, slot].sum()),
            observed=observed[slot][days].sum(axis=0) if observed else None,
            low=low,
            high=high,
            vs_single=compare_flows(matrices[ESTIMATE], matrices["single"], self.threshold),
            vs_counted=compare_flows(matrices[ESTIMATE], matrices["counted"], self.threshold),
        )

    def _compared_again(self) -> StudyResult:
        """The same with all its flows compared."""
        shown = self._shown
        if len(shown) == 1:
            return replace(self, vs_single=shown[0].vs_single, vs_counted=shown[0].vs_counted)
        return replace(
            self, vs_single=_compared(self, "single"), vs_counted=_compared(self, "counted")
        )

    @cached_property
    def _rows_of_days(self) -> Mapping[str, pd.DataFrame]:
        """Flows of each source, summed over the chosen days and over the steps of a window."""
        assert self.by_day is not None, "days were chosen"
        numbers = self.by_day.estimate.numbers(self.chosen_days)
        kept = self.by_day.flows
        return {source: flows.summed(numbers, by_time=True) for source, flows in kept.items()}

    def _matrix_of_days(self, slot: int, source: str, column: str = "count") -> AnyMoves:
        rows = self._rows_of_days[source]
        rows = rows.loc[rows["slot"] == slot]
        return filled_like(
            self._pattern, rows["origin"], rows["dest"], rows[column] / self._n_moves
        )

    @property
    def is_sparse(self) -> bool:
        """Whether moves go within a reach alone, so that matrices are sparse tables of these."""
        return self.settings.learn.reach_m is not None

    @property
    def _pattern(self) -> AnyMoves:
        """A table of all moves that may be: the entries of all others are of the same ones."""
        return self.by_time[0].estimate.transmat

    @property
    def beyond_reach(self) -> int:
        """Sequences left out as somebody moved farther in a step than the farthest move."""
        return self.dropped.get(BEYOND_REACH, 0)

    @property
    def _shown(self) -> tuple[TimeResult, ...]:
        """The times of day that have people, on the chosen days if there are some."""
        return tuple(a for a in self.by_time if not self.chosen_days or a.n_sequences)

    @property
    def _n_moves(self) -> int:
        """Steps of a window between which people move."""
        return self.settings.window.length - 1

    @property
    def n_steps(self) -> int:
        """Steps of a window between which people move; 0 of chosen days, which have their mean."""
        return 0 if self.chosen_days else self._n_moves

    @property
    def states(self) -> States:
        """Cells and outside."""
        grid = self.settings.grid.make()
        return States(tuple(grid.labels), grid, self.has_outside)

    @property
    def times_of_day(self) -> tuple[str, ...]:
        """The times of day at which windows start."""
        return tuple(a.time for a in self._shown)

    @property
    def sources(self) -> tuple[str, ...]:
        """`SOURCES`."""
        return SOURCES

    @property
    def truths(self) -> tuple[str, ...]:
        """Single people, and all as they were counted."""
        return self.references

    @property
    def threshold(self) -> float:
        """People per step above which a flow was to be an arrow."""
        return self.settings.learn.threshold

    @property
    def step_minutes(self) -> float:
        """Minutes of a step."""
        return self.settings.window.step_minutes

    @property
    def step_name(self) -> str:
        """What a flow is per, in words."""
        return f"{self.settings.window.step_minutes}-minute step"

    @property
    def basis(self) -> str:
        """How many people, in groups of which size."""
        return f"{self.n_individuals:,} people, {self.source_words(ESTIMATE)}"

    @property
    def evidence(self) -> str:
        """How many people the flows rest on, and how sure they are."""
        sure = (
            " Faint arrows are flows that the groups do not resolve; the pointer tells the "
            "interval of each."
            if self.has_intervals
            else ""
        )
        days = ""
        if self.chosen_days:
            days = f" Flows are those of {self.days_words}{self.no_sums}."
        return (
            "Arrows and shades have the same scales on both maps. "
            f"{self.n_individuals:,} people were followed.{sure}{days}"
        )

    def source_words(self, source: str) -> str:
        """Where the flows of a source come from, for a reader who has only a file."""
        words = {
            "estimate": f"learned from groups of M = {self.settings.learn.group_size}",
            "single": "learned from single people, M = 1",
            "counted": "counted before the noise",
        }
        return words[source] + self._on_days(source)

    def source_label(self, source: str) -> str:
        """One of `SOURCE_LABELS`, and which days it is of if some were chosen."""
        return SOURCE_LABELS[source] + self._on_days(source)

    def source_name(self, source: str) -> str:
        """The same in a word or two."""
        group_size = self.settings.learn.group_size
        return {"estimate": f"M = {group_size}", "single": "M = 1", "counted": "counted"}[source]

    def at(self, time: str) -> TimeResult:
        """The models of one time of day."""
        return next(a for a in self.by_time if a.time == time)

    def matrix(
        self, time: str, source: str = ESTIMATE, step: int | None = None, column: str = "count"
    ) -> AnyMoves:
        """People per step from each state to each, (S, S), of one time and source (`SOURCES`).

        Of one ``step`` of the window, from 0, or the mean over all of them. The outside, if there
        is one, is the last state. Columns are count and, of an estimate with intervals, low, high
        and resolved. Where `is_sparse` it is a sparse table, of the same moves whatever is asked.
        """
        self.check(time, source)
        if column != "count":
            interval = self._interval(time, source, step)
            if interval is None or column not in ("low", "high", "resolved"):
                raise InputError(
                    f"These flows have no {column}; ask for count.", code="unknown-column"
                )
            values = np.asarray(getattr(interval, column), dtype=np.float64)
            return moves_like(self._pattern, values)
        found = self.at(time)
        if self.chosen_days:
            if step is not None:
                raise InputError(
                    "Flows of chosen days are not told step by step; leave the step out.",
                    code="unknown-step",
                )
            return self._matrix_of_days(self._slot(time) or 0, source)
        if source != "counted":
            fit = found.fit(source)
            if step is None:
                length = self.settings.window.length
                return flow_matrix(fit.startprob, fit.transmat, found.n_sequences, length)
            return flow_matrix_at(fit.startprob, fit.transmat, found.n_sequences, step)
        steps = range(self.n_steps) if step is None else (step,)
        of_time = self.counted_steps.loc[self.counted_steps["time"] == time]
        rows = of_time.loc[of_time["step"].isin(steps)].sort_values("step", kind="stable")
        counts = filled_like(self._pattern, rows["origin"], rows["dest"], rows["count"])
        return moves_like(counts, entries(counts) / max(len(steps), 1))

    def _interval(self, time: str, source: str, step: int | None) -> Interval | None:
        """The interval around each flow of an estimate, entry by entry; None without any."""
        if source != ESTIMATE or self.step_ends is None or not self.has_intervals:
            return None
        flows, found = entries(self.matrix(time, source, step)), self.at(time)
        if step is not None:
            return interval_by_size(flows, self.step_ends)
        assert found.low is not None, "they are there where there are those of single steps"
        assert found.high is not None, "both ends are kept"
        low, high = entries(found.low), entries(found.high)
        return Interval(low, high, (high - low) / 2 < flows)

    def _rows(self, time: str, source: str, step: int | None, least: float) -> pd.DataFrame:
        flows, interval = self.matrix(time, source, step), self._interval(time, source, step)
        if interval is None:
            return matrix_rows(flows, least)
        # Nobody as learned may be somebody: such a flow is listed as far as it can be.
        people = entries(flows)
        at = ((people != 0) | (interval.high >= LEAST_FLOW)) & (people >= least)
        origin, dest = ends_of(flows, at)
        return pd.DataFrame(
            {
                "origin": origin, "dest": dest, "count": people[at], "low": interval.low[at],
                "high": interval.high[at], "resolved": interval.resolved[at],
            }
        )  # fmt: skip

    @property
    def value_columns(self) -> tuple[str, ...]:
        """The sources, and the ends of the interval of the estimate where there is one."""
        return (*SOURCES, "low", "high") if self.has_intervals else SOURCES

    def matrices(self, time: str) -> dict[str, AnyMoves]:
        """The matrix of each of `value_columns`."""
        found = {source: self.matrix(time, source) for source in SOURCES}
        ends = [name for name in self.value_columns if name not in SOURCES]
        return found | {name: self.matrix(time, column=name) for name in ends}

    def values(self, time: str) -> pd.DataFrame:
        """Origin, dest, each source, and ``difference``, the estimate minus the single people.

        With intervals also low, high and resolved, those of the estimate.
        """
        found = {name: entries(matrix) for name, matrix in self.matrices(time).items()}
        some = np.any([found[source] != 0 for source in SOURCES], axis=0)
        if self.has_intervals:
            some |= found["high"] >= LEAST_FLOW
        origin, dest = ends_of(self._pattern, some)
        sides = {name: people[some] for name, people in found.items()}
        values = pd.DataFrame({"origin": origin, "dest": dest, **sides})
        difference = values["estimate"] - values["single"]
        values.insert(2 + len(SOURCES), "difference", difference)
        if self.has_intervals:
            resolved = entries(self.matrix(time, column="resolved"))[some]
            values["resolved"] = resolved.astype(bool)
        return values

    def observed(self, time: str) -> FloatArray | None:
        """People observed in each state at each step of the window; None of positions."""
        self.check(time)
        return self.at(time).observed

    def parameters(self) -> dict[str, npt.NDArray[np.generic]]:
        """Start and transition probabilities of groups and of single people, by time.

        Of chosen days people per step from each state to each are told, too. Where `is_sparse`
        these and transitions are the entries of sparse tables (CSR), whose ``indices`` and
        ``indptr`` are told besides.
        """
        arrays: dict[str, npt.NDArray[np.generic]] = {
            "times": np.array(self.times_of_day),
            "settings": np.array(json.dumps(self.settings.to_dict(), sort_keys=True)),
        }
        for source in LEARNED:
            fits = [a.fit(source) for a in self._shown]
            arrays[f"{source}_startprob"] = np.stack([fit.startprob for fit in fits])
            arrays[f"{source}_transmat"] = np.stack([entries(fit.transmat) for fit in fits])
        if not isinstance(self._pattern, np.ndarray):
            arrays |= {name: getattr(self._pattern, name) for name in ("indices", "indptr")}
        observed = [a.observed for a in self._shown if a.observed is not None]
        if observed:
            arrays["observed_counts"] = np.stack(observed)
        if self.chosen_days:
            happened = [entries(self.matrix(time)) for time in self.times_of_day]
            arrays["happened"] = np.stack(happened)
        return arrays

    def parameter_tables(self) -> dict[str, pd.DataFrame]:
        """Transitions (time, source, origin, dest, prob) and start (…, cell, prob)."""
        starts, moves = [], []
        origin, dest = ends_of(self._pattern)
        for found in self.by_time:
            for source in LEARNED:
                fit = found.fit(source)
                about = {"time": found.time, "source": source}
                cells = np.arange(self.n_states)
                starts.append(pd.DataFrame({**about, "cell": cells, "prob": fit.startprob}))
                probs = entries(fit.transmat).ravel()
                moves.append(pd.DataFrame({**about, "origin": origin, "dest": dest, "prob": probs}))
        return {"transitions": pd.concat(moves), "start": pd.concat(starts)}

    def summary(self) -> dict[str, Any]:
        """The figures of the study, JSON-ready.

        ``unsettled`` is the largest `Fit.unsettled` of all fits.
        ``movers`` are people per step who change their cell, of all times of day together and of
        each; ``movers_low`` and ``movers_high`` are an interval of nine in ten, and ``ensemble``
        says how many worlds it rests on, 0 if they have too many errors to keep, and how many
        megabytes these take, ``ensemble_by_day`` the same of those that are kept day by day.
        ``days`` are those that were chosen, none for all, and ``n_days_kept`` how many there are
        to choose among. ``beyond_reach`` are sequences left out, `reach_words` says why.
        """
        return {
            "n_individuals": self.n_individuals,
            "days": list(self.chosen_days),
            "n_days_kept": len(self.days),
            "n_sequences": self.n_sequences,
            "n_groups": self.n_groups,
            "n_states": self.n_states,
            "inference": self.settings.learn.inference,
            "learner": self.learner,
            "learner_reason": self.by_time[0].estimate.choice,
            "prior": self.by_time[0].estimate.prior,
            "prior_reason": self.by_time[0].estimate.prior_choice,
            "noise": None if self.noise is None else asdict(self.noise),
            "n_unconverged": sum(a.estimate.n_unconverged for a in self.by_time),
            "iterations": self.iterations,
            "converged": self.converged,
            "unsettled": max(
                fit.unsettled for at in self.by_time for fit in (at.estimate, at.single)
            ),
            "wall_s": round(self.wall_s, 3),
            "dropped": dict(self.dropped),
            "reach_m": self.settings.learn.reach_m,
            "beyond_reach": self.beyond_reach,
            "vs_single": self.vs_single.to_dict(),
            "vs_counted": self.vs_counted.to_dict(),
            "step": self.step_name,
            **self._movers(None),
            "ensemble": told_of(self._ensemble(ESTIMATE)),
            "ensemble_by_day": told_of(
                None if self.by_day is None else self.by_day.estimate.errors
            ),
            "times": [
                {
                    "time": a.time,
                    "n_sequences": a.n_sequences,
                    "n_groups": a.n_groups,
                    "iterations": a.estimate.iterations,
                    "converged": a.estimate.converged,
                    "prior": a.estimate.prior,
                    "single_iterations": a.single.iterations,
                    "single_converged": a.single.converged,
                    "vs_single": a.vs_single.to_dict(),
                    "vs_counted": a.vs_counted.to_dict(),
                    **self._movers(a.time),
                }
                for a in self._shown
            ],
        }

    def _movers(self, time: str | None) -> dict[str, float | None]:
        """People per step who change their cell at a time, or (None) at all, and their interval."""
        times = self.times_of_day if time is None else (time,)
        people = sum(entries(self.matrix(at)) for at in times)
        flows = moves_like(self._pattern, np.asarray(people))
        slot, kept = None if time is None else self._slot(time), self._ensemble(ESTIMATE)
        ends: tuple[float | None, float | None] = (None, None)
        if kept is not None and kept.tells(slot):
            like = flows if self.is_sparse else None
            errors = kept.errors(ESTIMATE, slot, like) / self._steps_erring(time or "", ESTIMATE)
            low, high = around(apart(flows), flows, errors)
            ends = float(low), float(high)
        return {"movers": _moves(flows), "movers_low": ends[0], "movers_high": ends[1]}


def study_steps(
    trajectories: Trajectories,
    settings: StudySettings,
    remembered: Mapping[str, Any] | None = None,
) -> Iterator[Progress | StudyResult]:
    """Run a study; yields `Progress` after every iteration and the `StudyResult` at the end.

    What trials found that is ``remembered`` of a study of the same observations is not tried again.

    Raises
    ------
    InputError
        If nobody is in the extent at the chosen times, or groups would be larger than the
        people there are.
    """
    began, memory = perf_counter(), Remembered(remembered)
    grid, window = settings.grid.make(), settings.window
    sequences, parts = _parts(trajectories, grid, settings)
    allowed, added = _noise_added(sequences, grid, settings.learn)
    start = HMM(
        startprob=np.full(sequences.n_states, 1 / sequences.n_states),
        transmat=distance_decay_transmat(
            grid, outside=sequences.has_outside, reach_m=settings.learn.reach_m
        ),
        emission=added,
    )
    single_only = settings.learn.group_size == 1
    n_fits = len(parts) * (1 if single_only else 2)
    sizes = PeopleSizes.seen(
        sequences, window, settings.learn.group_size, len(trajectories.table),
        None if settings.learn.reach_m is None else entries(start.transmat).size,
    )  # fmt: skip
    shares = course(sizes.stages(settings.learn))
    seen = [
        _observe_and_group(part, trajectories, grid, added, settings.learn, number)
        for number, (_, part) in enumerate(parts)
    ]
    noise = yield from _allowed_noise(seen, start, allowed, settings.learn, n_fits, shares, memory)
    starts = {
        source: replace(start, emission=allowed.emission(noise.of(source))) for source in LEARNED
    }
    as_sparse = settings.learn.reach_m is not None
    results: list[TimeResult] = []
    counted_steps = []
    days = _DayTables([part for _, part in parts], settings.learn, starts, sequences.n_states)
    for part_number, (time, part) in enumerate(parts):
        groups, singles, people = seen[part_number]
        fits: dict[str, Fit] = {}
        for source, observed in (("estimate", groups), ("single", singles)):
            if source == "single" and single_only:
                fits["single"] = fits["estimate"]
                break
            about = {
                "time": time, "source": source, "n_fits": n_fits,
                "fit": part_number * (1 if single_only else 2) + len(fits),
            }  # fmt: skip
            fits[source] = yield from _fit(
                observed, starts[source], settings.learn, about,
                _shares_of(shares, source, part_number), memory,
            )  # fmt: skip
        matrices = {
            source: flow_matrix(fit.startprob, fit.transmat, len(part.states), window.length)
            for source, fit in fits.items()
        }
        days.add(part, (groups, singles), fits, matrices)
        matrices["counted"] = count_matrix(part, sequences.n_states, as_sparse=as_sparse)
        counted_steps += [
            matrix_rows(count_matrix_at(part, step, as_sparse=as_sparse)).assign(
                time=time, step=step
            )
            for step in range(window.length - 1)
        ]
        threshold = settings.learn.threshold
        results.append(
            TimeResult(
                time=time,
                n_sequences=len(part.states),
                n_groups=groups.n_sequences,
                estimate=fits["estimate"],
                single=fits["single"],
                vs_single=compare_flows(matrices["estimate"], matrices["single"], threshold),
                vs_counted=compare_flows(matrices["estimate"], matrices["counted"], threshold),
                observed=people,
            )
        )
    doubts = None
    of_days = days.made(window.length - 1)
    if settings.learn.replicates:
        learned = [
            _learned(groups, part.window, starts["estimate"], found.estimate, settings.learn)
            for (_, part), (groups, _, _), found in zip(parts, seen, results, strict=True)
        ]
        doubts = yield from _doubted(
            learned,
            [time for time, _ in parts],
            settings.learn,
            shares["doubting/estimate", 0],
            days.days,
        )
        of_days = None if of_days is None else of_days.told(doubts.of_days)
        results = [
            replace(
                found,
                low=moves_like(found.estimate.transmat, interval.low),
                high=moves_like(found.estimate.transmat, interval.high),
            )
            for found, interval in zip(results, doubts.intervals, strict=True)
        ]
    found = StudyResult(
        settings=settings,
        n_individuals=sequences.n_individuals,
        n_states=sequences.n_states,
        has_outside=sequences.has_outside,
        dropped=dict(sequences.dropped),
        by_time=tuple(results),
        counted_steps=pd.concat(counted_steps, ignore_index=True),
        vs_single=results[0].vs_single,
        vs_counted=results[0].vs_counted,
        wall_s=0.0,
        noise=noise,
        step_ends=None if doubts is None else doubts.step_ends,
        ensemble=None if doubts is None else doubts.ensemble,
        by_day=of_days,
        remembered=memory.found,
    )
    yield replace(found._compared_again(), wall_s=perf_counter() - began)


def _compared(result: StudyResult, truth: str) -> FlowComparison:
    """The flows of all times together."""
    estimate, true = (
        [result.matrix(name, source) for name in sorted(result.times_of_day)]
        for source in ("estimate", truth)
    )
    return compare_flows(estimate, true, result.settings.learn.threshold)


def _shares_of(shares: Course, source: str, part: int) -> dict[str, tuple[float, float]]:
    """Those of the stages of a fit; what was not foreseen is no share."""
    learning = shares[f"learning/{source}", part]
    none = learning[0], learning[0]
    return {"choosing": shares.get((f"choosing/{source}", part), none), "learning": learning}


def _moves(flows: AnyMoves) -> float:
    """People per step who do not stay."""
    return float(entries(flows).sum() - diagonal(flows).sum())


def reach_words(beyond: int, kept: int, reach_m: float | None) -> str:
    """What is said of sequences left out as they have moves beyond the reach; empty without any."""
    if not beyond or reach_m is None:
        return ""
    return (
        f"{beyond:,} of {beyond + kept:,} sequences are left out, as somebody moved farther than "
        f"{reach_m / 1000:g} km in a step; raise the farthest move in a step to keep them."
    )


def _check_group_size(part: Sequences, group_size: int) -> None:
    most = int(np.bincount(part.window).max())
    if group_size > most:
        raise InputError(
            f"The group size M = {group_size} is larger than the {most} people that any one "
            "window holds; choose a smaller M, a wider extent or more data.",
            code="group-too-large",
        )


def observed_at(
    trajectories: Trajectories, settings: StudySettings, time: str
) -> tuple[Sequences, IntArray, Aggregates]:
    """What a study of cells learns from at a time of day, and what it was made of.

    Returns the sequences of true cells, the cells in which the same people are counted once noise
    is added, (N, T), and the counts of groups.

    Raises
    ------
    InputError
        If the study has no such time, nobody is in the extent then, groups would be larger than
        the people there are, or positions are observed.
    """
    if settings.learn.observed == "positions":
        raise InputError(
            "Positions are not counted in cells; choose counts of people per cell.",
            code="no-cells-observed",
        )
    grid = settings.grid.make()
    sequences, parts = _parts(trajectories, grid, settings)
    times = [at for at, _ in parts]
    if time not in times:
        raise InputError(
            f"The study has no time {time}; choose one of {', '.join(times)}.",
            code="unknown-start-time",
        )
    _, added = _noise_added(sequences, grid, settings.learn)
    number = times.index(time)
    part = parts[number][1]
    groups, singles, _ = _observe_and_group(part, trajectories, grid, added, settings.learn, number)
    return part, singles.symbol.reshape(part.states.shape), groups


def check_people(trajectories: Trajectories, settings: StudySettings) -> None:
    """Refuse what a study would refuse before it learns.

    Raises
    ------
    InputError
        If nobody is in the extent at the chosen times, or groups would be larger than the
        people there are.
    """
    _parts(trajectories, settings.grid.make(), settings)


def likelihoods_of_people(trajectories: Trajectories, result: StudyResult) -> dict[str, float]:
    """How likely the learned chains find what single people showed, in nats per person.

    Of the chains learned from groups ("estimate") and from single people ("single"): the mean over
    all sequences of the logarithm of their chance, -inf where one cannot happen. ``trajectories``
    are those that the result was learned from.
    """
    settings, noise = result.settings, result.noise
    grid = settings.grid.make()
    sequences, parts = _parts(trajectories, grid, settings)
    allowed, added = _noise_added(sequences, grid, settings.learn)
    assert noise is not None, "studies of today tell it"
    total = dict.fromkeys(LEARNED, 0.0)
    for number, ((_, part), found) in enumerate(zip(parts, result.by_time, strict=True)):
        _, singles, _ = _observe_and_group(part, trajectories, grid, added, settings.learn, number)
        for source in LEARNED:
            fit = found.fit(source)
            emission = allowed.emission(noise.of(source))
            total[source] += log_likelihood(HMM(fit.startprob, fit.transmat, emission), singles)
    return {source: found / len(sequences) for source, found in total.items()}


def _parts(
    trajectories: Trajectories, grid: BaseGrid, settings: StudySettings
) -> tuple[Sequences, list[tuple[str, Sequences]]]:
    """All windows of people, and those that are learned from together: of one time of day each."""
    window = settings.window
    sequences = to_sequences(
        trajectories, grid, step=window.step, length=window.length,
        start=list(window.times) or None, max_gap=window.max_gap,
    )  # fmt: skip
    if settings.learn.reach_m is not None:
        sequences = _within_reach(sequences, grid, settings.learn.reach_m, window.times)
    parts = [(a, sequences.at_time(a)) for a in window.times] or [(ALL_DAY, sequences)]
    for _, part in parts:
        _check_group_size(part, settings.learn.group_size)
    return sequences, parts


def _within_reach(
    sequences: Sequences, grid: BaseGrid, reach_m: float, times: tuple[str, ...]
) -> Sequences:
    """Those of whose moves all are allowed; the others are counted.

    Raises
    ------
    InputError
        If nobody is left, at some time of day.
    """
    allowed = allowed_moves(grid, reach_m, outside=sequences.has_outside)
    states = sequences.states
    origin, dest = states[:, :-1].ravel(), states[:, 1:].ravel()
    is_near = at_pairs(allowed, origin, dest).reshape(len(states), -1) > 0
    left = np.asarray(~is_near.all(axis=1))
    found = sequences.without(left, BEYOND_REACH)
    gone = [time for time in times if time not in found.times] if len(found) else [ALL_DAY]
    if gone:
        raise InputError(
            f"Everybody moves farther than {reach_m / 1000:g} km in some step ({gone[0]}), so that "
            "nobody is left; raise the farthest move in a step.",
            code="reach-too-small",
        )
    return found


def _noise_added(
    sequences: Sequences, grid: BaseGrid, learn: LearnSettings
) -> tuple[Noise, Emission]:
    """How wrongly people may be observed, and the noise that the study adds of that kind."""
    allowed = _noise_of(grid, learn, outside=sequences.has_outside)
    return allowed, allowed.emission(_added(learn))


def _noise_of(grid: BaseGrid, learn: LearnSettings, *, outside: bool) -> Noise:
    """How wrongly a person in a cell may be observed."""
    if learn.observed == "positions":
        return Blurring.on_grid(grid, outside=outside)
    return Misplacing.on_grid(
        grid, learn.sigma_m, outside=outside, is_sparse=learn.reach_m is not None
    )


def _added(learn: LearnSettings) -> float:
    """How much of that noise the study adds."""
    return learn.sigma_m if learn.observed == "positions" else learn.misclassify


def _allowed_noise(
    seen: Sequence[tuple[Aggregates, Aggregates, FloatArray | None]],
    start: HMM,
    noise: Noise,
    learn: LearnSettings,
    n_fits: int,
    shares: Course,
    memory: Remembered,
) -> Generator[Progress, None, AllowedNoise]:
    """The noise that learners allow for: one amount for all times of day.

    Groups and single people learn it each from what is known of them. One that is given is held
    against that of single people, who tell it best. ``shares`` of all work are those of stages.
    """
    metres = learn.observed == "positions"
    unit = "metres" if metres else "share"
    given = (learn.assumed_m if metres else learn.assumed) if learn.noise == "given" else None
    if given is not None and start.n_states > TESTED_STATES:
        return AllowedNoise(given, given, learned=False, unit=unit)
    # Groups tell it by all moves alone: with a reach what single people tell is allowed for.
    alone = learn.group_size == 1 or learn.reach_m is not None
    stages = {"single": [singles for _, singles, _ in seen]}
    if given is None and not alone:
        stages["estimate"] = [groups for groups, _, _ in seen]
    found: dict[str, LearnedNoise] = {}
    for source, observed in stages.items():
        key = fingerprint("amount", observed, start.startprob, start.transmat, noise, given)
        known = memory.get(key)
        if known is not None:
            found[source] = LearnedNoise(**known)
            continue
        about = {
            "time": ALL_DAY, "source": "estimate" if learn.group_size == 1 else source, "fit": 0,
            "n_fits": n_fits,
            "people": int(sum(part.n_individuals for part in observed)),
        }  # fmt: skip
        # What was not foreseen is no share.
        share = shares.get((f"noise/{about['source']}", 0), (0.0, 0.0))
        found[source] = yield from _told(
            noise_steps(observed, start, noise, given), about, share, stage="noise",
            n_iter=n_noise_steps(stated=given is not None),
        )  # fmt: skip
        memory.put(key, asdict(found[source]))
    single = found["single"]
    if given is not None:
        told = ""
        if single.contradicted and single.amount is not None:
            told = _contradiction(given, single.amount, metres=metres)
        return AllowedNoise(given, given, learned=False, told=told, unit=unit)
    amounts = {source: of.amount for source, of in found.items() if of.amount is not None}
    told = "" if len(amounts) == len(found) else (
        f"The fixes are too few, or their windows too short, to tell the noise of "
        f"{'groups' if 'single' in amounts else 'people'}, so that the noise that was added is "
        "allowed for."
    )  # fmt: skip
    of_single = amounts.get("single", _added(learn))
    of_groups = of_single if alone else amounts.get("estimate", _added(learn))
    return AllowedNoise(of_groups, of_single, learned=bool(amounts), told=told, unit=unit)


def _contradiction(given: float, learned: float, *, metres: bool) -> str:
    """What the fixes say of noise that was given."""
    more = learned > given
    if metres:
        much, little = ("much", "little") if more else ("little", "much")
        return (
            f"The fixes themselves look as if they were off by {learned:,.0f} metres and not "
            f"{given:,.0f}, so that too {much} movement is learned: too {little} of it is taken "
            "for noise."
        )
    much, few = ("much", "few") if more else ("little", "many")
    return (
        f"The fixes themselves look as if {learned:.1%} of them lay in a neighbour cell and not "
        f"{given:.1%}, so that too {much} movement is learned: too {few} of them are taken for "
        "misplaced."
    )


def _observe_and_group(
    part: Sequences,
    trajectories: Trajectories,
    grid: BaseGrid,
    emission: Emission,
    learn: LearnSettings,
    number: int,
) -> tuple[Aggregates, Aggregates, FloatArray | None]:
    """The same noisy observations in groups of M, person by person, and all together by cell."""
    noise, grouping = np.random.default_rng([learn.seed, number]).spawn(2)
    if isinstance(emission, CategoricalEmission):
        symbols = emission.sample(part.states, noise)
        n_symbols = emission.emissionprob.shape[1]
        groups = aggregate(symbols, learn.group_size, n_symbols, grouping, within=part.window)
        people = [np.bincount(at, minlength=n_symbols) for at in symbols.T]
        return groups, aggregate(symbols, 1, n_symbols), np.array(people, dtype=np.float64)
    lon, lat = (trajectories.table[name].to_numpy()[part.fixes] for name in ("lon", "lat"))
    places = grid_positions(grid, np.stack([lon, lat], axis=-1), learn.sigma_m, noise)
    groups = aggregate_points(places, learn.group_size, grouping, within=part.window)
    return groups, aggregate_points(places, 1), None


def _fit(
    observed: Aggregates,
    start: HMM,
    learn: LearnSettings,
    about: Mapping[str, Any],
    shares: Mapping[str, tuple[float, float]],
    memory: Remembered,
) -> Generator[Progress, None, Fit]:
    """Learn one model with the emission known; returns the `Fit`.

    One that was learned, or begun, before the work was stopped is taken from its checkpoints. What
    progress is told ``about`` all its stages, and the ``shares`` of all work that these are.
    """
    began, kept = perf_counter(), checkpoints()
    name = f"fit/{about['time']}/{about['source']}"
    before = kept.get(name)
    if before is not None:
        return cast(Fit, before)
    of_groups = about["source"] == "estimate"
    # Single people hide nothing: their exact likelihood is the truth for every learner.
    asked = learn.inference if of_groups else PAPERS
    calibrate = learn.calibrate if of_groups else 0
    pulled = learn.pulled and of_groups
    prior = PriorChoice(learn.prior, "")
    told = {**about, "people": int(observed.n_individuals)}
    if pulled and learn.strength == "auto":
        key = fingerprint("prior", observed, start, asked, calibrate, learn.seed)
        known = memory.get(key)
        if known is not None:
            prior = PriorChoice(**known)
        else:
            steps = prior_steps(
                observed, start, inference=asked, fixed=("emission",), calibrate=calibrate,
                random_state=learn.seed, name=f"{name}/prior",
            )  # fmt: skip
            prior = yield from _told(
                steps, told, shares["choosing"], n_iter=n_trial_steps(observed), stage="choosing"
            )
            memory.put(key, asdict(prior))
    model = AggregateHMM(
        start.n_states,
        "categorical" if isinstance(start.emission, CategoricalEmission) else "gaussian",
        asked,
        n_iter=learn.iterations,
        tol=FIT_TOL,
        fixed=("emission",),
        init=start,
        init_params=LEAST_SQUARES if of_groups and learn.start == LEAST_SQUARES else "random",
        prior=prior.prior,
        calibrate=calibrate,
        random_state=learn.seed,
    )
    known = (start, start.startprob, start.transmat, start.emission, observed)
    last = yield from _told(
        _last_of(model.fit_steps(observed, kept.course(f"{name}/course", known))), told,
        shares["learning"], stage="learning", n_iter=learn.iterations,
    )  # fmt: skip
    monitor, choice = model.monitor_, model.choice_
    if monitor.reason == "failed":
        raise InputError(monitor.message, code="learning-failed")
    # The flows are those of the people who were observed, not of the prior's.
    found = model.hmm_ if last.of_people is None else last.of_people
    fit = Fit(
        startprob=found.startprob,
        transmat=found.transmat,
        history=tuple(monitor.history),
        reason=monitor.reason,
        change=monitor.change,
        n_unconverged=monitor.n_unconverged,
        wall_s=perf_counter() - began,
        learner=choice.learner,
        choice=choice.reason if asked == AUTO else "",
        prior=prior.prior if pulled else None,
        prior_choice=prior.reason,
    )
    kept.put(name, fit)
    return fit


def _learned(
    groups: Aggregates, window: IntArray, start: HMM, fit: Fit, learn: LearnSettings
) -> Learned:
    """How the flows of a time of day were learned from its groups; ``window`` as below."""
    return Learned(
        observed=groups,
        within=_windows_of_groups(window, learn.group_size),
        start=start,
        chain=replace(start, startprob=fit.startprob, transmat=fit.transmat),
        learner=fit.learner,
        prior=learn.prior if fit.prior is None else fit.prior,
        n_iter=learn.iterations,
        tol=FIT_TOL,
        calibrate=learn.calibrate,
        by_least_squares=learn.start == LEAST_SQUARES,
    )


def _windows_of_groups(window: IntArray, group_size: int) -> IntArray:
    """The window of each group.

    ``window`` (N,) is that of each sequence: its people were cut into groups, window by window, but
    for single people, who stay as they are.
    """
    if group_size == 1:
        return window
    windows, people = np.unique(window, return_counts=True)
    return np.repeat(windows, -(-people // group_size))


class _DayTables:
    """Takes in times of day one after the other, and keeps what happened on each of several days.

    ``days`` are None where all people were observed on one.
    """

    def __init__(
        self,
        parts: Sequence[Sequences],
        learn: LearnSettings,
        starts: Mapping[str, HMM],
        n_states: int,
    ) -> None:
        found = ObservedDays.of(parts)
        self.days = found if found.n_days > 1 else None
        self.learn, self.starts = learn, starts
        self.rng = np.random.default_rng([learn.seed, DAYS_SEED])
        self.tables = {source: PairTables(n_states) for source in SOURCES}
        self.sequences: list[IntArray] = []
        self.groups: list[IntArray] = []
        self.observed: list[FloatArray] = []

    def add(
        self,
        part: Sequences,
        observed: tuple[Aggregates, Aggregates],
        fits: Mapping[str, Fit],
        matrices: Mapping[str, AnyMoves],
    ) -> None:
        """Take in a time of day: its groups and single people, and what was learned of them."""
        if self.days is None:
            return
        place, n_days = len(self.sequences), self.days.n_days
        of_window, first = self.days.of_window[place], place * n_days
        day, steps = of_window[part.window], observed[0].length - 1
        for source, seen in zip(LEARNED, observed, strict=True):
            fit, size = fits[source], self.learn.group_size if source == ESTIMATE else 1
            of_groups = of_window[_windows_of_groups(part.window, size)]
            if source == ESTIMATE:
                self.groups.append(np.bincount(of_groups, minlength=n_days))
            elif self.learn.group_size == 1:
                self.tables[source] = self.tables[ESTIMATE]
                continue
            chain = replace(self.starts[source], startprob=fit.startprob, transmat=fit.transmat)
            flows = matrices[source]
            total = moves_like(flows, steps * entries(flows))
            tables = moves_by_day(chain, seen, of_groups, total, random_state=self.rng)
            for number, table in tables:
                self.tables[source].add(first + number, table)
        self.sequences.append(np.bincount(day, minlength=n_days))
        counted = self.tables["counted"]
        for number in np.unique(day):
            mine = replace(part, **_rows_of(part, day == number))
            moves = count_matrix(mine, counted.n_states, as_sparse=self.learn.reach_m is not None)
            counted.add(first + int(number), moves_like(moves, steps * entries(moves)))
        if observed[1].points is None:
            self.observed.append(_people_by_day(observed[1], day, n_days))

    def made(self, n_steps: int) -> PeopleDays | None:
        """What happened on each day, of all times that were taken in; None of a single day."""
        if self.days is None:
            return None
        sequences, groups = (np.stack(n, axis=1) for n in (self.sequences, self.groups))
        return PeopleDays.of(self.days, self.tables, sequences, groups, n_steps, self.observed)


def _rows_of(part: Sequences, chosen: npt.NDArray[np.bool_]) -> dict[str, Any]:
    """Fields of some of the sequences."""
    names = ("states", "fixes", "weights", "individual", "window")
    return {name: getattr(part, name)[chosen] for name in names}


def _people_by_day(singles: Aggregates, day: IntArray, n_days: int) -> FloatArray:
    """People observed in each state at each step of each day, (D, T, S)."""
    counts = np.zeros((n_days, singles.length, singles.n_symbols))
    sequence, step = np.divmod(singles.step_of_token, singles.length)
    np.add.at(counts, (day[sequence], step, singles.symbol), singles.count)
    return counts


def _doubted(
    learned: Sequence[Learned],
    times: Sequence[str],
    learn: LearnSettings,
    share: tuple[float, float],
    days: ObservedDays | None,
) -> Generator[Progress, None, Doubts]:
    """What simulated worlds tell of the flows learned from groups, a ``share`` of all work.

    Of ``days`` they tell that of flows on chosen days, too.
    """
    rng = np.random.default_rng([learn.seed, WORLDS_SEED])
    worlds = None
    if days is not None:
        chance = np.random.default_rng([learn.seed, WORLDS_SEED, DAYS_SEED])
        worlds = DayWorlds(days, learned[0].chain.n_states, chance)
    steps = doubt_steps(learned, learn.replicates, rng, days=worlds)

    def tell(state: LearnState) -> Progress:
        place = (state.iteration - 1) % len(times)
        return Progress(
            time=times[place], source="estimate", fit=0, n_fits=1, iteration=state.iteration,
            n_iter=learn.replicates * len(times), free_energy=state.free_energy,
            change=state.change, people=learned[place].n_people, stage="doubting",
            begins=share[0], ends=share[1],
        )  # fmt: skip

    return (yield from relayed(steps, tell))


WORLDS_SEED = 2**16
"""What sets the numbers that worlds are drawn by apart from those of noise and groups."""

DAYS_SEED = 2**17
"""The same of those by which what happened on single days is drawn."""

Result = TypeVar("Result")


def _told(
    steps: Generator[Iteration, None, Result],
    about: Mapping[str, Any],
    share: tuple[float, float],
    **stage: Any,
) -> Generator[Progress, None, Result]:
    """The progress of iterations that are a share of all work; returns what these return."""

    def tell(state: Iteration) -> Progress:
        return Progress(
            **about, **stage, iteration=state.iteration, free_energy=state.free_energy,
            change=state.change, begins=share[0], ends=share[1],
        )  # fmt: skip

    return (yield from relayed(steps, tell))


def _last_of(steps: Iterator[LearnState]) -> Generator[LearnState, None, LearnState]:
    """The iterations; returns the last one."""
    state = next(steps)
    yield state
    for state in steps:
        yield state
    return state


BASE_BYTES = 250e6
"""The program itself with its libraries and compiled kernels."""

FIX_BYTES = 250
"""A fix, while a file of them is read and cut into sequences."""

TOKEN_BYTES = 120
"""A person at a step, while the messages of a learner are kept."""

TIME_TABLES = 6
"""Tables (d, d) of a time of day: two chains that are kept, and their flows at the comparison."""

WORLD_TABLES = 8
"""Tables (d, d) of a time of day in simulated worlds: errors, their squares, ends of intervals."""


ENTRY_BYTES, TABLE_BYTES = 16, 8
"""An entry of a sparse table with where it is, and one of a whole table."""


def estimate_megabytes(
    n_people: int, n_fixes: int, grid: BaseGrid, settings: StudySettings
) -> float:
    """Peak memory of a study in MB, within a factor of about 1.5.

    Each person is taken to have one window a time of day; without times of day the windows are as
    many as the fixes allow. What the learner holds grows with the square of the cells, or with the
    moves within a reach. How long a study takes is told by `agg_core.study.lasting`.
    """
    window, learn = settings.window, settings.learn
    sequences = n_people * len(window.times) if window.times else n_fixes // window.length
    tables = LEARNERS[learn.inference].tables
    each = TIME_TABLES + (WORLD_TABLES if learn.replicates else 0)
    tables += each * max(len(window.times), 1)
    held = n_fixes * FIX_BYTES + sequences * window.length * TOKEN_BYTES
    if learn.reach_m is None:
        table = TABLE_BYTES * float(grid.n_cells) ** 2
    else:
        table = ENTRY_BYTES * float(n_moves_within(grid, learn.reach_m))
    return float(BASE_BYTES + held + tables * table) / 1e6
