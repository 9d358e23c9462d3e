"""From entries and exits to flows: the whole way, with intervals and what was found out."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from agg_core.counts.days import DayFlows, day_flows
from agg_core.counts.pair_tables import PairTables
from agg_core.counts.public_holidays import is_holiday
from agg_core.gates.days import PERIODS, ServiceDays, kinds_of_days, passing_as, service_days
from agg_core.gates.doubts import DaysDoubted, flows_of_days, redrawn
from agg_core.gates.old_matrix import OldMatrix, seeds_of
from agg_core.gates.pattern import Pattern, features_of, learn_pattern_steps
from agg_core.io.flow_tables import FlowTable
from agg_core.space.settings import AnyGridSettings
from agg_core.study.happened import HAPPENED, DoubtedFlows, HappenedFlows, HappenedResult
from agg_core.study.result import ESTIMATE, States
from agg_core.study.settings import GateLearnSettings
from agg_core.tables.ensemble import Ensemble, EnsembleMaker, told_of
from agg_core.tables.gates import GateTable

__all__ = ["GateProgress", "GateStudy", "gate_study_steps"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
AnyFloats = npt.NDArray[np.floating]

HOLIDAY = "holiday"
MOST_BY_DAY = 12_000_000
"""Flows of single days, some 20 bytes each, above which they are not kept."""
GRAIN = 0.25
"""People below which a flow of a pair in a step of a day is kept as none or as so many."""

MOST_OF_TIMES = 30_000_000
"""Entries of an old matrix above which its times of day are summed to periods."""

LEARNER = "gates"

ABOUT_INTERVALS = (
    "An interval (from – to) is meant to hold what truly moved in nine of ten such figures. It "
    "comes from draws: patterns of who goes where that may be as well as the one that is taken, "
    "each scaled to the entries and exits of every day. Sums that the gates fix hardly differ "
    "between draws; single pairs do, by as much as pairs are set to stray. It knows nothing of "
    "gates that count wrongly, of people who pass without being counted, or of pairs that stray "
    "farther than was set. A criterion passes where nearly all that may be true meets it, fails "
    "where nothing does, and cannot be told else."
)
"""What an interval and a verdict mean here."""


@dataclass(frozen=True)
class GateProgress:
    """Where a study of gates stands: a stage, its state in words, share of all work done."""

    stage: str
    message: str
    share: float


@dataclass(frozen=True)
class GateStudy(HappenedResult):
    """Flows between stations, learned from who entered and who left each of them.

    Attributes
    ----------
    settings : what was asked for
    slots : labels of the times of day
    grid : the surroundings of stations, None where they have no place
    cells : names of the stations
    happened : flows by time of day and over the day, and of single days, people per step
    steps : steps that were learned from at each time of day, (H,)
    entries, exits : (H, S) people per step, a mean over the days
    weights : logarithm of what a feature does to a pair's weight, and its standard deviation, by
        name: ``distance`` of 10 km, ``line`` of another line
    minutes_per_km : pace of trips, None without distances
    matrix_weights : people that each level above an old matrix counts for; none without one
    excess : how many times more pairs' scores vary than by chance, by which evidence is tempered
    learned : whether days told the pattern; else pairs are taken as alike
    n_entered, n_left : people in all, before both were scaled to the larger of a day
    n_filled : counts that were missing
    left_out : days of which too much was missing
    unusual : days that pass as a day of another kind, such as holidays as Sundays
    closed : stations that were closed on some days, and on how many
    notes : what was found when the tables were read
    """

    kind = "gates"
    learner = LEARNER

    settings: GateLearnSettings
    slots: tuple[str, ...]
    grid: AnyGridSettings | None
    cells: tuple[str, ...]
    happened: HappenedFlows
    steps: tuple[int, ...]
    entries: FloatArray
    exits: FloatArray
    weights: Mapping[str, tuple[float, float]]
    minutes_per_km: float | None
    excess: float
    matrix_weights: Mapping[str, float]
    learned: bool
    n_days: int
    n_entered: float
    n_left: float
    n_filled: int
    left_out: tuple[str, ...]
    unusual: tuple[str, ...]
    closed: tuple[tuple[str, int], ...]
    notes: tuple[str, ...]
    wall_s: float
    step_minutes: float
    ensemble: Ensemble | None = None
    chosen_days: tuple[str, ...] = ()

    @property
    def states(self) -> States:
        """The stations; there is no outside."""
        return States(self.cells, None if self.grid is None else self.grid.make(), False)

    @property
    def basis(self) -> str:
        """How many entries and exits of how many days."""
        days = f"{self.n_days:,} {'day' if self.n_days == 1 else 'days'}"
        return f"entries and exits of {len(self.cells):,} stations on {days}"

    @property
    def pattern_words(self) -> str:
        """What was learned of who goes where, for a reader."""
        if self.matrix_weights:
            beside = self.matrix_weights["gates"]
            return (
                "Who goes where is that of an old matrix, beside which what the gates tell counts "
                f"for {beside:,.0f} people of each station. "
            )
        if not self.learned:
            return (
                "There were too few days alike to learn from how numbers stray: pairs of stations "
                "are taken as alike, and flows are no more than what entries and exits allow. "
            )
        told = []
        if "distance" in self.weights:
            factor = np.exp(self.weights["distance"][0])
            told.append(f"10 km more make a pair's weight {factor:.2f} times as large")
        if "line" in self.weights:
            factor = np.exp(self.weights["line"][0])
            told.append(f"another line makes it {factor:.2f} times as large")
        return f"{' and '.join(told)}. ".capitalize() if told else ""

    @property
    def about_intervals(self) -> str:
        """What an interval means where patterns are drawn and no worlds are simulated."""
        return ABOUT_INTERVALS

    @property
    def evidence(self) -> str:
        """What the flows rest on, as sentences for a reader who has only a file."""
        days = ""
        if self.chosen_days:
            days = f" Flows are those of {self.days_words}, a mean over its steps{self.no_sums}."
        sure = (
            (
                "Intervals rest on how far days of the matrix differ."
                if self.matrix_weights
                else "Intervals of single pairs rest on how far pairs stray from that pattern (a "
                f"spread of {self.settings.spread:g} was taken); sums of many pairs are surer."
            )
            if self.has_intervals
            else "How sure the flows are is not known."
        )
        return (
            f"{self.basis[0].upper()}{self.basis[1:]} were learned from: every day's flows add up "
            f"to both. {self.pattern_words}{sure}{days}"
        )

    def source_words(self, source: str) -> str:
        """Where the flows come from, for a reader who has only a file."""
        return f"what happened{self._on_days(source)}, learned from entries and exits alone"

    def source_label(self, source: str) -> str:
        """What happened, on chosen days or on all."""
        return f"What happened{self._on_days(source)}"

    def source_name(self, source: str) -> str:  # noqa: ARG002  # there is but one
        """The same in a word."""
        return HAPPENED

    @property
    def _timed(self) -> pd.DataFrame:
        return self.happened.flows

    @property
    def _worlds(self) -> int:
        return self.settings.draws

    def _tables(self, source: str) -> HappenedFlows:  # noqa: ARG002  # there is but one
        return self.happened

    def _as_happened(self, source: str) -> bool:
        return source == ESTIMATE

    def _erring(self, source: str) -> str:  # noqa: ARG002  # there is but one
        return HAPPENED

    @property
    def value_columns(self) -> tuple[str, ...]:
        """The count, and the ends of its interval where there is one."""
        return ("count", "low", "high") if self.has_intervals else ("count",)

    def values(self, time: str) -> pd.DataFrame:
        """Origin, dest, `value_columns` and, with intervals, ``resolved``."""
        names = ["origin", "dest", *self.value_columns, *["resolved"] * self.has_intervals]
        return self.rows(time)[names].sort_values(["origin", "dest"], ignore_index=True)

    def matrices(self, time: str) -> Mapping[str, Any]:
        """The matrix of each of `value_columns`."""
        return {name: self.matrix(time, column=name) for name in self.value_columns}

    def observed(self, time: str) -> FloatArray | None:
        """Entries and exits are no people in a place: none."""
        self.check(time)
        return None

    def summary(self) -> dict[str, Any]:
        """Figures of flows from gates in plain JSON types.

        ``movers`` are people per step who go from a station to another, in the mean over a day,
        ``trips_per_day`` those of a whole day, with an interval; ``never_left`` is the share of
        those who entered and did not leave, negative where more left. ``weights`` are factors by
        which a feature changes a pair, with the ends of an interval of nine in ten.
        """
        moves = self.happened.day_flows
        moves = moves.loc[moves["origin"] != moves["dest"]]
        large = moves.loc[moves["count"] > self.settings.threshold]
        per_day = sum(self.steps) / max(self.n_days, 1)
        return {
            "n_days": self.n_days,
            "days": list(self.chosen_days),
            "n_days_kept": len(self.days),
            "n_cells": len(self.cells),
            "step": self.step_name,
            "learner": self.learner,
            "learned": self.learned,
            "hour_of": self.settings.hour_of,
            "minutes_per_km": self.minutes_per_km,
            "weights": {
                name: {
                    "factor": float(np.exp(weight)),
                    "low": float(np.exp(weight - 1.645 * sd)),
                    "high": float(np.exp(weight + 1.645 * sd)),
                }
                for name, (weight, sd) in self.weights.items()
            },
            "spread": self.settings.spread,
            "excess": self.excess,
            "matrix_weights": dict(self.matrix_weights),
            "n_entered": self.n_entered,
            "n_left": self.n_left,
            "never_left": (self.n_entered - self.n_left) / max(self.n_entered, 1.0),
            "n_filled": self.n_filled,
            "days_left_out": list(self.left_out),
            "days_unusual": list(self.unusual),
            "closed": dict(self.closed),
            "notes": list(self.notes),
            "threshold": self.settings.threshold,
            "movers": float(moves["count"].sum()),
            "trips_per_day": float(moves["count"].sum()) * per_day,
            "n_flows": len(large),
            "n_resolved": int(large["resolved"].sum()) if self.settings.draws else None,
            "ensemble": told_of(self._ensemble(ESTIMATE)),
            "wall_s": round(self.wall_s, 3),
        }

    def parameters(self) -> dict[str, npt.NDArray[np.generic]]:
        """Entries and exits, the pattern's weights, and the settings as JSON."""
        return {
            "times": np.array(self.slots),
            "states": np.array(self.cells),
            "entries": self.entries,
            "exits": self.exits,
            "weight_names": np.array(list(self.weights)),
            "weights": np.array([list(each) for each in self.weights.values()]).reshape(-1, 2),
            "settings": np.array(json.dumps(self.settings.to_dict(), sort_keys=True)),
        }

    def parameter_tables(self) -> dict[str, pd.DataFrame]:
        """Entries and exits (time, station, entries, exits), and weights (feature, weight, sd)."""
        slot, cell = np.indices(self.entries.shape).reshape(2, -1)
        slots, names = np.array(self.slots, dtype=object), np.array(self.cells, dtype=object)
        weights = [(name, *each) for name, each in self.weights.items()]
        return {
            "gates": pd.DataFrame({
                "time": slots[slot], "cell": cell, "name": names[cell],
                "entries": self.entries.ravel(), "exits": self.exits.ravel(),
            }),
            "weights": pd.DataFrame(weights, columns=["feature", "weight", "sd"]),
        }  # fmt: skip


def gate_study_steps(
    table: GateTable, settings: GateLearnSettings, matrix: FlowTable | None = None
) -> Iterator[GateProgress | GateStudy]:
    """Learn flows from entries and exits; yields `GateProgress`, and `GateStudy` at the end.

    An old ``matrix`` of trips, by date and time as far as it tells these, takes the place of the
    pattern where it has people (see `agg_core.gates.old_matrix`).

    Raises
    ------
    InputError
        If no day is whole, or steps are longer than an hour.
    """
    began = time.perf_counter()
    yield GateProgress("preparing", "days of service", 0.0)
    days = service_days(table)
    named = kinds_of_days(days.dates, _named(days.dates, settings))
    kind = passing_as(days, named)
    features = features_of(table.distances_km, table.lines, table.n_stations)
    pattern: Pattern | None = None

    steps = learn_pattern_steps(
        days, kind, features, spread=settings.spread, pace=settings.minutes_per_km
    )
    for number, step in enumerate(steps):
        if isinstance(step, Pattern):
            pattern = step
        else:
            yield GateProgress("learning", step, 0.05 + 0.05 * min(number, 6))

    assert pattern is not None
    yield GateProgress("drawing", "trips of each day", 0.4)
    by_exit = settings.hour_of == "exit"
    minutes = days.step_minutes
    patterns, which = [pattern.chances(minutes)], np.zeros(days.n_days, dtype=np.int64)
    flows, leave = _flows(days, patterns, which, by_exit=by_exit)
    seeds = None
    if matrix is not None:
        yield GateProgress("drawing", "the old matrix, and trips of each day by it", 0.45)
        old, which = _old_matrix(matrix, days, kind), kind
        told = flows.sum(axis=(0, 1), dtype=np.float64)
        seeds = seeds_of(old, told, int(kind.max()) + 1, PERIODS)
        patterns = list(pattern.with_lags(seeds.chances, minutes))
        flows, leave = _flows(days, patterns, which, by_exit=by_exit)
    n_steps, total = flows.shape[1], flows.sum(axis=0, dtype=np.float64)
    per_slot = np.full(n_steps, days.n_days, dtype=np.int64)
    found = DoubtedFlows(total)
    rng = np.random.default_rng(settings.seed)
    doubted = DaysDoubted(days.n_days, table.n_stations, HAPPENED, rng.spawn(1)[0])
    maker = EnsembleMaker(per_slot, table.n_stations, (HAPPENED,))
    for number, chance in enumerate(rng.spawn(settings.draws), start=1):
        if seeds is None:
            others = [pattern.chances(minutes, pattern.draw(chance, PERIODS))]
        else:
            others = list(pattern.with_lags(seeds.draw(chance), minutes))
        moved = np.empty_like(flows)
        for day, people in enumerate(redrawn(days, others, which, leave, chance, by_exit=by_exit)):
            moved[day] = people
        doubted.add(moved, flows)
        of_all = moved.sum(axis=0, dtype=np.float64)
        found.add(of_all, total)
        maker.add(of_all, {HAPPENED: total})
        share = 0.5 + 0.5 * number / settings.draws
        yield GateProgress("doubting", f"draw {number} of {settings.draws}", share)
    tables = found.tables(per_slot)
    at_time = np.empty((2, n_steps, table.n_stations))
    for side, counted in enumerate((days.entries, days.exits)):
        at_time[side, days.slot] = counted.mean(axis=0)
    sd = np.sqrt(np.diag(pattern.weights_cov))
    yield GateStudy(
        settings=settings,
        slots=days.slots,
        grid=table.grid,
        cells=table.stations,
        happened=HappenedFlows(
            *tables, r_hat=None, method="scaled", by_day=_by_day(days, flows, doubted)
        ),
        steps=tuple(per_slot.tolist()),
        entries=at_time[0],
        exits=at_time[1],
        weights={
            name: (float(weight), float(each))
            for name, weight, each in zip(pattern.features.names, pattern.weights, sd, strict=True)
        },
        minutes_per_km=pattern.minutes_per_km,
        excess=pattern.excess,
        matrix_weights={} if seeds is None else seeds.weights,
        learned=pattern.learned,
        n_days=days.n_days,
        n_entered=table.n_entered,
        n_left=table.n_left,
        n_filled=days.n_filled,
        left_out=days.left_out,
        unusual=tuple(np.array(days.dates)[kind != named].tolist()),
        closed=tuple(
            (name, int(n))
            for name, n in zip(table.stations, (~days.is_open).sum(axis=0), strict=True)
            if n
        ),
        notes=table.notes,
        wall_s=time.perf_counter() - began,
        step_minutes=days.step_minutes,
        ensemble=maker.made(),
    )


def _flows(
    days: ServiceDays, patterns: Sequence[FloatArray], which: IntArray, *, by_exit: bool
) -> tuple[npt.NDArray[np.float32], FloatArray]:
    """Flows (D, H, S, S) of all days, and factors of exits (D, H, S)."""
    n_steps, n = days.entries.shape[1:]
    flows = np.empty((days.n_days, n_steps, n, n), dtype=np.float32)
    leave = np.empty_like(days.exits)
    found = flows_of_days(days, patterns, which, by_exit=by_exit)
    for day, (trips, of_day) in enumerate(found):
        flows[day], leave[day] = of_day, trips.leave
    return flows, leave


def _old_matrix(matrix: FlowTable, days: ServiceDays, kind: IntArray) -> OldMatrix:
    """Trips of a table by kind of day and period; a date that is learned from has its own kind."""
    rows, n = matrix.flows, days.n_stations
    rows = rows.loc[(rows[["origin", "dest"]] < n).all(axis=1)]
    of_kind = np.full(len(rows), -1, dtype=np.int64)
    if matrix.dates:
        known = dict(zip(days.dates, kind.tolist(), strict=True))
        usual = kinds_of_days(matrix.dates)
        of_date = [known.get(date, usual[at]) for at, date in enumerate(matrix.dates)]
        of_kind = np.minimum(np.array(of_date, dtype=np.int64)[rows["date"]], kind.max())
    of_period = time = np.full(len(rows), -1, dtype=np.int64)
    if matrix.times:
        at_slot = np.empty(len(days.slot), dtype=np.int64)
        at_slot[days.slot] = days.period
        labels = {label: number for number, label in enumerate(days.slots)}
        at = np.array([labels.get(label, 0) for label in matrix.times], dtype=np.int64)
        time = at[rows["time"]]
        of_period = at_slot[time]
    day = rows["date"].to_numpy(np.int64) if matrix.dates else np.full(len(rows), -1)
    keys = np.stack([day, of_kind, of_period, time])
    groups, number = np.unique(keys, axis=1, return_inverse=True)
    if groups.shape[1] * n**2 > MOST_OF_TIMES:
        groups, number = np.unique(keys[:3], axis=1, return_inverse=True)
    trips = np.zeros((groups.shape[1], n, n))
    np.add.at(trips, (number.ravel(), rows["origin"], rows["dest"]), rows["count"])
    return OldMatrix(trips, *groups[:3])


def _named(dates: tuple[str, ...], settings: GateLearnSettings) -> dict[str, str]:
    """Holidays among dates."""
    if settings.holidays is None:
        return {}
    found = is_holiday(settings.holidays, dates)
    return {date: HOLIDAY for date, holiday in zip(dates, found, strict=True) if holiday}


def _by_day(days: ServiceDays, flows: AnyFloats, doubted: DaysDoubted) -> DayFlows:
    """Flows of each day; of none where they are too many to keep."""
    n_days, n_steps, n_states = flows.shape[:3]
    kept = PairTables(n_states, grain=GRAIN, most=MOST_BY_DAY)
    for pair in range(n_days * n_steps):
        kept.add(pair, flows[divmod(pair, n_steps)].astype(np.float64))
    day, slot = np.divmod(np.arange(n_days * n_steps), n_steps)
    steps = np.ones((n_days, n_steps), dtype=np.int64)
    found = day_flows(days.dates, steps, day, slot, kept.made(), n_states)
    return DayFlows(
        found.dates, found.steps, n_states, found.table, doubted.made(), doubted.parts.made()
    )
