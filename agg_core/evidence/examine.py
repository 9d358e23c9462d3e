"""All evidence for the flows of a result: volumes, lengths, trip ends, sectors, verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from agg_core.base.errors import InputError
from agg_core.base.moves import ends_of, entries
from agg_core.base.report import printable
from agg_core.evidence.lengths import FIGURES, length_bins, length_sums, straight_km
from agg_core.evidence.lines import Crossings, Screenline
from agg_core.evidence.measures import geh, sqv, xy_fit
from agg_core.evidence.presets import Preset, Subject, Verdict, judge
from agg_core.evidence.profiles import day_profiles, line_profiled
from agg_core.evidence.reference import Reference
from agg_core.evidence.sectors import Sectors
from agg_core.evidence.sums import (
    CellFlows,
    Sums,
    cell_flows,
    hourly,
    reference_at,
    steps_of,
)
from agg_core.evidence.tables import corrected, records, rows_of
from agg_core.io.counters import BOTH_WAYS
from agg_core.study.result import ESTIMATE, WHOLE_DAY, FlowResult

__all__ = ["COUNTER_COLUMNS", "Asked", "Evidence", "examine", "examined_times"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

COUNTER_COLUMNS = ("line", "direction", "time", "count")
"""Columns of a table of counters; count is people per hour."""


MOST_NAMED = 8

HALF = 0.5
"""People by which sums may differ and be the same."""


@dataclass(frozen=True)
class Asked:
    """What is examined of a result.

    Attributes
    ----------
    source : whose flows
    lines : screenlines and cordons
    sectors : areas whose flows are summed; None for none
    counters : counted volumes, with `COUNTER_COLUMNS`: the name of a line, one of its directions
        or `BOTH_WAYS`, a time of the result and people per hour; None for none
    reference : flows that all are held against; None for none
    preset : what is asked of them; None for nothing
    km : (d, d) distances between cells; None for straight ones
    """

    source: str = ESTIMATE
    lines: Sequence[Screenline] = ()
    sectors: Sectors | None = None
    counters: pd.DataFrame | None = None
    reference: Reference | None = None
    preset: Preset | None = None
    km: FloatArray | None = None


@dataclass(frozen=True)
class Evidence:
    """What is known of the flows of a result.

    Counts are in `unit`. Columns low and high are the ends of intervals of nine in ten that hold
    what truly moved, nan without simulated worlds; corrected is the middle of an interval that does
    not hold its estimate, else nan; reference and counted are nan where there is nothing to hold
    against.

    Attributes
    ----------
    unit : what counts are, such as people per hour
    times : times that were examined
    lines : those that volumes are of
    volumes : line, kind, direction, time, count, low, high, corrected, reference, counted, geh and
        sqv of what was counted, else of the reference; a line at which both ways were counted
        together has a third direction, `BOTH_WAYS`
    by_day : line, direction, day, time, count of each day, where days are kept apart
    lengths : time, figure (mean_km, sd_km, share_within, coincidence), value, low, high, corrected,
        reference
    histogram : time, from_km, to_km, count, low, high, corrected, reference; the last bin has all
        who go farther
    trip_ends : place, end (out, in), time, count, low, high, corrected, reference; of cells
    sector_flows : origin, dest, time, count, low, high, corrected, reference; moves between cells
        alone
    fits : of (cells, out, in, sectors, screenlines), n, and slope, intercept, r2, rmse and
        percent_rmse with their low, high and corrected
    verdicts : of the criteria of the preset that something was counted for
    not_asked : words of its criteria that nothing was counted for
    notes : sentences on what was left out or is not known
    """

    unit: str
    times: tuple[str, ...]
    volumes: pd.DataFrame
    by_day: pd.DataFrame
    lengths: pd.DataFrame
    histogram: pd.DataFrame
    trip_ends: pd.DataFrame
    sector_flows: pd.DataFrame
    fits: pd.DataFrame
    verdicts: tuple[Verdict, ...] = ()
    not_asked: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    lines: tuple[Screenline, ...] = ()
    about: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """All of it in plain JSON types; None where a figure has no meaning."""
        tables = {
            name: records(getattr(self, name))
            for name in (
                "volumes", "by_day", "lengths", "histogram", "trip_ends", "sector_flows", "fits",
            )
        }  # fmt: skip
        return {
            "unit": self.unit,
            "times": list(self.times),
            **dict(self.about),
            **tables,
            "verdicts": [
                {
                    "subject": verdict.criterion.subject,
                    "criterion": verdict.criterion.words,
                    "n": verdict.n,
                    "share": verdict.share,
                    "met_by_estimate": verdict.met,
                    "chance": verdict.chance,
                    "answer": verdict.answer,
                }
                for verdict in self.verdicts
            ],
            "not_asked": list(self.not_asked),
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class _AtTime:
    """Flows of a time, the reference at the same pairs, and sums of both."""

    time: str
    person: float
    """What a person of the period counts for, in the unit of the flows; 0 if that is not known."""
    flows: CellFlows
    reference: FloatArray | None
    km: FloatArray | None
    n_moves: int
    """Pairs of cells that are asked about; of those that are not among the flows nobody goes."""

    def of_reference(self, weights: Any) -> FloatArray | None:
        """Sums of the reference by the same weights."""
        return None if self.reference is None else np.asarray(weights @ self.reference)


def examine(result: FlowResult, asked: Asked | None = None) -> Evidence:
    """Work out all evidence that was asked for.

    Each time of day that the result has is examined, and the mean of the day where it has one.
    Flows from and to the outside of the cells are left out of all of it, and told.

    Raises
    ------
    InputError
        If there is no such source, lines are asked of cells without places, or a
        counter names a line, a direction or a time that there is none of.
    """
    chosen = asked or Asked()
    result.check(result.busiest, chosen.source)
    if chosen.lines:
        result.states.placed_grid  # noqa: B018  # says that cells have no place
    factor, unit = hourly(result)
    times = examined_times(result)
    counted = _counters(chosen, result, times)
    parts: dict[str, list[pd.DataFrame]] = {name: [] for name in _TABLES}
    subjects: dict[Subject, list[_Held]] = {}
    outside, split = 0.0, 0.0
    edges = _length_edges(result, chosen, times)
    crossings = Crossings(chosen.lines, result.states.placed_grid) if chosen.lines else None
    for time in times:
        at = _at(result, chosen, time, factor)
        outside = max(outside, at.flows.outside)
        parts["volumes"] += _volumes(at, chosen, result, counted, subjects, crossings)
        _total(at, counted, subjects)
        parts["trip_ends"].append(_trip_ends(at, result, subjects))
        if at.km is not None:
            lengths, histogram = _lengths(at, edges, subjects)
            parts["lengths"].append(lengths)
            parts["histogram"].append(histogram)
        if chosen.sectors is not None:
            split = max(split, chosen.sectors.share_split(at.flows))
            parts["sector_flows"].append(_sector_flows(at, chosen.sectors, subjects))
        _cells(at, subjects)
    days = day_profiles(
        result, [line_profiled(line, result.states) for line in chosen.lines], chosen.source
    )
    judged = _judged_times(result, times)
    held = {of: _joined(some, judged) for of, some in subjects.items()}
    verdicts, not_asked = _verdicts(chosen, held)
    return Evidence(
        unit=unit, times=times, lines=tuple(chosen.lines), verdicts=verdicts, not_asked=not_asked,
        by_day=days.rename(columns={"name": "line"}), fits=_fits(held),
        notes=tuple(_notes(result, chosen, times, outside, unit, split)),
        about={
            "basis": result.basis, "source": result.source_label(chosen.source),
            **({} if chosen.reference is None else {"reference": chosen.reference.label}),
            **({} if chosen.preset is None else {"preset": chosen.preset.label}),
        },
        **{name: _table(parts[name], columns) for name, columns in _TABLES.items()},
    )  # fmt: skip


_TABLES: Mapping[str, tuple[str, ...]] = {
    "volumes": (
        "line", "kind", "direction", "time", "count", "low", "high", "corrected", "reference",
        "counted", "geh", "sqv",
    ),
    "lengths": ("time", "figure", "value", "low", "high", "corrected", "reference"),
    "histogram": ("time", "from_km", "to_km", "count", "low", "high", "corrected", "reference"),
    "trip_ends": ("place", "end", "time", "count", "low", "high", "corrected", "reference"),
    "sector_flows": ("origin", "dest", "time", "count", "low", "high", "corrected", "reference"),
}  # fmt: skip


def _table(parts: Sequence[pd.DataFrame], columns: Sequence[str]) -> pd.DataFrame:
    some = [part for part in parts if len(part)]
    if not some:
        return pd.DataFrame(columns=list(columns))
    return pd.concat(some, ignore_index=True)[list(columns)]


def examined_times(result: FlowResult) -> tuple[str, ...]:
    """Times of day, after the mean of the day where there is one of several."""
    times = tuple(result.times_of_day)
    return (WHOLE_DAY, *times) if WHOLE_DAY in result.times and WHOLE_DAY not in times else times


def _judged_times(result: FlowResult, times: tuple[str, ...]) -> tuple[str, ...]:
    """Times whose values criteria are asked of: each time of day, or else the mean of the day.

    The mean of the day is another sum of the same flows, and is not asked beside them. It is where
    worlds tell of it alone.
    """
    of_day = tuple(time for time in times if time != WHOLE_DAY) or times
    return (WHOLE_DAY,) if result.times_of_draws == (WHOLE_DAY,) else of_day


@dataclass(frozen=True)
class _Held:
    """Sums of a subject at a time, and what was counted of them (K,)."""

    time: str
    sums: Sums
    counted: FloatArray
    slack: FloatArray
    """(K,) half a person, in the unit of the sums."""
    nobody: int = 0
    """How many more there are of which nobody is estimated, may be true, or was counted."""


def _joined(some: Sequence[_Held], times: Sequence[str]) -> _Held:
    """Those of some times, one after the other."""
    kept = [one for one in some if one.time in times]
    if not kept:
        return _Held("", Sums(np.zeros(0), None), np.zeros(0), np.zeros(0))
    sums = Sums.joined([one.sums for one in kept])
    counted, slack = (
        np.concatenate(some)
        for some in zip(*((one.counted, one.slack) for one in kept), strict=True)
    )
    return _Held("", sums, counted, slack, sum(one.nobody for one in kept))


def _at(result: FlowResult, chosen: Asked, time: str, factor: float) -> _AtTime:
    reference, tables = None, {} if chosen.reference is None else chosen.reference.tables
    flows = cell_flows(
        result, [time], chosen.source, factor, [tables[time]] if time in tables else ()
    )
    if time in tables:
        reference = reference_at(tables, [time], flows, factor)
    n = result.states.n_cells
    n_moves = int(flows.moves.sum()) if result.is_sparse else n * (n - 1)
    steps, km = steps_of(result, time), _km(result, chosen, flows)
    person = 0.0 if steps is None else factor / steps
    return _AtTime(time, person, flows, reference, km, n_moves)


def _hold(
    at: _AtTime,
    subjects: dict[Subject, list[_Held]],
    subject: Subject,
    sums: Sums,
    counted: FloatArray | None,
    nobody: int = 0,
) -> None:
    """Note values that a criterion may be asked of, where something was counted."""
    if counted is None:
        return
    known = np.isfinite(counted)
    if known.any():
        slack = np.full(known.sum(), 0.0 if subject == "lengths" else HALF * at.person)
        held = _Held(at.time, sums.take(known), counted[known], slack, nobody)
        subjects.setdefault(subject, []).append(held)


# Volumes


def _counters(
    chosen: Asked, result: FlowResult, times: Sequence[str]
) -> Mapping[tuple[str, str, str], float]:
    """People per hour that were counted, by line, direction and time; several are summed."""
    if chosen.counters is None:
        return {}
    grid = result.states.placed_grid
    known = {line.name: line.directions(grid) for line in chosen.lines}
    table = chosen.counters
    lines, hours = set(table["line"]) - set(known), set(table["time"]) - set(times)
    if lines:
        raise InputError(
            f"Counters stand at {_few(lines)}, and the lines are {_few(known)}; name them so.",
            code="unknown-line",
        )
    if hours:
        raise InputError(
            f"Counters are of the time {_few(hours)}, and there are flows at {_few(times)}; name "
            "times so.",
            code="unknown-time",
        )
    for name, direction in set(zip(table["line"], table["direction"], strict=True)):
        if direction not in (*known[name], BOTH_WAYS):
            raise InputError(
                f"Counters of {printable(name)} go {printable(direction)}, and its directions are "
                f"{' and '.join(known[name])}; name them so.",
                code="unknown-direction",
            )
    keys = ["line", "direction", "time"]
    summed = table.groupby(keys, as_index=False)["count"].sum()
    return dict(zip(summed[keys].itertuples(index=False, name=None), summed["count"], strict=True))


def _few(names: Iterable[str]) -> str:
    """Some names for a sentence."""
    shown = sorted(names)
    more = ", …" if len(shown) > MOST_NAMED else ""
    return ", ".join(printable(str(name), 40) for name in shown[:MOST_NAMED]) + more


def _volumes(
    at: _AtTime,
    chosen: Asked,
    result: FlowResult,
    counters: Mapping[tuple[str, str, str], float],
    subjects: dict[Subject, list[_Held]],
    crossings: Crossings | None,
) -> Iterator[pd.DataFrame]:
    if crossings is None:
        return
    for number, line in enumerate(chosen.lines):
        grid = result.states.placed_grid
        names: tuple[str, ...] = line.directions(grid)
        weights = crossings.of(number, at.flows.origin, at.flows.dest).astype(np.float64)
        if any(of[:2] == (line.name, BOTH_WAYS) for of in counters):
            names, weights = (*names, BOTH_WAYS), np.vstack([weights, weights.sum(axis=0)])
        picked = sparse.csr_array(weights)
        sums, reference = at.flows.summed(picked), at.of_reference(picked)
        counted = np.array([counters.get((line.name, name, at.time), np.nan) for name in names])
        # Both ways together are asked of what was counted so; of a reference each way is.
        beside = np.full(len(names), np.nan) if reference is None else reference.copy()
        beside[2:] = np.nan
        best = np.where(np.isfinite(counted), counted, beside)
        _hold(at, subjects, "screenlines", sums, best)
        _hold(at, subjects, "counters", sums, counted)
        yield rows_of(
            sums, reference, line=line.name, kind="cordon" if line.is_cordon else "screenline",
            direction=names, time=at.time,
        ).assign(
            counted=counted, geh=geh(sums.estimate, best), sqv=sqv(sums.estimate, best)
        )  # fmt: skip


def _total(
    at: _AtTime,
    counters: Mapping[tuple[str, str, str], float],
    subjects: dict[Subject, list[_Held]],
) -> None:
    """The sum of all that was counted at the time: at counters, or moves where there are none."""
    if counters:
        here = [held for held in subjects.get("counters", ()) if held.time == at.time]
        if here:
            sums = Sums.joined([held.sums for held in here])
            errors = None if sums.errors is None else sums.errors.sum(axis=1, keepdims=True)
            counted = np.concatenate([held.counted for held in here])
            total = Sums(np.array([sums.estimate.sum()]), errors)
            _hold(at, subjects, "total", total, np.array([counted.sum()]))
    elif at.reference is not None:
        moves = at.flows.moves
        total = at.flows.summed(moves.astype(float))
        _hold(at, subjects, "total", total, np.array([at.reference[moves].sum()]))


# Trip ends, cells, sectors


def _trip_ends(
    at: _AtTime, result: FlowResult, subjects: dict[Subject, list[_Held]]
) -> pd.DataFrame:
    n, names = result.states.n_cells, list(result.states.cells)
    found = []
    for end, numbers in (("out", at.flows.origin), ("in", at.flows.dest)):
        moved = np.where(at.flows.moves, numbers, -1)
        sums = at.flows.by(moved, n)
        reference = None
        if at.reference is not None:
            here = at.flows.moves
            reference = np.bincount(numbers[here], at.reference[here], n).astype(np.float64)
        _hold(at, subjects, "trip ends", sums, reference)
        found.append(rows_of(sums, reference, place=names, end=end, time=at.time))
    return pd.concat(found, ignore_index=True)


def _cells(at: _AtTime, subjects: dict[Subject, list[_Held]]) -> None:
    if at.reference is None:
        return
    moves, errors = at.flows.moves, at.flows.errors
    # Draws of single flows may be below 0; made 0 there, sums of them would be too large.
    sums = Sums(at.flows.count, errors, positive=False).take(moves)
    _hold(at, subjects, "cells", sums, at.reference[moves], at.n_moves - int(moves.sum()))


def _sector_flows(
    at: _AtTime, sectors: Sectors, subjects: dict[Subject, list[_Held]]
) -> pd.DataFrame:
    n, names = len(sectors.names), np.array(sectors.names, dtype=object)
    moved = at.flows.only_moves
    sums, reference = sectors.flows(moved), None
    if at.reference is not None:
        counted = CellFlows(moved.origin, moved.dest, at.reference[at.flows.moves], None, 0.0)
        reference = sectors.flows(counted).estimate
    _hold(at, subjects, "sectors", sums, reference)
    origin, dest = np.divmod(np.arange(n * n), n)
    return rows_of(sums, reference, origin=names[origin], dest=names[dest], time=at.time)


# Lengths


def _length_edges(result: FlowResult, chosen: Asked, times: Sequence[str]) -> FloatArray:
    """Borders of bins up to the farthest move of half a person or more at any of the times."""
    n, longest = result.states.n_cells, 0.0
    for time in times:
        least = HALF / (steps_of(result, time) or 1)
        rows = result.rows(time, chosen.source, least=least)
        ends = [rows[["origin", "dest"]].to_numpy(np.int64).T]
        if chosen.reference is not None and time in chosen.reference.tables:
            table = chosen.reference.tables[time]
            ends.append(np.stack(ends_of(table, entries(table) >= least)))
        origin, dest = np.concatenate(ends, axis=1)
        within = (origin < n) & (dest < n)
        pairs = CellFlows(origin[within], dest[within], np.zeros(within.sum()), None, 0.0)
        km = _km(result, chosen, pairs)
        longest = max(longest, 0.0 if km is None else float(km.max(initial=0.0)))
    return length_bins(longest)


def _km(result: FlowResult, chosen: Asked, flows: CellFlows) -> FloatArray | None:
    """Kilometres (P,) of each pair; None where cells have no place and no distances were given."""
    if chosen.km is not None:
        return np.asarray(chosen.km[flows.origin, flows.dest], dtype=np.float64)
    grid = result.states.grid
    return None if grid is None else straight_km(grid, flows)


def _lengths(
    at: _AtTime, edges: FloatArray, subjects: dict[Subject, list[_Held]]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    assert at.km is not None, "asked only where distances are known"
    found = length_sums(at.flows, at.km, edges)
    counted = None
    if at.reference is not None:
        counted = length_sums(
            CellFlows(at.flows.origin, at.flows.dest, at.reference, None, 0.0), at.km, edges
        )
    figures = found.figures(counted)
    beside = None if counted is None else counted.figures(counted).estimate
    mean_and_sd = slice(0, 2)
    held = None if beside is None else beside[mean_and_sd]
    _hold(at, subjects, "lengths", figures.take(mean_and_sd), held)
    names = FIGURES[: len(figures.estimate)]
    table = rows_of(figures, beside, time=at.time, figure=names).rename(columns={"count": "value"})
    histogram = rows_of(
        found.by_bin, None if counted is None else counted.by_bin.estimate,
        time=at.time, from_km=edges[:-1], to_km=edges[1:],
    )  # fmt: skip
    return table, histogram


# Fits and verdicts


FITTED: Mapping[Subject, str] = {
    "cells": "flows between cells", "trip ends": "trip ends", "sectors": "flows between sectors",
    "screenlines": "screenlines", "counters": "counters",
}  # fmt: skip
_FIGURES = ("slope", "intercept", "r2", "rmse", "percent_rmse")


def _fits(subjects: Mapping[Subject, _Held]) -> pd.DataFrame:
    rows = []
    for subject, words in FITTED.items():
        held = subjects.get(subject)
        if held is None or not held.counted.size:
            continue
        figures = held.sums.figures(
            partial(_fit_figures, counted=held.counted, nobody=held.nobody), positive=False
        )
        nothing = np.full(len(_FIGURES), np.nan)
        ends = figures.interval() or (nothing, nothing)
        row: dict[str, Any] = {"of": words, "n": len(held.counted) + held.nobody}
        middles = corrected(figures.estimate, *ends)
        for name, value, low, high, middle in zip(
            _FIGURES, figures.estimate, *ends, middles, strict=True
        ):
            row |= {
                name: float(value), f"{name}_low": float(low), f"{name}_high": float(high),
                f"{name}_corrected": float(middle),
            }  # fmt: skip
        rows.append(row)
    columns = ["of", "n"]
    columns += [f"{name}{end}" for name in _FIGURES for end in ("", "_low", "_high", "_corrected")]
    return pd.DataFrame(rows, columns=columns)


def _fit_figures(modelled: FloatArray, counted: FloatArray, nobody: int) -> FloatArray:
    """The figures of a fit, (..., 5)."""
    fit = xy_fit(modelled, counted, nobody)
    return np.stack([getattr(fit, name) for name in _FIGURES], axis=-1)


def _verdicts(
    chosen: Asked, subjects: Mapping[Subject, _Held]
) -> tuple[tuple[Verdict, ...], tuple[str, ...]]:
    verdicts, not_asked = [], []
    for criterion in () if chosen.preset is None else chosen.preset.criteria:
        held = subjects.get(criterion.subject)
        if held is None or not held.counted.size:
            not_asked.append(criterion.words)
        else:
            verdicts.append(judge(criterion, held.sums, held.counted, held.slack, held.nobody))
    return tuple(verdicts), tuple(not_asked)


def _notes(
    result: FlowResult, chosen: Asked, times: Sequence[str], outside: float, unit: str, split: float
) -> Iterator[str]:
    if outside > 0:
        yield (
            f"Up to {outside:,.0f} {unit} come from outside of the cells or go there; they are in "
            "none of these figures."
        )
    if not result.times_of_draws:
        yield (
            "No worlds were simulated for these flows, so that how far figures may be off is not "
            "known; learn with replicates for intervals."
        )
    else:
        if result.times_of_draws == (WHOLE_DAY,) and len(times) > 1:
            yield "Simulated worlds tell of the whole day alone: single times have no intervals."
        yield (
            "Intervals come from simulated worlds whose people move by the chances that were "
            "learned; where those are off, sums over many people are missed more often than one in "
            "ten times."
        )
    if chosen.reference is not None:
        missing = [time for time in times if time not in chosen.reference.tables]
        if missing:
            yield f"The reference has no flows at {len(missing)} of {len(times)} times."
    if split > 0:
        yield (
            f"Up to {split:.0%} of moves have an end in a cell that is split between sectors by "
            "area: where in the cell people were is not known."
        )
