"""From a table of counts to flows: the whole way, with what chooses, checks and doubts them."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import chain, count
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from agg_core.base.checkpoints import checkpoints
from agg_core.base.engine import current
from agg_core.base.errors import InputError
from agg_core.base.moves import (
    AnyMoves,
    ends_of,
    places_of,
)
from agg_core.base.relay import relayed
from agg_core.base.remembered import Remembered, fingerprint
from agg_core.counts.certainty import people_by_slot, replicates
from agg_core.counts.checks import Doubt, doubts_of
from agg_core.counts.choosing import (
    DENSE,
    DRAWN,
    FEW,
    Candidate,
    Shape,
    Trial,
    Weighed,
    best_trial,
    learn_flows,
    learners_for,
    most_iterations,
    strength_between,
    strengths_about,
    timed_pairs,
    try_candidates,
    weigh_beside,
)
from agg_core.counts.crossings import met_by_gates
from agg_core.counts.days import DayErrors, flows_by_day
from agg_core.counts.held_out import Prediction, gravity_prediction, held_out_days, predict
from agg_core.counts.identify import Identifiability, identifiability, near_identifiability
from agg_core.counts.local import Nearby
from agg_core.counts.local_flows import (
    local_gravity,
    local_happened,
    local_prediction,
    moved_as,
    of_people,
)
from agg_core.counts.measuring import (
    Measured,
    common_unit,
    exact_pairs,
    measured_again,
    measuring_steps,
)
from agg_core.counts.pairs import DAY_TYPES, WEEKEND, CountPairs, over_day_types, pairs_of
from agg_core.counts.posterior import happened_flows
from agg_core.counts.rows import Strength
from agg_core.counts.window import local_movement_factor, window_of
from agg_core.counts.worlds import movement_factor, with_movement
from agg_core.model.hmm import distance_decay_transmat
from agg_core.space.settings import AnyGridSettings, grid_to_dict
from agg_core.study.crossings import GatesBeside, check_beside, check_gates, with_gates
from agg_core.study.day_types import DayTypes, apart_words
from agg_core.study.happened import (
    HAPPENED,
    LEAST_FLOW,
    MOST_R_HAT,
    DoubtedFlows,
    HappenedFlows,
    HappenedResult,
)
from agg_core.study.lasting import (
    TRIALS_OF_PRIOR,
    CountSizes,
    Course,
    course,
    trials_of_times,
)
from agg_core.study.other_evidence import OtherEvidence, beside_sentences, with_evidence
from agg_core.study.result import ESTIMATE, WHOLE_DAY, States
from agg_core.study.settings import CountLearnSettings
from agg_core.tables.counts import CountTable
from agg_core.tables.crossings import CrossingTable
from agg_core.tables.ensemble import Ensemble, EnsembleMaker, told_of

__all__ = [
    "HAPPENED",
    "USUAL",
    "CountProgress",
    "CountStudy",
    "HappenedFlows",
    "check_identifiable",
    "count_study_steps",
    "move_shape",
]

FloatArray = npt.NDArray[np.float64]

USUAL = "usual"
"""The other estimate that worlds have errors of, beside what happened: learned chances of moves
times the people there."""

STAY = 0.6


WORDS = {
    DRAWN: "cells hold few people, so that who went where is drawn at random, many times",
    DENSE: "cells hold many people, so that counts are near normal",
}

WORDS_NEARBY = "moves within a reach are learned from means and covariances of counts"

MEASURINGS = {True: 9, False: 3}
"""Steps by which the error of counts is learned, or used where it is given, about."""

MOST_PART = 0.7
"""Part of a stage up to which it rises with its steps, if as many are made as are expected."""


@dataclass(frozen=True)
class CountProgress:
    """Where a study of counts stands: a stage, its state in words, share of all work done."""

    stage: str
    message: str
    share: float


@dataclass(frozen=True)
class CountStudy(HappenedResult):
    """Flows learned from counts, and what is known of how good they are.

    The estimate is what happened on the days that were counted; beside it stands what usually
    happens, `USUAL`. Runs that were saved before what happened was found have the usual flows only,
    which are their estimate.

    Attributes
    ----------
    settings : what was asked for
    slots : labels of the times of day at which a step begins
    grid : the cells, None where they have no place
    transmats : (H, d, d) chances of moves at each time of day, or (1, d, d); of moves within a
        reach (H, n) or (1, n), those of ``pattern``
    people : (H, d) at the beginning of a step, on an average day
    flows : slot, origin, dest, count, low, high, resolved: usual people per step on an average day
        with an interval of nine in ten, NaN without replicates; stays are rows like others
    day_flows : the same without slot, a mean over all steps
    candidates : learner, prior, hours, own, day_types (whether some are apart), apart (their
        names), score, chosen: what was tried on counts kept aside
    held_out : method, mae, rmse, score of predictions of counts kept aside
    identifiability : what the counts tell without a prior
    learner, choice : who learned, and why
    n_left_out : pairs of moments that a count was missing of
    n_filled : suppressed counts that were filled in
    step_minutes : usual time from a moment to the next, None in runs that were saved without it
    happened : what happened on these days, None in runs that were saved without it
    count_error, count_error_low, count_error_high : standard deviation of the error of a count over
        the count, 0 for exact ones, and an interval of nine in ten; None in runs saved without it
    error_learned : whether the counts told their error, rather than who asked
    expansion : people that each one who was counted stands for
    movement : factor of the learned movement, which simulated worlds told
    day_types : whether types of days were told apart; transitions are means over all of them
    steps : steps that were learned from at each time of day, (H,), None in runs that were saved
        without it
    ensemble : errors of whole flow tables of all days in simulated worlds, which give sums an
        interval; None with fewer than two worlds, and in runs that were saved without it
    chosen_days : days that ``happened`` and ``steps`` are of (see `of_days`); none for all of them
    doubts : what the counts show that the learned flows do not explain (see
        `agg_core.counts.checks.doubts_of`), none in runs that were saved without it, and of moves
        within a reach
    pattern : moves within the reach that was given, and stays, a sparse table (d, d) of n entries;
        None where all moves are learned
    typed_days : types of days, which days are of each and which were told apart; None where dates
        are not known, and in runs that were saved without it
    gates : gates that were learned from beside the counts, and what they contradict; None without
    known_beside : what is to be told of a panel and of an old matrix, in plain JSON types; empty
        without either, and in runs that were saved without it
    """

    kind = "counts"

    settings: CountLearnSettings
    slots: tuple[str, ...]
    grid: AnyGridSettings | None
    cells: tuple[str, ...]
    has_outside: bool
    transmats: FloatArray
    people: FloatArray
    flows: pd.DataFrame
    day_flows: pd.DataFrame
    candidates: pd.DataFrame
    held_out: pd.DataFrame
    identifiability: Identifiability
    learner: str
    choice: str
    n_pairs: int
    n_days: int
    n_left_out: int
    n_filled: int
    wall_s: float
    step_minutes: float | None = None
    happened: HappenedFlows | None = None
    count_error: float | None = None
    count_error_low: float | None = None
    count_error_high: float | None = None
    error_learned: bool = False
    expansion: float = 1.0
    movement: float = 1.0
    day_types: bool = False
    steps: tuple[int, ...] | None = None
    ensemble: Ensemble | None = None
    chosen_days: tuple[str, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    remembered: Mapping[str, Any] = field(default_factory=dict)
    """What trials found (see `agg_core.base.remembered`)."""
    pattern: sparse.csr_array | None = None
    typed_days: DayTypes | None = None
    gates: GatesBeside | None = None
    known_beside: Mapping[str, Any] = field(default_factory=dict)

    @property
    def types_apart(self) -> tuple[str, ...]:
        """Types of days that were told apart from others."""
        if self.typed_days is None:
            return DAY_TYPES[WEEKEND:] if self.day_types else ()
        return tuple(each.name for each in self.typed_days.types if each.apart)

    @property
    def is_sparse(self) -> bool:
        """Whether moves within a reach alone were learned."""
        return self.pattern is not None

    @property
    def n_cells(self) -> int:
        """Cells of the table."""
        return len(self.cells)

    @property
    def states(self) -> States:
        """Cells and outside."""
        grid = None if self.grid is None else self.grid.make()
        return States(self.cells, grid, self.has_outside)

    @property
    def days_by_type(self) -> Mapping[str, tuple[str, ...]]:
        """Days that what happened is kept of, by their type."""
        if self.typed_days is None:
            work = np.is_busday(np.array(self.days, dtype="datetime64[D]"))
            of_type = dict(zip(self.days, np.where(work, *DAY_TYPES).tolist(), strict=True))
            names = list(DAY_TYPES)
        else:
            types = self.typed_days.types
            of_type = {day: each.name for each in types for day in each.days}
            names = [each.name for each in types]
        found = {name: tuple(d for d in self.days if of_type.get(d) == name) for name in names}
        return {name: days for name, days in found.items() if days}

    @property
    def basis(self) -> str:
        """How many counts of how many days."""
        days = f"{self.n_days:,} {'day' if self.n_days == 1 else 'days'}"
        return f"{self.n_pairs:,} pairs of successive counts of {days}"

    @property
    def doubt_of_counts(self) -> str:
        """How far the counts err, and how many people each counted one stands for, in words."""
        if self.count_error is None:
            return ""
        said = f"{self.count_error:.1%}".replace(".0%", "%").replace("%", " %")
        if not self.count_error:
            words = "These counts are taken to be exact"
            words += "." if self.error_learned else ": their error was not learned."
        elif not self.error_learned:
            words = f"These counts are taken to err by {said}, as was given."
        else:
            low, high = 100 * (self.count_error_low or 0.0), 100 * (self.count_error_high or 0.0)
            words = (
                f"These counts err by about {said} (between {low:.1f} and {high:.1f} %, with a "
                "chance of nine in ten): changes within that are not taken for people who "
                "move, and small flows between large cells cannot be told."
            )
        if self.expansion > 1:
            words += f" Each one who was counted stands for about {self.expansion:.3g} people."
        return words

    @property
    def evidence(self) -> str:
        """How many counts the flows rest on, how sure they are, and the first of `doubts`."""
        sure = (
            "Faint arrows are flows that the counts do not resolve; the pointer tells the interval "
            "of each."
            if self.has_intervals
            else "How sure the flows are is not known."
        )
        days = ""
        if self.chosen_days:
            days = (
                f" What happened is that of {self.days_words}, a mean over its steps{self.no_sums}."
            )
        doubt = f" {self.doubts[0].sentence}" if self.doubts else ""
        gates = "" if self.gates is None else f"{self.gates.words} "
        beside = "".join(f"{sentence} " for sentence in beside_sentences(self.known_beside))
        basis = f"{self.basis} were learned from. {gates}{beside}"
        return f"{basis}{self.reach_words}{sure}{days}{doubt}"

    @property
    def reach_words(self) -> str:
        """Which moves were looked at, and what is not known of them; nothing if all were."""
        if self.settings.reach_m is None:
            return ""
        return (
            f"Moves of up to {self.settings.reach_m / 1000:g} km in a step alone were looked at; "
            "the counts were not searched for what contradicts them. "
        )

    @property
    def sources(self) -> tuple[str, ...]:
        """What happened and what is usual; of runs saved before only the latter."""
        return (ESTIMATE,) if self.happened is None else (ESTIMATE, USUAL)

    def source_words(self, source: str) -> str:
        """Where the flows come from, for a reader who has only a file."""
        return f"{self._label(source).lower()}{self._on_days(source)}, learned from counts alone"

    def source_label(self, source: str) -> str:
        """Whether it happened or is usual."""
        return self._label(source) + self._on_days(source)

    def _label(self, source: str) -> str:
        return "What happened" if self._as_happened(source) else "What usually happens"

    def source_name(self, source: str) -> str:
        """The same in a word."""
        return "happened" if self._as_happened(source) else "usual"

    def _as_happened(self, source: str) -> bool:
        return source == ESTIMATE and self.happened is not None

    def _erring(self, source: str) -> str:
        return HAPPENED if self._as_happened(source) else USUAL

    @property
    def _timed(self) -> pd.DataFrame:
        return self.flows

    @property
    def _worlds(self) -> int:
        return self.settings.worlds

    def _tables(self, source: str) -> HappenedFlows | CountStudy:
        return self if self.happened is None or source == USUAL else self.happened

    @property
    def value_columns(self) -> tuple[str, ...]:
        """The count of each source, and the ends of its interval where there is one."""
        return tuple(name for _, _, name in self._valued)

    @property
    def _valued(self) -> list[tuple[str, str, str]]:
        """Each source, its column in `rows`, and the name of that among `value_columns`."""
        columns = ("count", "low", "high") if self.has_intervals else ("count",)
        usual = {"count": USUAL, "low": "usual_low", "high": "usual_high"}
        return [
            (source, column, column if source == ESTIMATE else usual[column])
            for source in self.sources
            for column in columns
        ]

    def matrices(self, time: str) -> dict[str, AnyMoves]:
        """The matrix of each of `value_columns`."""
        return {
            name: self.matrix(time, source, column=column) for source, column, name in self._valued
        }

    def values(self, time: str) -> pd.DataFrame:
        """Origin, dest, `value_columns` and, with intervals, ``resolved`` of each source.

        That of what is usual is ``usual_resolved``; a flow that one of them lacks is 0 there.
        """
        ends = ["origin", "dest"]
        resolved = {ESTIMATE: "resolved", USUAL: "usual_resolved"}
        sides = []
        for source in self.sources:
            names = {column: name for of, column, name in self._valued if of == source}
            if self.has_intervals:
                names["resolved"] = resolved[source]
            side = self.rows(time, source).rename(columns=names)
            sides.append(side.set_index(ends)[list(names.values())])
        values = pd.concat(sides, axis=1).sort_index()
        known = [name for name in resolved.values() if name in values]
        values[known] = values[known].eq(True)
        return values.fillna(0.0).reset_index()

    def summary(self) -> dict[str, Any]:
        """Figures of flows from counts in plain JSON types; None where a figure has no meaning.

        ``movers`` are people per step of the estimate who change their cell, in the mean over a
        day, ``usual_movers`` those of what is usual; ``n_flows`` the moves above the threshold,
        ``n_resolved`` those of them that their interval tells from nothing; ``happened`` is how
        what happened was found, ``rhat`` how far its draws are from having mixed, and ``n_eff`` how
        many independent draws they are worth at least.
        ``count_error`` is the error of counts over the count, and ``expansion`` how many people
        each counted one stands for. ``movers_low`` and ``movers_high`` are an interval of nine in
        ten; ``ensemble`` says how many worlds it rests on, 0 if they have too many errors to keep,
        and how many megabytes these take, ``ensemble_by_day`` the same of those that are kept day
        by day. ``days`` are those that were chosen, none for all, and
        ``n_days_kept`` how many there are to choose among. ``doubts`` have a code, a sentence, a
        value and a chance p each. ``typed_days`` are the types of days: a name, the number of days,
        whether they were told apart, and by how much the score gained, with its standard error;
        ``joined_days`` names that too few days have, and how many; ``day_sentences`` say all that.
        ``gates`` are those beside the counts: their number, counts used, rows set aside by cause,
        the error of each, and contradictions (code, gate, direction, time, counted, expected, z).
        ``panel`` and ``matrix`` tell what was known beside the counts and what it counts for, None
        where there was none; ``beside_sentences`` say that.
        """
        moves, usual = _moves(self.rows(WHOLE_DAY)), _moves(self.day_flows)
        large = moves.loc[moves["count"] > self.settings.threshold]
        chosen = self.candidates.loc[self.candidates["chosen"]].iloc[0]
        known = self.people.any(axis=1)
        ends = None
        if not self.is_sparse:
            ends = self.interval(WHOLE_DAY, ESTIMATE, 1 - np.eye(len(self.states.names)))
        low, high = (None, None) if ends is None else map(float, ends)
        return {
            "n_days": self.n_days,
            "days": list(self.chosen_days),
            "n_days_kept": len(self.days),
            "n_pairs": self.n_pairs,
            "n_left_out": self.n_left_out,
            "n_filled": self.n_filled,
            "n_cells": self.n_cells,
            "has_outside": bool(self.has_outside),
            "people": float(self.people[known].sum(axis=1).mean()) if known.any() else None,
            "step": self.step_name,
            "learner": self.learner,
            "learner_reason": self.choice,
            "prior": _number(chosen["prior"]),
            "by_time": len(self.transmats) > 1,
            "day_types": self.day_types,
            "types_apart": list(self.types_apart),
            "typed_days": [] if self.typed_days is None else self.typed_days.told(),
            "joined_days": {} if self.typed_days is None else dict(self.typed_days.joined),
            "day_sentences": [] if self.typed_days is None else list(self.typed_days.sentences),
            "movement": self.movement,
            "hours": _number(chosen["hours"]),
            "own": _number(chosen["own"]),
            "identified": self.identifiability.identified,
            "identifiability": self.identifiability.sentence,
            "held_out": {
                row["method"]: {name: _number(row[name]) for name in ("mae", "rmse", "score")}
                for row in self.held_out.to_dict("records")
            },
            "threshold": self.settings.threshold,
            "movers": float(moves["count"].sum()),
            "movers_low": low,
            "movers_high": high,
            "usual_movers": float(usual["count"].sum()),
            "ensemble": told_of(self._ensemble(ESTIMATE)),
            "ensemble_by_day": told_of(None if self._by_day is None else self._by_day.errors),
            "happened": None if self.happened is None else self.happened.method,
            "rhat": None if self.happened is None else self.happened.r_hat,
            "n_eff": None if self.happened is None else self.happened.n_eff,
            "doubt_of_counts": self.doubt_of_counts,
            "doubts": [asdict(doubt) for doubt in self.doubts],
            "gates": None if self.gates is None else self.gates.told(),
            "panel": self.known_beside.get("panel"),
            "matrix": self.known_beside.get("matrix"),
            "beside_sentences": list(beside_sentences(self.known_beside)),
            "count_error": self.count_error,
            "count_error_low": self.count_error_low,
            "count_error_high": self.count_error_high,
            "error_learned": self.error_learned,
            "expansion": self.expansion,
            "n_flows": len(large),
            "n_resolved": int(large["resolved"].sum()) if self.settings.worlds else None,
            "wall_s": round(self.wall_s, 3),
        }

    def parameters(self) -> dict[str, npt.NDArray[np.generic]]:
        """Chances of moves and people by time of day, and the names of times and states.

        Where what happened is known, people per step who went from each state to each, too. Of
        moves within a reach, both are of the entries of a sparse table, whose pattern is told.
        """
        arrays: dict[str, npt.NDArray[np.generic]] = {
            "times": np.array(self.slots),
            "states": np.array(self.states.names),
            "people": self.people,
            "transmat": self.transmats,
            "settings": np.array(json.dumps(self.settings.to_dict(), sort_keys=True)),
        }
        if self.pattern is not None:
            arrays |= {"indices": self.pattern.indices, "indptr": self.pattern.indptr}
        if self.happened is not None and self.pattern is not None:
            flows = self.happened.flows
            happened = np.zeros((len(self.slots), self.pattern.nnz))
            at = places_of(self.pattern, flows["origin"], flows["dest"])
            happened[flows["slot"], at] = flows["count"]
            arrays["happened"] = happened
        elif self.happened is not None:
            flows, d = self.happened.flows, len(self.states.names)
            happened = np.zeros((len(self.slots), d, d))
            happened[flows["slot"], flows["origin"], flows["dest"]] = flows["count"]
            arrays["happened"] = happened
        return arrays

    def parameter_tables(self) -> dict[str, pd.DataFrame]:
        """Transitions (time, origin, dest, prob), those above 0, and people (time, cell, …)."""
        slots = np.array(self.slots, dtype=object)
        times = slots if len(self.transmats) > 1 else np.array([WHOLE_DAY], dtype=object)
        if self.pattern is None:
            at, origin, dest = np.nonzero(self.transmats)
            probs = self.transmats[at, origin, dest]
        else:
            at, entry = np.nonzero(self.transmats)
            origin, dest = (ends[entry] for ends in ends_of(self.pattern))
            probs = self.transmats[at, entry]
        slot, cell = np.indices(self.people.shape).reshape(2, -1)
        names = np.array(self.states.names, dtype=object)
        people = {"cell": cell, "name": names[cell], "people": self.people.ravel()}
        moves = {"time": times[at], "origin": origin, "dest": dest, "prob": probs}
        return {
            "transitions": pd.DataFrame(moves),
            "people": pd.DataFrame({"time": slots[slot], **people}),
        }


def _moves(flows: pd.DataFrame) -> pd.DataFrame:
    return flows.loc[flows["origin"] != flows["dest"]]


def _number(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def check_identifiable(table: CountTable, reach_m: float | None = None) -> Identifiability:
    """What the counts of a table tell without a prior (see `identifiability`).

    Of moves up to ``reach_m`` metres alone, if that is given.

    Raises
    ------
    InputError
        If the table has no two successive moments, or no third to check what is learned by; with a
        reach also if cells have no places or hold few people.
    """
    pairs = pairs_of(table)
    held_out_days(pairs)
    if reach_m is None:
        return identifiability(pairs)
    return near_identifiability(pairs, _nearby(table, pairs, reach_m)[0])


def move_shape(table: CountTable, *, outside: bool) -> FloatArray:
    """Chances of moves to begin with, (d, d): by distance, or all alike without places."""
    if table.grid is not None:
        return distance_decay_transmat(table.grid.make(), STAY, outside=outside)
    d = table.n_cells + outside
    if d == 1:
        return np.ones((1, 1))
    moves = np.full((d, d), (1 - STAY) / (d - 1))
    np.fill_diagonal(moves, STAY)
    return moves


def count_study_steps(
    table: CountTable,
    settings: CountLearnSettings,
    remembered: Mapping[str, Any] | None = None,
    *,
    gates: CrossingTable | None = None,
    beside: OtherEvidence | None = None,
) -> Iterator[CountProgress | CountStudy]:
    """Learn flows from counts; yields `CountProgress` on the way and `CountStudy` at the end.

    Strengths of the prior, and whether each time of day has transitions of its own, are chosen on
    days kept aside unless ``settings`` say otherwise; then all days are learned from. What trials
    found that is ``remembered`` of a study of the same counts is not tried again. What a panel and
    an old matrix ``beside`` the counts weigh is chosen on these days, too. With ``gates`` beside
    them the counts say first what these contradict; then all are learned from.

    Raises
    ------
    InputError
        If no two successive moments are known, or there is to be no prior where the counts alone
        do not fix the flows, or days are named of counts without dates; of moves within a reach
        also if cells have no places or hold few people, or anything is known beside. Gates are
        refused where counts err or were scaled up, too, and if they counted at no time of the
        counts.
    """
    settings.days.check(table)
    check_gates(gates, table.n_cells, nearby=settings.reach_m is not None)
    memory, began = Remembered(remembered), time.perf_counter()
    if settings.reach_m is None:
        known = beside or OtherEvidence()
        yield from _steps_everywhere(table, settings, memory, began, gates, known)
        return
    if beside is not None:
        raise InputError(
            "A panel or an old matrix is taken where all moves are learned; leave it out, or the "
            "farthest move in a step.",
            code="reach-unsuited",
        )
    yield from _steps_within_reach(table, settings, memory, began)


def _steps_everywhere(  # noqa: PLR0915  # one stage after the other
    table: CountTable,
    settings: CountLearnSettings,
    memory: Remembered,
    began: float,
    gates: CrossingTable | None,
    beside: OtherEvidence,
) -> Iterator[CountProgress | CountStudy]:
    """The same of moves between all cells."""
    measured, told_of = yield from _measured(table, settings, memory)
    check_beside(gates, measured)
    pairs, expansion = measured.pairs, measured.expansion
    told = identifiability(pairs)
    given = settings.strength == "given"
    if given and settings.prior == 0 and not told.identified:
        raise InputError(told.refusal, code="flows-not-identified")
    shape = move_shape(table, outside=pairs.has_outside)
    rng = np.random.default_rng(settings.seed)
    trials = yield from _trials(
        pairs, shape, _priors(settings, told), settings, rng, told_of, memory
    )
    best = best_trial(trials, settings.time)
    learner = best.candidate.learner
    strength = best.candidate.strength if given else strength_between(trials, best)
    others = [] if given else strengths_about(trials, best, settings.worlds)
    pairs, known = with_evidence(pairs, table, beside, expansion)
    weighed: list[Trial] = []
    if known:
        best = yield from _weighed(pairs, shape, best, settings, told_of, memory, known, weighed)
        strength, *others = (_as_weighed(each, best) for each in (strength, *others))
    timed = timed_pairs(pairs, strength)
    transmats = shape[None]
    most = most_iterations(timed, learner, strength)
    # Where draws are averaged, a fit that begins near its end stands still before enough are.
    start = best.states[0] if learner == DENSE else None
    timed, gated = with_gates(
        timed, shape, learner, strength, gates, start=start,
        n_slots=len(pairs.slots), random_state=np.random.default_rng(settings.seed),
    )  # fmt: skip
    for state in learn_flows(
        timed, shape, learner, strength, start=start, random_state=rng,
        course=checkpoints().course("learning"),
    ):  # fmt: skip
        transmats = state.transmats
        yield told_of("learning", state.iteration / most, f"iteration {state.iteration}")
    yield told_of("moving", 0.0, "how much of the movement is learned in simulated worlds")
    movement = movement_factor(
        timed, shape, transmats, learner, strength, start=start, random_state=rng.spawn(1)[0]
    )
    transmats = met_by_gates(timed, with_movement(transmats, movement))
    yield told_of("validating", 0.0, "counts kept aside")
    held_out, doubts = _held_out(
        timed_pairs(pairs, best.candidate.strength), shape, best, table.cells, expansion
    )
    yield told_of("drawing", 0.0, "who went where between two counts")
    n_slots = len(pairs.slots)
    happened = happened_flows(
        timed, transmats, threshold=settings.threshold / expansion, n_times=n_slots,
        keep_pairs=timed.date is not None, random_state=rng.spawn(1)[0],
    )  # fmt: skip
    by_day = flows_by_day(timed, happened.by_pair, n_slots, expansion)
    day_errors = None
    if happened.by_pair is not None:
        day_errors = DayErrors.of_pairs(timed, n_slots, HAPPENED, random_state=rng.spawn(1)[0])
    found = DoubtedFlows(over_day_types(happened.flows, n_slots) * expansion, happened.mixing)
    people = people_by_slot(timed, transmats)
    usual = DoubtedFlows(over_day_types(people[:, :, None] * transmats, n_slots) * expansion)
    steps = pairs.pairs_per_slot
    ensemble = EnsembleMaker(steps, pairs.n_states, (HAPPENED, USUAL))
    worlds = replicates(
        timed, shape, transmats, learner, strength, settings.worlds, expansion=expansion,
        movement=movement, others=others, start=start,
        by_pair=None if day_errors is None else day_errors.add, random_state=rng,
    )  # fmt: skip
    for number, flows_there in enumerate(worlds, start=1):
        moved, learned, estimate = (over_day_types(each, n_slots) for each in flows_there)
        usual.add(moved, learned)
        found.add(moved, estimate)
        ensemble.add(moved, {HAPPENED: estimate, USUAL: learned})
        message = f"simulated world {number} of {settings.worlds}"
        yield told_of("doubting", number / settings.worlds, message)
    transmats = _of_all_days(transmats, people, n_slots)
    people = over_day_types(people, n_slots)
    flows, day_flows = usual.tables(steps)
    yield CountStudy(
        settings=settings,
        slots=pairs.slots,
        grid=table.grid,
        cells=table.cells,
        has_outside=pairs.has_outside,
        transmats=transmats,
        people=expansion * people / np.maximum(steps, 1)[:, None],
        flows=flows,
        day_flows=day_flows,
        candidates=_candidates([*trials, *weighed], learner, strength, pairs.day_types),
        held_out=held_out,
        identifiability=told,
        learner=learner,
        choice=WORDS[learner],
        n_pairs=pairs.n_pairs,
        n_days=pairs.n_days,
        n_left_out=pairs.n_left_out,
        n_filled=pairs.n_filled,
        wall_s=time.perf_counter() - began,
        step_minutes=table.step.total_seconds() / 60,
        happened=HappenedFlows(
            *found.tables(steps),
            r_hat=None if math.isnan(happened.r_hat) else min(happened.r_hat, MOST_R_HAT),
            method=happened.method,
            n_eff=_number(happened.n_eff),
            by_day=by_day if by_day is None or day_errors is None else day_errors.on(by_day),
        ),
        count_error=measured.relative,
        count_error_low=measured.low,
        count_error_high=measured.high,
        error_learned=measured.learned,
        expansion=expansion,
        movement=movement,
        day_types=bool(strength.apart),
        typed_days=_typed_days(table, settings, pairs, trials, learner, strength),
        steps=tuple(steps.tolist()),
        ensemble=ensemble.made(),
        doubts=doubts,
        remembered=memory.found,
        gates=gated,
        known_beside=known,
    )


def _steps_within_reach(
    table: CountTable, settings: CountLearnSettings, memory: Remembered, began: float
) -> Iterator[CountProgress | CountStudy]:
    """The same of moves within a reach: strengths are tried, and movement is checked, in a window.

    What is kept aside is that of the window, too. No worlds are simulated.
    """
    told_of = _Told(course(CountSizes.of(table, settings).stages(settings)))
    pairs = exact_pairs(table, settings.expansion, settings.days)
    expansion = settings.expansion or common_unit(table.counts)
    near, places_m = _nearby(table, pairs, settings.reach_m)
    told = near_identifiability(pairs, near)
    given = settings.strength == "given"
    if given and settings.prior == 0 and not told.identified:
        raise InputError(told.refusal, code="flows-not-identified")
    rng = np.random.default_rng(settings.seed)
    window = window_of(pairs, near, places_m)
    trials = yield from _trials(
        window.pairs, window.near, _priors(settings, told), settings, rng, told_of, memory
    )
    best = best_trial(trials, settings.time)
    strength = best.candidate.strength if given else strength_between(trials, best)
    timed, of, n_slots = timed_pairs(pairs, strength), near.pattern, len(pairs.slots)
    most = most_iterations(timed, DENSE, strength, near)
    for state in learn_flows(timed, near, DENSE, strength, course=checkpoints().course("learning")):
        moves = state.transmats
        yield told_of("learning", state.iteration / most, f"iteration {state.iteration}")
    yield told_of("moving", 0.0, "how much of the movement is learned in simulated worlds")
    of_window = replace(window, pairs=timed_pairs(window.pairs, strength))
    movement = local_movement_factor(
        of_window, of, moves, strength, n_iter=most, random_state=rng.spawn(1)[0]
    )
    moves = moved_as(of, moves, movement)
    yield told_of("validating", 0.0, "counts kept aside")
    held_out = _held_out_nearby(
        timed_pairs(window.pairs, best.candidate.strength), window.near, best
    )
    yield told_of("drawing", 0.0, "who went where between two counts")
    went, by_pair = local_happened(timed, of, moves, keep_pairs=timed.date is not None)
    by_day = flows_by_day(timed, by_pair, n_slots, expansion)
    people, steps = timed.people, pairs.pairs_per_slot
    usual = over_day_types(of_people(of, people, moves), n_slots)
    there = over_day_types(people, n_slots)
    if len(moves) > n_slots:
        each = np.concatenate([there[:, of.origin], there], axis=1)
        mean = moves.reshape(-1, *usual.shape).mean(axis=0)
        moves = np.where(each > 0, usual / np.where(each > 0, each, 1.0), mean)
    pattern = of.table(np.ones(of.n_moves + of.n_states))
    found = over_day_types(went, n_slots)
    del went
    happened, usually = (
        _listed_nearby(pattern, np.stack([of.table(row).data for row in total]), expansion, steps)
        for total in (found, usual)
    )
    yield CountStudy(
        settings=settings,
        slots=pairs.slots,
        grid=table.grid,
        cells=table.cells,
        has_outside=pairs.has_outside,
        transmats=np.stack([of.table(row).data for row in moves]),
        people=expansion * there / np.maximum(steps, 1)[:, None],
        flows=usually[0],
        day_flows=usually[1],
        candidates=_candidates(trials, DENSE, strength, pairs.day_types),
        held_out=held_out,
        identifiability=told,
        learner=DENSE,
        choice=WORDS_NEARBY,
        n_pairs=pairs.n_pairs,
        n_days=pairs.n_days,
        n_left_out=pairs.n_left_out,
        n_filled=pairs.n_filled,
        wall_s=time.perf_counter() - began,
        step_minutes=table.step.total_seconds() / 60,
        happened=HappenedFlows(*happened, r_hat=None, method="normal", by_day=by_day),
        count_error=0.0,
        count_error_low=0.0,
        count_error_high=0.0,
        expansion=expansion,
        movement=movement,
        day_types=bool(strength.apart),
        typed_days=_typed_days(table, settings, pairs, trials, DENSE, strength),
        steps=tuple(steps.tolist()),
        remembered=memory.found,
        pattern=pattern,
    )


def _nearby(
    table: CountTable, pairs: CountPairs, reach_m: float | None
) -> tuple[Nearby, FloatArray]:
    """Moves within the reach, in blocks, and the places (c, 2) of cells in metres."""
    if table.grid is None:
        raise InputError(
            "The farthest move in a step needs cells with places, which these have not; leave it "
            "out, or load counts of a mesh or of cells with coordinates.",
            code="cells-without-place",
        )
    if pairs.crowd < FEW:
        raise InputError(
            f"Cells hold {pairs.crowd:.1f} people where there are some, too few to learn moves "
            "within a reach from means and covariances of counts; take larger cells, or leave out "
            "the farthest move in a step.",
            code="too-few-people",
        )
    grid = table.grid.make()
    shape = distance_decay_transmat(grid, STAY, outside=pairs.has_outside, reach_m=reach_m)
    assert not isinstance(shape, np.ndarray)
    return Nearby.of(shape, grid.centroids_m), grid.centroids_m


def _held_out_nearby(pairs: CountPairs, near: Nearby, best: Trial) -> pd.DataFrame:
    """Errors of three ways to predict counts of the window that are kept aside."""
    rows = []
    for aside, state in zip(held_out_days(pairs), best.states, strict=True):
        test = pairs.take(aside)
        gravity = local_gravity(pairs.take(~aside), near)
        rows += [
            local_prediction(test, near, state.transmats),
            local_prediction(test, near, None, "persistence"),
            local_prediction(test, near, gravity, "gravity"),
        ]
    table = pd.DataFrame([asdict(row) for row in rows])
    return table.groupby("method", sort=False, as_index=False).mean()


def _listed_nearby(
    pattern: sparse.csr_array, totals: FloatArray, expansion: float, steps: npt.NDArray[np.int64]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Flows per step by time of day, and of the day, from sums (H, n) over so many ``steps`` (H,).

    There may be many millions of them, so that their columns are narrow; none has an interval.
    """
    origin, dest = (ends.astype(np.int32) for ends in ends_of(pattern))

    def rows(total: FloatArray, n_steps: int) -> pd.DataFrame:
        count = (expansion / n_steps) * total
        at = np.flatnonzero(count >= LEAST_FLOW)
        unknown = np.full(len(at), np.nan, dtype=np.float32)
        columns = {
            "origin": origin[at], "dest": dest[at], "count": count[at], "low": unknown,
            "high": unknown, "resolved": np.ones(len(at), dtype=bool),
        }  # fmt: skip
        return pd.DataFrame(columns)

    flows = [
        rows(totals[slot], int(steps[slot])).assign(slot=np.int16(slot))
        for slot in map(int, np.flatnonzero(steps))
    ]
    return pd.concat(flows, ignore_index=True), rows(totals.sum(axis=0), int(steps.sum()))


def _measured(
    table: CountTable, settings: CountLearnSettings, memory: Remembered
) -> Generator[CountProgress, None, tuple[Measured, _Told]]:
    """The counts as they are to be learned from, with their error, and how to tell what follows."""
    told_of = _Told(course(CountSizes.of(table, settings).stages(settings)))
    grid = None if table.grid is None else grid_to_dict(table.grid)
    key = fingerprint(
        "error", table.times.asi8, table.sequence, table.slot, table.slots, table.timezone,
        table.counts, table.status, table.suppressed_below, json.dumps(grid),
        settings.count_error, settings.expansion, settings.seed,
        *[(settings.holidays, settings.day_labels)] * settings.days.is_asked,
    )  # fmt: skip
    known = memory.get(key)
    if known is not None:
        measured = measured_again(table, dict(known), settings.days)
    else:
        steps = measuring_steps(
            table, lambda outside: move_shape(table, outside=outside), error=settings.count_error,
            expansion=settings.expansion, days=settings.days, random_state=settings.seed,
        )  # fmt: skip
        number, many = count(), MEASURINGS[settings.count_error is None]
        measured = yield from relayed(
            steps, lambda message: told_of("measuring", _so_far(next(number) / many), message)
        )
        memory.put(key, measured.told())
    # Now it is known whether they err.
    sizes = CountSizes.seen(measured.pairs, settings)
    _, begins = told_of.shares.get(("measuring", 0), (0.0, 0.0))
    rest = (stage for stage in sizes.stages(settings) if stage.name != "measuring")
    return measured, _Told(course(rest), begins)


def _trials(
    pairs: CountPairs,
    shape: Shape,
    priors: tuple[float, ...] | None,
    settings: CountLearnSettings,
    rng: np.random.Generator,
    told_of: _Told,
    memory: Remembered,
) -> Generator[CountProgress, None, list[Trial]]:
    """Strengths and learners as they are tried."""
    trials: list[Trial] = []
    layers: list[int] = []
    given, types = settings.strength == "given", 1 + len(pairs.types_apart)
    yield told_of("choosing", 0.0, "as it is given" if given else "the first of several")
    for trial in try_candidates(
        pairs, shape, priors=priors, time=settings.time, random_state=rng, remembered=memory
    ):
        trials.append(trial)
        timed, learner = trial.candidate.strength.by_time, trial.candidate.learner
        # As `CountSizes.stages` numbers them.
        part = 2 * learners_for(pairs, shape).index(learner) + timed
        layers.append(part)
        many = trials_of_times(given, types) if timed else TRIALS_OF_PRIOR[given]
        done = _so_far(layers.count(part) / many)
        yield told_of("choosing", done, _tried(trial.candidate, pairs.day_types), part)
    return trials


def _weighed(
    pairs: CountPairs,
    shape: FloatArray,
    best: Trial,
    settings: CountLearnSettings,
    told_of: _Told,
    memory: Remembered,
    known: dict[str, Any],
    weighed: list[Trial],
) -> Generator[CountProgress, None, Trial]:
    """What a panel and an old matrix count for, which is added to what is ``known`` of them.

    Trials are added to those that were ``weighed``.
    """
    learner = best.candidate.learner
    part = 2 * learners_for(pairs, shape).index(learner) + best.candidate.strength.by_time
    steps = weigh_beside(pairs, shape, best, random_state=settings.seed, remembered=memory)
    of_panel: list[dict[str, float]] = []

    def told(step: Trial | Weighed) -> CountProgress:
        if isinstance(step, Weighed):
            score = float(step.scores.sum())
            of_panel.append({"weight": step.weight, "score": round(score, 3)})
            words = f"a panel that counts {step.weight:g}: score {score:.2f}"
        else:
            weighed.append(step)
            words = f"an old matrix of {step.candidate.strength.matrix:g} people"
            words += f": score {step.candidate.score:.2f}"
        return told_of("choosing", 1.0, words, part)

    taken = yield from relayed(steps, told)
    for name, facts in known.items():
        facts["weight"] = getattr(taken.candidate.strength, name)
    if "panel" in known:
        known["panel"]["tried"] = of_panel
    return taken


def _as_weighed(strength: Strength, best: Trial) -> Strength:
    """A strength that takes as much of what is known beside as the best one does."""
    found = best.candidate.strength
    return replace(strength, panel=found.panel, matrix=found.matrix)


def _of_all_days(transmats: FloatArray, people: FloatArray, n_slots: int) -> FloatArray:
    """Transitions (H, d, d) of which each is the mean over the people of all types of days."""
    if len(transmats) <= n_slots:
        return transmats
    moves = over_day_types(people[:, :, None] * transmats, n_slots)
    there = over_day_types(people, n_slots)[:, :, None]
    mean = transmats.reshape(-1, n_slots, *transmats.shape[1:]).mean(axis=0)
    return np.asarray(np.where(there > 0, moves / np.where(there > 0, there, 1.0), mean))


def _priors(settings: CountLearnSettings, told: Identifiability) -> tuple[float, ...] | None:
    if settings.strength == "given":
        return (settings.prior,)
    # Where the counts alone fix nothing, no prior at all is no candidate.
    return None if told.identified else ()


def _so_far(part: float) -> float:
    """Share, below 1, of a stage of which so large a part is done that may be longer."""
    left = 1 - MOST_PART
    return part if part < MOST_PART else 1 - left * math.exp(-(part - MOST_PART) / left)


@dataclass(frozen=True)
class _Told:
    """Progress by the ``shares`` of all work that stages are, from ``begins`` on."""

    shares: Course
    begins: float = 0.0

    def __call__(self, stage: str, done: float, message: str, part: int = 0) -> CountProgress:
        # A stage that was not foreseen is no share.
        first, last = self.shares.get((stage, part), (0.0, 0.0))
        share = first + min(done, 1.0) * (last - first)
        name = "learning" if stage == "moving" else stage
        return CountProgress(name, message, self.begins + (1 - self.begins) * share)


def _tried(candidate: Candidate, names: Sequence[str]) -> str:
    strength = candidate.strength
    of_time = f", times of day tied by {strength.hours:g}" if strength.by_time else ""
    if strength.apart:
        of_time += f", {apart_words([names[kind] for kind in strength.apart])}"
    own = f", rows of their own by {strength.own:g}" if strength.own else ""
    return f"prior of {strength.prior:g} people{of_time}{own}: score {candidate.score:.2f}"


def _held_out(
    pairs: CountPairs, shape: FloatArray, best: Trial, cells: Sequence[str], expansion: float
) -> tuple[pd.DataFrame, tuple[Doubt, ...]]:
    """What counts kept aside tell of what was learned without them.

    Errors, a mean over the parts, of three ways to predict them, and what contradicts the learned.
    """
    kept = [
        (aside, state.transmats)
        for aside, state in zip(held_out_days(pairs), best.states, strict=True)
    ]
    rows = chain.from_iterable(current().map(partial(_predictions, pairs, shape), kept))
    table = pd.DataFrame([asdict(row) for row in rows])
    errors = table.groupby("method", sort=False, as_index=False).mean()
    return errors, doubts_of(pairs, kept, cells, expansion=expansion)


def _predictions(
    pairs: CountPairs, shape: FloatArray, kept: tuple[npt.NDArray[np.bool_], FloatArray]
) -> list[Prediction]:
    """Errors of three ways to predict pairs kept aside, the first by what was learned."""
    aside, transmats = kept
    test = pairs.take(aside)
    gravity = gravity_prediction(pairs.take(~aside), shape)
    return [
        predict(test, transmats),
        predict(test, None, "persistence"),
        predict(test, gravity, "gravity"),
    ]


def _typed_days(
    table: CountTable,
    settings: CountLearnSettings,
    pairs: CountPairs,
    trials: list[Trial],
    learner: str,
    strength: Strength,
) -> DayTypes | None:
    """Types of the days that were learned from, if their dates are known."""
    found = settings.days.told(pairs) if table.has_dates else None
    return None if found is None else DayTypes.of(found, trials, learner, strength)


def _candidates(
    trials: list[Trial], learner: str, strength: Strength, names: Sequence[str]
) -> pd.DataFrame:
    """What was tried, and last of all what was taken unless that was tried: it has no score.

    ``names`` are those of the types of days.
    """

    def told(strength: Strength) -> dict[str, Any]:
        apart = ", ".join(names[kind] for kind in strength.apart)
        return {
            "prior": strength.prior, "hours": strength.hours, "own": strength.own,
            "day_types": bool(strength.apart), "apart": apart,
            **{name: getattr(strength, name) for name in weights},
        }  # fmt: skip

    every = [*(trial.candidate.strength for trial in trials), strength]
    weights = [name for name in ("panel", "matrix") if any(getattr(s, name) for s in every)]
    rows = [
        {
            "learner": trial.candidate.learner, **told(trial.candidate.strength),
            "score": trial.candidate.score,
            "chosen": (trial.candidate.learner, trial.candidate.strength) == (learner, strength),
        }
        for trial in trials
    ]  # fmt: skip
    if not any(row["chosen"] for row in rows):
        rows.append({"learner": learner, **told(strength), "score": np.nan, "chosen": True})
    return pd.DataFrame(rows)
