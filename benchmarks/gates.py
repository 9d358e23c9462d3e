"""Flows from entries and exits beside what others make of them: ``python -m benchmarks gates``.

Entries, exits and pairs of stations of Bengaluru's metro, by the hour, in August 2025. Whoever
needs a law of distance takes one that is usual: pairs are what nobody knows.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from threadpoolctl import threadpool_limits

from agg_core.counts.pairs import CountPairs
from agg_core.gates.days import ServiceDays, kinds_of_days, service_days
from agg_core.io.flow_tables import FlowTable, KnownStates, read_flow_table
from agg_core.io.gates import read_gates
from agg_core.space.grid import BaseGrid
from agg_core.study.gates import GateStudy, gate_study_steps
from agg_core.study.reference import compare_by_day
from agg_core.study.result import OUTSIDE_NAME
from agg_core.study.settings import GateLearnSettings
from agg_core.tables.flows import common_part
from agg_core.tables.gates import GateTable
from benchmarks.counts.peer import can_learn, peer_flows
from benchmarks.group_sizes.tables import Row, real_data

__all__ = ["main", "measure"]

FloatArray = npt.NDArray[np.float64]

LAST_DAY = "2025-08-18"
MATRIX_UNTIL = "2025-08-07"
"""The last day of the week whose pairs are the old matrix; later days are held against."""
ALONE_UNTIL = "2025-08-10"
"""The last of the ten days that flows from entries and exits alone are held against."""

ROUNDS = 300
"""Of proportional fitting."""

PEER_SECONDS = 240.0
"""After which a round of the peer is its last."""

KM = 10.0
"""How far people go by the exponential law: its decay is one over that."""


def _read() -> tuple[GateTable, FlowTable]:
    """Entries and exits, and pairs by date of their exit."""
    sides = []
    for name in ("entries", "exits"):
        rows = pd.read_parquet(real_data(f"bengaluru_metro/{name}_by_hour.parquet"))
        sides.append(rows.loc[rows["Date"].astype(str) <= LAST_DAY])
    table = read_gates(*sides, real_data("bengaluru_metro/stations.csv"))
    known = KnownStates(table.stations, OUTSIDE_NAME, table.entries.slots, 60.0, "UTC")
    pairs = real_data("bengaluru_metro/pairs_by_hour_aug01_12.parquet")
    return table, read_flow_table(pairs, known, by_date=True)


def _dates(pairs: FlowTable, *, after: str = "", until: str = "9999") -> list[str]:
    return [date for date in pairs.dates if after < date <= until]


def _some(pairs: FlowTable, dates: Sequence[str]) -> FlowTable:
    """Pairs of some days."""
    numbers = [pairs.dates.index(date) for date in dates]
    rows = pairs.flows.loc[pairs.flows["date"].isin(numbers)]
    renumbered = rows.assign(date=rows["date"].map({n: k for k, n in enumerate(numbers)}))
    return FlowTable(renumbered, pairs.times, pairs.set_aside, tuple(dates))


def _by_date(pairs: FlowTable, n: int) -> Mapping[str, FloatArray]:
    found = {date: np.zeros((n, n)) for date in pairs.dates}
    rows = pairs.flows.loc[(pairs.flows[["origin", "dest"]] < n).all(axis=1)]
    for number, date in enumerate(pairs.dates):
        day = rows.loc[rows["date"] == number]
        np.add.at(found[date], (day["origin"], day["dest"]), day["count"])
    return found


def fitted(seed: FloatArray, entries: FloatArray, exits: FloatArray) -> FloatArray:
    """A table (S, S) like the seed whose sums are entries and exits (Deming & Stephan 1940)."""
    flows = seed.astype(np.float64)
    for _ in range(ROUNDS):
        for axis, sums in ((1, entries), (0, exits)):
            now = flows.sum(axis=axis, keepdims=True)
            wanted = np.expand_dims(sums, axis)
            flows = flows * np.divide(wanted, now, out=np.zeros_like(now), where=now > 0)
    return flows


def _seeds(table: GateTable, days: ServiceDays, week: Mapping[str, FloatArray]) -> Iterator[
    tuple[str, str, Callable[[str], FloatArray]]
]:  # fmt: skip
    """What others scale to the entries and exits of a day: for which work, and by its date."""
    n = table.n_stations
    away = 1.0 - np.eye(n)
    km = table.distances_km
    assert km is not None, "stations have places"
    far = np.where(away > 0, np.maximum(km, 0.1), 1.0)
    alone = "entries and exits"
    yield alone, "IPF of pairs alike", lambda _: away
    yield alone, "gravity, 1 / km", lambda _: away / far
    yield alone, f"gravity, exp(-km / {KM:g})", lambda _: away * np.exp(-far / KM)
    mean = sum(week.values(), np.zeros((n, n))) + 1e-9
    kinds = dict(zip(days.dates, kinds_of_days(days.dates).tolist(), strict=True))
    of_kind = {
        kind: sum((flows for date, flows in week.items() if kinds[date] == kind), 1e-9 * mean)
        for kind in set(kinds.values())
    }
    yield "with a week's matrix", "IPF of the week", lambda _: away * mean
    yield (
        "with a week's matrix", "IPF of the week by kind of day",
        lambda date: away * of_kind[kinds[date]],
    )  # fmt: skip


def measure(draws: int) -> Iterator[Row]:
    """A row for each work and who does it: the common part of a day's pairs, a mean over days."""
    table, pairs = _read()
    days = service_days(table)
    truth = _by_date(pairs, table.n_stations)
    week = {date: truth[date] for date in _dates(pairs, until=MATRIX_UNTIL)}
    asked = {
        "entries and exits": _dates(pairs, until=ALONE_UNTIL),
        "with a week's matrix": _dates(pairs, after=MATRIX_UNTIL),
    }
    settings = GateLearnSettings(hour_of="exit", draws=draws)
    for work, dates in asked.items():
        matrix = _some(pairs, list(week)) if work == "with a week's matrix" else None
        began = time.perf_counter()
        *_, done = gate_study_steps(table, settings, matrix)
        assert isinstance(done, GateStudy)
        seconds = time.perf_counter() - began
        found = compare_by_day(done, _some(pairs, dates), least=50.0)
        yield {
            "work": work, "by": "this project", "cpc": found.cpc, "n_days": len(dates),
            "coverage_90": found.coverage_90, "seconds": seconds,
        }  # fmt: skip
    at = {date: number for number, date in enumerate(days.dates)}

    def row(work: str, by: str, flows_of: Callable[[str], FloatArray]) -> Row:
        began = time.perf_counter()
        away = ~np.eye(table.n_stations, dtype=bool)
        every = [common_part(flows_of(d)[away], truth[d][away]) for d in asked[work]]
        seconds = time.perf_counter() - began
        return {
            "work": work, "by": by, "cpc": float(np.mean(every)), "n_days": len(every),
            "coverage_90": None, "seconds": seconds,
        }  # fmt: skip

    for work, by, seed in _seeds(table, days, week):

        def scaled(date: str, seed: Callable[[str], FloatArray] = seed) -> FloatArray:
            of_day = at[date]
            return fitted(
                seed(date), days.entries[of_day].sum(axis=0), days.exits[of_day].sum(axis=0)
            )

        yield row(work, by, scaled)
    if table.grid is not None:
        yield from _flowstock(days, table.grid.make(), asked["entries and exits"], row)


def _flowstock(
    days: ServiceDays, grid: BaseGrid, dates: Sequence[str],
    row: Callable[[str, str, Callable[[str], FloatArray]], Row],
) -> Iterator[Row]:  # fmt: skip
    """The peer from counts, to whom entries of a day are people before a move, exits after it."""
    numbers = [days.dates.index(date) for date in dates]
    before, after = (side[numbers].sum(axis=1) for side in (days.entries, days.exits))
    of, none = np.arange(len(dates)), np.zeros(before.shape, dtype=bool)
    pairs = CountPairs(
        before=before,
        after=after,
        slot=of,
        day=of,
        slots=tuple(dates),
        has_outside=False,
        open_before=none,
        open_after=none,
    )
    if not can_learn(pairs, grid):
        return
    began = time.perf_counter()
    flows, what = peer_flows(pairs, grid, seconds=PEER_SECONDS)
    seconds = time.perf_counter() - began
    by_date = dict(zip(dates, flows, strict=True))
    found = row("entries and exits", f"flowstock ({what})", by_date.__getitem__)
    yield {**found, "seconds": seconds}


def main(words: list[str]) -> int:
    """Print the table, or with ``--json`` its rows."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks gates", description=__doc__)
    parser.add_argument("--draws", type=int, default=24, help="patterns that tell intervals")
    parser.add_argument("--json", action="store_true", help="rows as JSON")
    chosen = parser.parse_args(words)
    with threadpool_limits(1):
        rows = list(measure(chosen.draws))
    if chosen.json:
        print(json.dumps(rows))
        return 0
    table: Any = pd.DataFrame(rows)
    print("Common part (CPC) of a day's pairs of stations, a mean over days; pairs above 50 people")
    print(table.to_string(index=False, float_format=lambda value: f"{value:.3f}"))
    return 0
