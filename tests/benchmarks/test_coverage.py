"""Intervals held against true flows, and sums of them."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.counts.cases import Case, city
from benchmarks.counts.contest import coverage, masks_of
from benchmarks.coverage import districts, held_flows


def small(days=4):
    """A city of the four cells in the middle of one, by their moves, without places."""
    case = city(200, days=days)
    cells = [44, 45, 54, 55]
    table = replace(
        case.table,
        counts=case.table.counts[:, cells], status=case.table.status[:, cells],
        cells=tuple("abcd"), grid=None,
    )  # fmt: skip
    by_pair = case.by_pair[:, cells][:, :, cells]
    return Case(table, case.moves[:, cells][:, :, cells], by_pair)


def test_masks_of_sums_by_hand():
    case = small()
    moves = np.arange(16.0).reshape(4, 4)
    sums = {name: np.tensordot(masks, moves, axes=2) for name, masks in masks_of(case).items()}
    # Rows 0 1 2 3, 4 5 6 7, 8 9 10 11 and 12 13 14 15 without what is on the diagonal.
    assert sums["out of a cell"].tolist() == [6, 17, 28, 39]
    assert sums["into a cell"].tolist() == [24, 23, 22, 21]
    assert sums["all moves"].tolist() == [90]
    for k, row in enumerate(districts(4, None)):
        inside, outside = np.flatnonzero(row), np.flatnonzero(~row)
        assert sums["out of a district"][k] == moves[np.ix_(inside, outside)].sum()
        assert sums["into a district"][k] == moves[np.ix_(outside, inside)].sum()
        within = moves[np.ix_(inside, inside)]
        assert sums["within a district"][k] == within.sum() - np.trace(within)


def test_districts_are_cells_beside_each_other():
    places = city(10, days=1).table.grid.make().centroids_m
    chosen = districts(100, places)
    assert chosen.shape == (200, 100)
    assert set(chosen.sum(axis=1)) == set(range(3, 11))
    row, col = np.divmod(np.arange(100), 10)
    for cells in chosen:
        # Ten nearest cells of a square grid lie within three of the middle, also at its corner.
        assert max(np.ptp(row[cells]), np.ptp(col[cells])) <= 4


@pytest.mark.parametrize("error", [0.0, 0.05])
def test_a_row_per_kind_of_sum_source_and_time(error):
    rows = list(coverage(small(days=2), replicates=2, error=error))
    kinds = {(row["of"], row["flows"]) for row in rows}
    assert len(kinds) == len(rows) == 3 * 2 * (1 + 6)
    assert {row["error"] for row in rows} == {error}
    totals = [row for row in rows if row["flows"] == "all moves, day"]
    # Over the day, of what happened and of what is usual, and of each of two days.
    assert [row["n_flows"] for row in totals] == [1, 1, 2]
    assert all(row["held"] * row["n_flows"] % 1 == 0 for row in totals)


def test_moves_of_single_days_are_those_of_their_pairs(monkeypatch):
    """An interval that is each true number holds it, and no other would."""
    case = small()
    asked = []
    monkeypatch.setattr(
        "benchmarks.counts.contest.held_flows",
        lambda truth, low, high: asked.append(truth) or held_flows(truth, low, high),
    )
    list(coverage(case, replicates=2))
    # Four tables of all days come first, then of each day the whole and its times.
    of_days = asked[4:]
    per_day = len(of_days) // 4
    for day in range(4):
        whole, *times = of_days[day * per_day : (day + 1) * per_day]
        np.testing.assert_array_equal(whole, case.by_pair[day * 48 : day * 48 + 47].sum(axis=0))
        np.testing.assert_array_equal(times, case.by_pair[day * 48 : day * 48 + 47])


def test_of_flows_those_above_five_are_asked_and_half_a_person_is_let_pass():
    truth = np.array([[50.0, 6.0, 5.0], [7.0, 50.0, 8.0], [9.0, 1.0, 50.0]])
    low = np.full((3, 3), 6.5)
    high = np.full((3, 3), 8.4)
    # 6 and 7 and 8 by half a person, 9 not; 5 and 1 and stays are not asked.
    assert held_flows(truth, low, high).tolist() == [True, True, True, False]
