"""How often intervals of evidence hold what truly moved, and verdicts are those of the truth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import shapely

from agg_core.base.moves import AnyMoves
from agg_core.evidence.examine import Asked, Evidence, examine
from agg_core.evidence.lines import Screenline
from agg_core.evidence.presets import PRESETS
from agg_core.evidence.reference import Reference
from agg_core.evidence.sectors import Sectors, merged_cells
from agg_core.evidence.sums import hourly, steps_at
from agg_core.io import read_trajectories
from agg_core.made.counts import simulate_city
from agg_core.study.people import StudyResult, study_steps
from agg_core.study.result import WHOLE_DAY, FlowResult
from agg_core.study.settings import CountLearnSettings
from benchmarks.counts.cases import Case, bike_zones, commuters, tokyo
from benchmarks.counts.contest import study
from benchmarks.group_sizes.tables import Row, real_data
from benchmarks.group_sizes.tokyo import TokyoSettings

__all__ = ["CASES", "CoverageSettings", "measure"]

FloatArray = npt.NDArray[np.float64]

FROM, SLACK = 5.0, 0.5
"""People over the period from which a sum is asked about, and by how far its interval may miss."""

KINDS = ("screenlines", "sectors", "lengths")


@dataclass(frozen=True)
class CoverageSettings:
    """What is measured: cases, seeds, and how many lines and sectors are laid at random."""

    cases: tuple[str, ...] = ("tokyo, groups of 20", "tokyo, counts", "bike zones", "commuters")
    n_seeds: int = 5
    lines: int = 20
    sectors: int = 6
    off: tuple[float, ...] = (0.0, 0.02, 0.1, 0.3)


Known = tuple[FlowResult, Mapping[str, AnyMoves]]
"""A result, and by time the people per step who truly moved."""


def _of_counts(case: Case, seed: int) -> Known:
    done = study(case, CountLearnSettings(seed=seed))
    n, steps = len(done.states.names), done.steps
    assert steps is not None, "learned today"
    moves = np.zeros((len(steps), n, n))
    size = case.moves.shape[1]
    moves[:, :size, :size] = case.moves
    tables = {
        time: moves[slot] / max(steps[slot], 1)
        for slot, time in enumerate(done.slots)
        if time in done.times_of_day
    }
    return done, {**tables, WHOLE_DAY: moves.sum(axis=0) / sum(steps)}


def _of_groups(seed: int) -> Known:
    path = real_data("tokyo_people_flow/tokyo_1000users_20min.csv")
    people = read_trajectories(path, where={"full_day": "1"})
    settings = TokyoSettings().study(20, 0.05, seed)
    *_, done = study_steps(people, replace(settings, learn=replace(settings.learn, replicates=4)))
    assert isinstance(done, StudyResult)
    return done, {time: done.matrix(time, "counted") for time in done.times}


CASES = {
    "tokyo, groups of 20": _of_groups,
    "tokyo, counts": lambda seed: _of_counts(tokyo(10), seed),
    "bike zones": lambda seed: _of_counts(bike_zones(), seed),
    "commuters": lambda seed: _of_counts(commuters(simulate_city(random_state=seed)), seed),
}


def measure(settings: CoverageSettings) -> Iterator[Row]:
    """A row for each case and seed: shares of sums in their intervals, and verdicts by answer."""
    for name in settings.cases:
        for seed in range(settings.n_seeds):
            result, truth = CASES[name](seed)
            rng = np.random.default_rng([seed, 7])
            lines, sectors = _lines(result, settings.lines, rng), _sectors(result, settings, rng)
            asked = Asked(lines=lines, sectors=sectors, reference=Reference("truth", truth))
            yield {
                "case": name, "seed": seed, **_held(result, examine(result, asked)),
                **_verdicts(result, truth, replace(asked, preset=None), settings.off, rng),
            }  # fmt: skip


def _lines(result: FlowResult, n: int, rng: np.random.Generator) -> tuple[Screenline, ...]:
    """Straight lines between places at random; none where cells have no place."""
    if result.states.grid is None:
        return ()
    west, south, east, north = result.states.grid.bounds
    ends = rng.uniform([west, south], [east, north], (n, 2, 2))
    return tuple(Screenline(f"line {k}", shapely.LineString(path)) for k, path in enumerate(ends))


def _sectors(result: FlowResult, settings: CoverageSettings, rng: np.random.Generator) -> Sectors:
    """Cells by the nearest of some of them; of cells without a place any."""
    n = result.states.n_cells
    if result.states.grid is None:
        of = rng.integers(0, settings.sectors, n)
    else:
        places = result.states.grid.centroids_m
        middles = places[rng.choice(n, min(settings.sectors, n), replace=False)]
        of = np.argmin(np.hypot(*(places[:, None] - middles[None]).transpose(2, 0, 1)), axis=1)
    groups = [(f"sector {k}", np.flatnonzero(of == k).tolist()) for k in np.unique(of)]
    return merged_cells(groups, n)


def _held(result: FlowResult, found: Evidence) -> Row:
    """Shares of screenlines, of flows between sectors and of mean lengths in their intervals."""
    factor = hourly(result)[0]
    per = {time: factor / steps_at(result, time) for time in found.times}
    tables = {
        "screenlines": found.volumes, "sectors": found.sector_flows,
        "lengths": found.lengths.query("figure == 'mean_km'").rename(columns={"value": "count"}),
    }  # fmt: skip
    row: Row = {}
    for kind in KINDS:
        table = tables[kind]
        per_person = table["time"].map(per).astype(float)
        if kind == "lengths":
            table, least, slack = table.loc[table["reference"].notna()], -np.inf, 0.0
        else:
            least, slack = FROM * per_person, SLACK * per_person
        asked = table["low"].notna() & (table["count"] > least)
        in_it = (table["low"] - slack <= table["reference"]) & (
            table["reference"] <= table["high"] + slack
        )
        row |= {f"n_{kind}": int(asked.sum()), kind: float(in_it[asked].mean())}
    return row


class _Known:
    """A result whose flows are known: the same cells and times, other numbers, no errors."""

    def __init__(self, result: FlowResult, tables: Mapping[str, AnyMoves]) -> None:
        self._result, self._tables = result, tables

    def __getattr__(self, name: str) -> Any:
        return getattr(self._result, name)

    def matrix(self, time: str, *_: Any) -> AnyMoves:
        return self._tables[time]

    def draws(self, *_: Any) -> None:
        return None


def _verdicts(
    result: FlowResult,
    truth: Mapping[str, AnyMoves],
    asked: Asked,
    off: Sequence[float],
    rng: np.random.Generator,
) -> Row:
    """How many verdicts are those of the true flows, are not, or could not be told.

    What flows are held against is the truth times factors of a spread, one for each pair of cells
    and one for all, so that some criteria are met and others are not.
    """
    counted: dict[str, int] = {"agree": 0, "wrong": 0, "cannot_tell": 0, "pass": 0, "fail": 0}
    known: Any = _Known(result, truth)
    for spread in off:
        n = len(result.states.names)
        factors = np.exp(rng.normal(0, spread, (n, n)) + rng.normal(0, spread / 2))
        against = {time: np.asarray(table) * factors for time, table in truth.items()}
        for preset in PRESETS.values():
            one = replace(asked, reference=Reference("old matrix", against), preset=preset)
            by_truth = {v.criterion: v.met for v in examine(known, one).verdicts}
            for verdict in examine(result, one).verdicts:
                right = by_truth[verdict.criterion]
                if verdict.answer == "cannot be told":
                    counted["cannot_tell"] += 1
                    continue
                counted[verdict.answer] += 1
                counted["agree" if (verdict.answer == "pass") == right else "wrong"] += 1
    total = counted["agree"] + counted["wrong"] + counted["cannot_tell"]
    return {**counted, "right_or_open": 1 - counted["wrong"] / max(total, 1)}
