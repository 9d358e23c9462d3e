"""Flows over the times of day: of a line, a cell, a pair of cells or a sector, day by day.

The mean of the days has an interval where worlds were simulated. Single days stand beside it as
they are estimated, so that one sees how far days differ from each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from agg_core.base.errors import InputError
from agg_core.base.report import printable
from agg_core.evidence.lines import Screenline
from agg_core.evidence.reference import Reference
from agg_core.evidence.sectors import Sectors
from agg_core.evidence.sums import CellFlows, cell_flows, hourly, reference_at
from agg_core.evidence.tables import records, rows_of
from agg_core.study.result import ESTIMATE, WHOLE_DAY, FlowResult, States

__all__ = [
    "MEAN",
    "MOST_DAYS",
    "Profile",
    "Profiled",
    "ProfiledKind",
    "cell_profiled",
    "day_profiles",
    "line_profiled",
    "pair_profiled",
    "profile",
    "profile_times",
    "profiled_by_name",
    "sector_profiled",
]

IntArray = npt.NDArray[np.int64]

MOST_DAYS = 62
"""Days that are told one by one; of more there is the mean alone."""

ProfiledKind = Literal["line", "sector", "cell", "pair"]
"""Kinds of what can be followed; a pair is two cells."""

PAIR = 2

MEAN = "mean"
"""What stands for the day in rows of the mean over all days."""


@dataclass(frozen=True)
class Profiled:
    """What is followed over the day, by its name.

    ``ways`` (K,) are what its directions are called, and ``weights`` gives from flows of P pairs
    what each counts for in each of them, (K, P).
    """

    name: str
    ways: tuple[str, ...]
    weights: Callable[[CellFlows], sparse.csr_array]


@dataclass(frozen=True)
class Profile:
    """Flows over the times of day in `unit`, such as people per hour.

    ``rows`` have direction, time, count, low, high, corrected and reference, of the mean over days;
    ``days`` have direction, day, time and count, and are empty where days are not kept apart.
    """

    name: str
    unit: str
    rows: pd.DataFrame
    days: pd.DataFrame

    @property
    def table(self) -> pd.DataFrame:
        """All of it, with the columns name and day; the mean is first."""
        mean = self.rows.assign(name=self.name, day=MEAN)
        days = self.days.assign(name=self.name)
        columns = ["name", "direction", "day", "time"]
        columns += [str(name) for name in self.rows if name not in columns]
        some = [part.reindex(columns=columns) for part in (mean, days) if len(part)]
        return pd.concat(some, ignore_index=True) if some else mean.reindex(columns=columns)

    def to_dict(self) -> dict[str, Any]:
        """All of it in plain JSON types."""
        tables = {"rows": records(self.rows), "days": records(self.days)}
        return {"name": self.name, "unit": self.unit, **tables}


# What can be followed


def line_profiled(line: Screenline, states: States) -> Profiled:
    """People who cross a line, or a cordon, by direction.

    Raises
    ------
    InputError
        If cells have no place.
    """
    grid = states.placed_grid

    def weights(flows: CellFlows) -> sparse.csr_array:
        crossed = np.stack(line.crossed(grid, flows.origin, flows.dest))
        return sparse.csr_array(crossed.astype(np.float64))

    return Profiled(line.name, line.directions(grid), weights)


def cell_profiled(states: States, cell: int) -> Profiled:
    """People who leave a cell for another (out), and who come to it (in).

    Raises
    ------
    InputError
        If there is no such cell.
    """
    _check_cell(states, cell)

    def weights(flows: CellFlows) -> sparse.csr_array:
        return _picked(flows.moves & (flows.origin == cell), flows.moves & (flows.dest == cell))

    return Profiled(states.cells[cell], ("out", "in"), weights)


def pair_profiled(states: States, one: int, other: int) -> Profiled:
    """People who go from one cell to another, and back.

    Raises
    ------
    InputError
        If there is no such cell, or both are the same.
    """
    _check_cell(states, one)
    _check_cell(states, other)
    if one == other:
        raise InputError(
            f"A pair is of two cells, and both are {printable(states.cells[one], 40)}; choose "
            "another one.",
            code="same-on-both-sides",
        )
    a, b = states.cells[one], states.cells[other]

    def weights(flows: CellFlows) -> sparse.csr_array:
        return _picked(
            (flows.origin == one) & (flows.dest == other),
            (flows.origin == other) & (flows.dest == one),
        )

    return Profiled(f"{a} and {b}", (f"{a} to {b}", f"{b} to {a}"), weights)


def sector_profiled(sectors: Sectors, name: str) -> Profiled:
    """People who leave a sector for another (out), and who come to it (in).

    Raises
    ------
    InputError
        If there is no such sector.
    """
    if name not in sectors.names:
        raise InputError(
            f"There is no sector {printable(name, 40)}; choose one of "
            f"{', '.join(printable(known, 40) for known in sectors.names)}.",
            code="unknown-sector",
        )
    number, n = sectors.names.index(name), len(sectors.names)
    origin, dest = np.divmod(np.arange(n * n), n)
    ends = [(origin == number) & (dest != number), (dest == number) & (origin != number)]
    picked = _picked(*ends)
    return Profiled(name, ("out", "in"), lambda flows: sparse.csr_array(
        picked @ sectors.weights(flows)
    ))  # fmt: skip


def profiled_by_name(
    states: States,
    names: Sequence[str],
    lines: Sequence[Screenline] = (),
    sectors: Sectors | None = None,
    kind: ProfiledKind | None = None,
) -> Profiled:
    """What one or two names stand for: a line, a sector or a cell, or two cells.

    Without a ``kind`` one name is that of a line if there is one, else of a sector, else of a cell.

    Raises
    ------
    InputError
        If there is nothing of that name, or the names are not one or two.
    """
    cells = {name: number for number, name in enumerate(states.cells)}
    if len(names) == 1:
        (name,) = names
        line = next((line for line in lines if line.name == name), None)
        if line is not None and kind in (None, "line"):
            return line_profiled(line, states)
        if sectors is not None and name in sectors.names and kind in (None, "sector"):
            return sector_profiled(sectors, name)
        if name in cells and kind in (None, "cell"):
            return cell_profiled(states, cells[name])
    elif len(names) == PAIR and set(names) <= set(cells) and kind in (None, "pair"):
        return pair_profiled(states, cells[names[0]], cells[names[1]])
    raise InputError(
        f"There is no line, sector or cell {printable(' and '.join(names), 80)}; give the name of "
        "one of them, or the names of two cells.",
        code="unknown-place",
    )


def _check_cell(states: States, cell: int) -> None:
    if not 0 <= cell < states.n_cells:
        raise InputError(
            f"There is no cell {cell}; cells go from 0 to {states.n_cells - 1}.",
            code="unknown-cell",
        )


def _picked(*masks: npt.NDArray[np.bool_]) -> sparse.csr_array:
    return sparse.csr_array(np.stack(masks).astype(np.float64))


# How it flows


def profile(
    result: FlowResult,
    of: Profiled,
    *,
    source: str = ESTIMATE,
    reference: Reference | None = None,
) -> Profile:
    """Flows at each time of day that a result has, with those of a reference beside them.

    Raises
    ------
    InputError
        If the result has no such source.
    """
    factor, unit = hourly(result)
    parts = []
    tables = {} if reference is None else reference.tables
    for time in profile_times(result):
        held = [tables[time]] if time in tables else []
        flows = cell_flows(result, [time], source, factor, held)
        weights, beside = of.weights(flows), None
        if held:
            beside = np.asarray(weights @ reference_at(tables, [time], flows, factor))
        parts.append(rows_of(flows.summed(weights), beside, direction=of.ways, time=time))
    days = day_profiles(result, [of], source).drop(columns="name")
    return Profile(of.name, unit, pd.concat(parts, ignore_index=True), days)


def profile_times(result: FlowResult) -> tuple[str, ...]:
    """Times of day, in order; those of the whole day where there are no others."""
    return tuple(time for time in result.times if time != WHOLE_DAY) or tuple(result.times)


def day_profiles(
    result: FlowResult, some: Sequence[Profiled], source: str = ESTIMATE
) -> pd.DataFrame:
    """Name, direction, day, time and count of each of some things on each day.

    Days are those that were chosen, else all. Nothing where days are not kept apart, where there is
    but one, or more than `MOST_DAYS`, or where the source is not of single days. A time at which
    nothing was seen on a day has no row.
    """
    columns = ["name", "direction", "day", "time", "count"]
    nothing = pd.DataFrame(columns=columns)
    days = result.chosen_days or result.days
    if not (some and 1 < len(days) <= MOST_DAYS):
        return nothing
    parts = []
    for day in days:
        alone = result.of_days([day])
        if source not in alone.sources_of_days:
            return nothing
        factor = hourly(alone)[0]
        for time in profile_times(alone):
            rows = alone.rows(time, source)[["origin", "dest", "count"]]
            parts.append(rows.assign(day=day, time=time, count=factor * rows["count"]))
    return _summed(pd.concat(parts, ignore_index=True), some, result.states.n_cells)[columns]


def _summed(rows: pd.DataFrame, some: Sequence[Profiled], n_cells: int) -> pd.DataFrame:
    """Sums of flows of each day and time, by what they count for in each of some things."""
    moments = rows[["day", "time"]].drop_duplicates().reset_index(drop=True)
    moment = moments.reset_index().merge(rows[["day", "time"]], on=["day", "time"], how="right")
    within = (rows["origin"] < n_cells) & (rows["dest"] < n_cells)
    keys = (rows["origin"].astype(np.int64) * n_cells + rows["dest"])[within]
    pairs, pair = np.unique(keys.to_numpy(), return_inverse=True)
    people = sparse.csr_array(
        (rows["count"][within].to_numpy(np.float64), (pair, moment["index"][within].to_numpy())),
        shape=(len(pairs), len(moments)),
    )  # fmt: skip
    origin, dest = np.divmod(pairs, n_cells)
    flows = CellFlows(origin, dest, np.zeros(len(pairs)), None, 0.0)
    parts = []
    for of in some:
        sums = (of.weights(flows) @ people).toarray()
        for way, counts in zip(of.ways, sums, strict=True):
            parts.append(moments.assign(name=of.name, direction=way, count=counts))
    return pd.concat(parts, ignore_index=True)
