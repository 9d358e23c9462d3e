"""What changed: which flows, trip ends and volumes differ between two days, times or runs.

Two days never have the same flows: people come and go by chance. What is asked is whether more
people *tend* to go somewhere. A difference is therefore held against two things at once: how far
each side may be off, which simulated worlds tell, and how far counts of people who tend to do the
same differ by chance. Of thousands of flows some always differ much; of those that are called
changed a small share at most is meant to be none (the false discovery rate, Benjamini and Hochberg
1995).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse
from scipy.special import stdtr, stdtrit

from agg_core.base.errors import InputError
from agg_core.evidence.lines import Screenline
from agg_core.evidence.sectors import Sectors
from agg_core.evidence.sums import (
    CellFlows,
    cell_flows,
    hourly,
    pooled_spread,
    steps_at,
    weights_by,
)
from agg_core.study.beside import two_results
from agg_core.study.result import ESTIMATE, FlowResult
from agg_core.tables.certainty import LEVEL

__all__ = ["DISCOVERIES", "Changes", "Side", "false_discoveries", "of_days", "of_runs", "of_times",
           "what_changed"]  # fmt: skip

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

DISCOVERIES = 0.10
"""Share of what is called changed that may be no change."""

FEWEST = 10.0
"""People on both sides together, over all steps, below which a flow is not asked about."""


@dataclass(frozen=True)
class Side:
    """One of two things that are compared: the flows of a result in the mean of some times."""

    result: FlowResult
    times: tuple[str, ...]
    label: str

    @property
    def steps(self) -> float:
        """Steps that a flow is the mean of."""
        return float(sum(steps_at(self.result, time) for time in self.times))


@dataclass(frozen=True)
class Changes:
    """Differences between two sides, the most certain first.

    All tables have before, after and difference in `unit`, low and high (an interval of nine in
    ten around the difference of what people tend to do), grew (chance that it did), and changed
    (whether it is called a change); flows have origin and dest, the numbers of cells, trip ends a
    place and an end (out, in), volumes a line and a direction, sector flows origin and dest by
    name.

    Attributes
    ----------
    labels : of the two sides
    unit : what flows are, such as people per hour
    total : one row, of all moves
    flows, trip_ends, volumes, sector_flows : the tables
    level : share of what is called changed, in each table, that may be none
    n_asked : flows that had enough people to be asked about
    """

    labels: tuple[str, str]
    unit: str
    total: pd.DataFrame
    flows: pd.DataFrame
    trip_ends: pd.DataFrame
    volumes: pd.DataFrame
    sector_flows: pd.DataFrame
    level: float
    n_asked: int

    @property
    def n_changed(self) -> int:
        """Flows that are called changed."""
        return int(self.flows["changed"].sum())

    @property
    def sentence(self) -> str:
        """What was found, for a reader."""
        before, after = self.labels
        total = self.total.iloc[0]
        moved = (
            f"{before}: {total['before']:,.0f} {self.unit} move, {after}: {total['after']:,.0f} "
            f"({_percent(total['before'], total['after'])})"
        )
        if np.isnan(total["low"]):
            return (
                f"{moved}. No worlds were simulated, so that no difference can be told from chance."
            )
        if not total["changed"] and not self.n_changed:
            return f"{moved}. No change that these counts can show."
        all_moves = "a change" if total["changed"] else "no change that these counts can show"
        return (
            f"{moved}, {all_moves} of all moves; {self.n_changed:,} of {self.n_asked:,} flows "
            f"changed, of which {self.level:.0%} or fewer are meant to be chance."
        )


def _percent(before: float, after: float) -> str:
    return "none before" if before <= 0 else f"{100 * (after / before - 1):+.0f} %"


# Sides


def of_days(
    result: FlowResult, before: Sequence[str], after: Sequence[str], time: str | None = None
) -> tuple[Side, Side]:
    """What happened on some days and on others, at a time or, left out, at the busiest.

    Raises
    ------
    InputError
        If days are not kept apart, or a day is on both sides.
    """
    both = sorted(set(before) & set(after))
    if both:
        raise InputError(
            f"{both[0]} is on both sides; give each day to one of them.", code="same-on-both-sides"
        )
    one, other = result.of_days(before), result.of_days(after)
    at = (time or result.busiest,)
    return Side(one, at, one.days_words), Side(other, at, other.days_words)


def of_times(result: FlowResult, before: Sequence[str], after: Sequence[str]) -> tuple[Side, Side]:
    """Some times of day, and others.

    Raises
    ------
    InputError
        If a time is on both sides, a side has none, or the result has no such time.
    """
    both = sorted(set(before) & set(after))
    if both or not before or not after:
        raise InputError(
            f"{both[0]} is on both sides; give each time to one of them." if both
            else "Give one time or more for each side.",
            code="same-on-both-sides",
        )  # fmt: skip
    for time in (*before, *after):
        result.check(time)
    return (
        Side(result, tuple(before), ", ".join(before)),
        Side(result, tuple(after), ", ".join(after)),
    )


def of_runs(
    before: FlowResult, after: FlowResult, labels: tuple[str, str], time: str | None = None
) -> tuple[Side, Side]:
    """Two runs of the same cells and steps, at a time that both have.

    Raises
    ------
    InputError
        If cells, steps or times are not the same, or there is no such time.
    """
    both = two_results(before, after)
    at = time or both.first_time
    before.check(at)
    after.check(at)
    return Side(before, (at,), labels[0]), Side(after, (at,), labels[1])


# Differences


@dataclass(frozen=True)
class _Both:
    """Flows of both sides over the same pairs, in one unit, and variances of chance."""

    before: CellFlows
    after: CellFlows
    chance: FloatArray
    """(P,) by how far the difference varies where people tend to do the same, squared."""
    people: FloatArray
    """(P,) who went that way, on both sides over all steps."""
    paired: bool


def what_changed(
    sides: tuple[Side, Side],
    *,
    source: str = ESTIMATE,
    lines: Sequence[Screenline] = (),
    sectors: Sectors | None = None,
    level: float = DISCOVERIES,
) -> Changes:
    """Compare two sides, of which `of_days`, `of_times` and `of_runs` make pairs.

    Raises
    ------
    InputError
        If a result has no such source, lines are asked of cells without places, or the level is
        not between 0 and 1.
    """
    if not 0 < level < 1:
        raise InputError(
            f"The share of false discoveries was {level}; give one between 0 and 1.",
            code="value-out-of-range",
        )
    both = _both(sides, source)
    n = sides[0].result.states.n_cells
    moves = both.before.moves
    asked = np.flatnonzero(moves & (both.people >= FEWEST))
    names = np.array(sides[0].result.states.cells, dtype=object)
    of_asked = np.full(len(moves), -1)
    of_asked[asked] = np.arange(len(asked))
    flows = _changes(both, weights_by(of_asked, len(asked)), level, {
        "origin": both.before.origin[asked], "dest": both.before.dest[asked],
    })  # fmt: skip
    total = _changes(both, sparse.csr_array(moves[None].astype(float)), level, {})
    ends = {"out": both.before.origin, "in": both.before.dest}
    of_ends = [weights_by(np.where(moves, numbers, -1), n) for numbers in ends.values()]
    trip_ends = _changes(both, sparse.csr_array(sparse.vstack(of_ends)), level, {
        "place": np.tile(names, 2), "end": np.repeat(list(ends), n),
    })  # fmt: skip
    return Changes(
        labels=(sides[0].label, sides[1].label), unit=hourly(sides[0].result)[1], total=total,
        flows=flows, trip_ends=trip_ends, volumes=_volumes(both, sides[0], lines, level),
        sector_flows=_sector_flows(both, sectors, level), level=level, n_asked=len(asked),
    )  # fmt: skip


def _both(sides: tuple[Side, Side], source: str) -> _Both:
    found = []
    for side in sides:
        factor = hourly(side.result)[0]
        flows = cell_flows(side.result, side.times, source, factor, ())
        # A flow is a mean over steps, of which each has a count of people.
        people = flows.count * side.steps / factor
        found.append((flows, factor / side.steps, people))
    (before, one, n_one), (after, other, n_other) = found
    ends = zip((before.origin, before.dest), (after.origin, after.dest), strict=True)
    if not all(np.array_equal(*pair) for pair in ends):
        before, after, (n_one, n_other) = _on_common_pairs(before, after, (n_one, n_other))
    chance = one * before.count + other * after.count
    worlds = [None if flows.errors is None else len(flows.errors) for flows in (before, after)]
    paired = sides[0].result.ensemble is sides[1].result.ensemble and worlds[0] == worlds[1]
    return _Both(before, after, chance, n_one + n_other, paired)


def _on_common_pairs(
    before: CellFlows, after: CellFlows, people: tuple[FloatArray, FloatArray]
) -> tuple[CellFlows, CellFlows, tuple[FloatArray, FloatArray]]:
    """Both over the pairs that either has, as tables within a reach have pairs of their own."""
    n = 1 + int(max(flows.dest.max(initial=0) for flows in (before, after)))
    keys = [flows.origin * n + flows.dest for flows in (before, after)]
    every = np.union1d(*keys)
    found, counts = [], []
    for flows, key, own in zip((before, after), keys, people, strict=True):
        at = np.searchsorted(every, key)
        spread = weights_by(at, len(every))
        errors = None if flows.errors is None else np.asarray((spread @ flows.errors.T).T)
        people_there = np.asarray(spread @ flows.count)
        found.append(CellFlows(*np.divmod(every, n), people_there, errors, flows.outside))
        counts.append(np.asarray(spread @ own))
    return found[0], found[1], (counts[0], counts[1])


def _changes(
    both: _Both, weights: sparse.csr_array, level: float, columns: Mapping[str, Any]
) -> pd.DataFrame:
    """The table of sums by weights (K, P), the most certain difference first."""
    before, after = both.before.summed(weights), both.after.summed(weights)
    difference = after.estimate - before.estimate
    chance = weights.power(2) @ both.chance
    table = pd.DataFrame(
        {**columns, "before": before.estimate, "after": after.estimate, "difference": difference}
    )
    if before.errors is None or after.errors is None:
        return table.assign(low=np.nan, high=np.nan, grew=np.nan, changed=False)
    size = (before.estimate + after.estimate) / 2
    if both.paired:
        spread, freedom = pooled_spread(after.errors - before.errors, size, chance)
    else:
        one, of_one = pooled_spread(before.errors, size)
        other, of_other = pooled_spread(after.errors, size)
        spread, freedom = np.sqrt(one**2 + other**2 + chance), min(of_one, of_other)
    z = np.divide(difference, spread, out=np.zeros_like(difference), where=spread > 0)
    reach = stdtrit(freedom, (1 + LEVEL) / 2) * spread
    grew = stdtr(freedom, z)
    table = table.assign(
        low=difference - reach, high=difference + reach, grew=grew,
        changed=false_discoveries(2 * np.minimum(grew, 1 - grew), level),
    )  # fmt: skip
    order = np.lexsort((-np.abs(difference), -np.abs(z)))
    return table.iloc[order].reset_index(drop=True)


def false_discoveries(p_values: npt.ArrayLike, level: float) -> BoolArray:
    """Which of some p-values (K,) are discoveries, at a false discovery rate of ``level``.

    >>> from agg_core.evidence.changes import false_discoveries
    >>> false_discoveries([0.01, 0.04, 0.2, 0.03], 0.1).tolist()
    [True, True, False, True]

    Benjamini and Hochberg (1995): the k smallest, of the largest k whose k-th is at most
    level k / K.
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    below = np.flatnonzero(p[order] <= level * np.arange(1, len(p) + 1) / max(len(p), 1))
    found = np.zeros(len(p), dtype=bool)
    found[order[: below[-1] + 1 if len(below) else 0]] = True
    return found


def _volumes(both: _Both, side: Side, lines: Sequence[Screenline], level: float) -> pd.DataFrame:
    weights, names, ways = [], [], []
    for line in lines:
        grid = side.result.states.placed_grid
        crossed = line.crossed(grid, both.before.origin, both.before.dest)
        for way, across in zip(line.directions(grid), crossed, strict=True):
            weights.append(across.astype(float))
            names.append(line.name)
            ways.append(way)
    every = sparse.csr_array(np.array(weights).reshape(len(weights), len(both.before.count)))
    return _changes(both, every, level, {"line": names, "direction": ways})


def _sector_flows(both: _Both, sectors: Sectors | None, level: float) -> pd.DataFrame:
    n = 0 if sectors is None else len(sectors.names)
    weights = sparse.csr_array((0, len(both.before.count)))
    names = np.array([] if sectors is None else sectors.names, dtype=object)
    if sectors is not None:
        picked = sparse.diags_array(both.before.moves.astype(float))
        weights = sparse.csr_array(sectors.weights(both.before) @ picked)
    origin, dest = np.divmod(np.arange(n * n), max(n, 1))
    return _changes(both, weights, level, {"origin": names[origin], "dest": names[dest]})
