"""Flows over the times of day against matrices, day by day, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from shapely.geometry import LineString

from agg_core.evidence.examine import Asked, examine
from agg_core.evidence.lines import Screenline
from agg_core.evidence.profiles import (
    MEAN,
    cell_profiled,
    day_profiles,
    line_profiled,
    pair_profiled,
    profile,
    profiled_by_name,
    sector_profiled,
)
from agg_core.evidence.reference import of_source
from agg_core.evidence.sectors import merged_cells
from agg_core.study.result import ESTIMATE
from tests.agg_core import counted, tiny
from tests.faults import refused

MORNING, NIGHT, DAYS = counted.MORNING, counted.NIGHT, counted.DAYS
RIVER = Screenline("river", LineString([(139.1, 34.9), (139.1, 35.4)]))
SECTORS = merged_cells([("west", [0, 3, 6])], 9)


def counts(table, **columns):
    rows = table
    for name, value in columns.items():
        rows = rows.loc[rows[name] == value]
    return rows["count"].tolist()


def test_the_mean_has_the_flows_and_intervals_of_the_matrix_at_each_time():
    result = replace(counted.by_day(), step_minutes=30.0)
    found = profile(result, pair_profiled(result.states, 0, 1))
    assert (found.name, found.unit) == ("cell 0 and cell 1", "people per hour")
    assert found.rows["time"].unique().tolist() == [MORNING, NIGHT]
    for time in (MORNING, NIGHT):
        matrix = 2 * np.asarray(result.matrix(time))
        assert counts(found.rows, time=time) == pytest.approx([matrix[0, 1], matrix[1, 0]])
        weights = np.zeros((10, 10))
        weights[0, 1] = 1
        low, high = result.interval(time, ESTIMATE, weights)
        row = found.rows.loc[found.rows["time"] == time].iloc[0]
        assert [row["low"], row["high"]] == pytest.approx([2 * float(low), 2 * float(high)])


def test_days_stand_beside_it_as_they_are():
    # Two steps of the first morning, and one of the second, of two people an hour each.
    result = replace(counted.by_day(), step_minutes=30.0)
    found = profile(result, cell_profiled(result.states, 0)).days
    assert counts(found, direction="out", day=DAYS[0], time=MORNING) == [2 * 12.0 / 2]
    assert counts(found, direction="out", day=DAYS[1], time=MORNING) == [2 * 4.0]
    assert counts(found, direction="in", day=DAYS[0], time=NIGHT) == [2 * 6.0]
    # On the third day nobody but those who left the cells was seen, and only in the morning.
    assert counts(found, direction="out", day=DAYS[2], time=MORNING) == [0.0]
    assert counts(found, day=DAYS[2], time=NIGHT) == []
    chosen = profile(result.of_days(DAYS[:2]), cell_profiled(result.states, 0)).days
    assert chosen["day"].unique().tolist() == list(DAYS[:2])
    assert profile(result.of_days(DAYS[:1]), cell_profiled(result.states, 0)).days.empty


@pytest.mark.parametrize("kind", ["line", "sector"])
def test_lines_and_sectors_are_sums_of_flows_on_each_day(kind):
    result = counted.by_day()
    of = line_profiled(RIVER, result.states) if kind == "line" else (
        sector_profiled(SECTORS, "west")
    )  # fmt: skip
    west = np.isin(np.arange(9), [0, 3, 6])
    eastbound = west[:, None] & ~west[None]
    found = profile(result, of)
    for day in DAYS[:2]:
        alone = result.of_days([day])
        matrix = np.asarray(alone.matrix(MORNING))[:9, :9]
        expected = [matrix[eastbound].sum(), matrix[eastbound.T].sum()]
        assert counts(found.days, day=day, time=MORNING) == pytest.approx(expected)
    if kind == "line":
        evidence = examine(result, Asked(lines=(RIVER,)))
        assert evidence.volumes.query("time == @MORNING")["count"].tolist() == pytest.approx(
            counts(found.rows, time=MORNING)
        )
        by_day = evidence.by_day.query("day == @DAYS[0] and time == @MORNING")
        assert by_day["count"].tolist() == pytest.approx(
            counts(found.days, day=DAYS[0], time=MORNING)
        )


def test_a_reference_stands_beside_and_the_table_has_all():
    result = counted.by_day()
    of, reference = cell_profiled(result.states, 0), of_source(result, "usual")
    found = profile(result, of, reference=reference)
    usual = np.asarray(result.matrix(MORNING, "usual"))[:9, :9]
    row = found.rows.query("time == @MORNING and direction == 'out'").iloc[0]
    assert row["reference"] == pytest.approx(usual[0, 1:].sum())
    table = found.table
    assert table["day"].unique().tolist() == [MEAN, *DAYS]
    assert len(table) == len(found.rows) + len(found.days)
    assert set(table["name"]) == {"cell 0"}
    told = found.to_dict()
    assert told["rows"][0]["count"] == pytest.approx(found.rows["count"][0])
    # What usually happens is of no day.
    assert profile(result, of, source="usual").days.empty


def test_there_are_no_days_where_they_are_not_kept_apart():
    result = counted.drawn()
    assert day_profiles(result, [cell_profiled(result.states, 0)]).empty
    assert profile(result, cell_profiled(result.states, 0)).table["day"].unique().tolist() == [MEAN]


def test_moves_within_a_reach_have_profiles_of_days():
    near = tiny.run(tiny.people_of_two_days(), tiny.settings(reach_m=40_000.0))[-1]
    found = profile(near, cell_profiled(near.states, 4))
    for day in near.days:
        alone = near.of_days([day])
        matrix = alone.matrix(alone.times[0]).toarray()[:9, :9]
        expected = matrix[4].sum() - matrix[4, 4]
        assert counts(found.days, day=day, direction="out") == pytest.approx([expected])


def test_names_stand_for_lines_sectors_and_cells_in_this_order():
    states = counted.drawn().states
    line = Screenline("west", RIVER.shape)
    assert profiled_by_name(states, ["west"], [line], SECTORS).ways == ("eastbound", "westbound")
    assert profiled_by_name(states, ["west"], [], SECTORS).ways == ("out", "in")
    by_kind = profiled_by_name(states, ["west"], [line], SECTORS, kind="sector")
    assert by_kind.ways == ("out", "in")
    assert profiled_by_name(states, ["cell 3"]).name == "cell 3"
    assert profiled_by_name(states, ["cell 3", "cell 4"]).ways == (
        "cell 3 to cell 4", "cell 4 to cell 3",
    )  # fmt: skip
    for names in (["lake"], [], ["cell 3", "lake"], ["cell 1", "cell 2", "cell 3"]):
        with refused("unknown-place"):
            profiled_by_name(states, names)
    with refused("same-on-both-sides"):
        profiled_by_name(states, ["cell 3", "cell 3"])
    with refused("unknown-cell"):
        cell_profiled(states, 9)
    with refused("unknown-sector"):
        sector_profiled(SECTORS, "lake")
