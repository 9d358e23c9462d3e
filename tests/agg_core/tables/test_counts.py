"""The table of counts: what it refuses, what it knows of itself, and its file."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agg_core.base.report import Guess, SetAside
from agg_core.space.settings import HexSettings, MeshSettings
from agg_core.tables.count_report import CountReport
from agg_core.tables.counts import (
    ESTIMATED,
    MISSING,
    PUBLISHED,
    SUPPRESSED,
    CountTable,
    check_size,
    expected_of_hidden,
    open_counts,
    write_counts,
)
from tests.faults import refused

CODES = ("53394500", "53394501")


@pytest.fixture
def table():
    """Two runs, of three hours and of two, in two cells."""
    return CountTable(
        times=pd.to_datetime(
            [f"2024-04-01 {hour:02d}:00" for hour in (0, 1, 2, 8, 9)], utc=True
        ).as_unit("us"),
        sequence=np.array([0, 0, 0, 1, 1]),
        slot=np.array([0, 1, 2, 3, 4]),
        slots=("09:00", "10:00", "11:00", "17:00", "18:00"),
        cells=CODES,
        counts=np.array([[12.0, 0.0], [11.0, np.nan], [np.nan, 30.0], [5.5, 6.0], [7.0, 8.0]]),
        status=np.array([[0, 0], [0, 1], [2, 0], [0, 0], [0, 0]], dtype=np.uint8),
        suppressed_below=10.0,
        timezone="Asia/Tokyo",
        grid=MeshSettings(codes=CODES),
        report=CountReport(
            9, 8, "a row per time and cell",
            {"negative count": SetAside(1, (4,), "x")},
            {"absent": Guess("zero", ("missing",), "note", "absent")},
            {"totals": "They differ."},
        ),
    )  # fmt: skip


def test_what_it_knows_of_itself(table):
    assert (table.n_moments, table.n_cells) == (5, 2)
    assert (table.n_published, table.n_suppressed, table.n_missing) == (8, 1, 1)
    assert table.totals.tolist() == [12, 11, 30, 11.5, 15]
    assert table.step == pd.Timedelta(hours=1)
    assert (PUBLISHED, SUPPRESSED, MISSING, ESTIMATED) == (0, 1, 2, 3)


def test_an_estimate_is_a_number_and_not_published(table):
    status = table.status.copy()
    status[0, 0] = ESTIMATED
    one = replace(table, status=status)
    assert (one.n_published, one.n_estimated) == (7, 1)
    assert one.totals.tolist() == table.totals.tolist()


def test_the_step_is_one_within_runs(table):
    # Between the runs lie six hours, as often as any other spacing.
    two = table.take([0, 1, 3, 4])
    assert two.sequence.tolist() == [0, 0, 1, 1]
    assert two.step == pd.Timedelta(hours=1)
    assert table.take([0, 2, 4]).step == pd.Timedelta(hours=1)


def test_taking_moments_never_joins_what_was_apart(table):
    assert table.take([0, 2, 3, 4]).sequence.tolist() == [0, 1, 2, 2]
    assert table.take(table.sequence == 1).sequence.tolist() == [0, 0]
    assert table.take([1, 3]).counts[1].tolist() == [5.5, 6.0]
    for wrong in ([], [1, 0], [1, 1]):
        with refused("moments-not-chosen"):
            table.take(wrong)


@pytest.mark.parametrize(
    ("changed", "code", "told"),
    [
        ({"cells": ("a", "a")}, "duplicate-cell-name", ""),
        ({"cells": ("a",)}, "wrong-shape", ""),
        ({"sequence": np.array([0, 0, 0, 2, 2])}, "moments-out-of-order", ""),
        ({"sequence": np.array([1, 1, 1, 1, 1])}, "moments-out-of-order", ""),
        ({"slots": ("09:00",)}, "slot-out-of-range", ""),
        ({"suppressed_below": 0.0}, "suppressed-without-bound", ""),
        ({"suppressed_below": np.nan}, "suppressed-without-bound", ""),
        ({"grid": MeshSettings(codes=CODES[:1])}, "grid-differs", ""),
        ({"timezone": "Nowhere/Town"}, "unknown-time-zone", "Nowhere/Town"),
        (
            {"times": pd.date_range("2024-04-01", periods=5)[::-1].tz_localize("UTC")},
            "moments-out-of-order",
            "",
        ),
        ({"times": pd.date_range("2024-04-01", periods=5)}, "times-not-utc", ""),
    ],
)
def test_what_does_not_fit_is_refused(table, changed, code, told):
    with refused(code, told):
        replace(table, **changed)


@pytest.mark.parametrize(
    ("value", "state", "code"),
    [
        (-1.0, PUBLISHED, "not-counts"),
        (np.inf, PUBLISHED, "not-counts"),
        (np.nan, PUBLISHED, "not-counts"),
        (3.0, SUPPRESSED, "unpublished-with-value"),
        (3.0, MISSING, "unpublished-with-value"),
        (np.nan, ESTIMATED, "not-counts"),
        (np.nan, 4, "unknown-status"),
    ],
)
def test_counts_and_status_must_agree(table, value, state, code):
    counts, status = table.counts.copy(), table.status.copy()
    counts[0, 0], status[0, 0] = value, state
    with refused(code):
        replace(table, counts=counts, status=status)


def test_a_table_too_large_is_refused_before_it_is_made():
    check_size(5_000, 10_000)
    with refused("table-too-large"):
        check_size(5_001, 10_000)


@pytest.mark.parametrize("grid", [None, MeshSettings(codes=CODES)])
def test_a_table_comes_back_from_its_file(table, tmp_path, grid):
    table = replace(table, grid=grid)
    write_counts(table, tmp_path / "t.parquet")
    again = open_counts(tmp_path / "t.parquet")
    assert again.times.equals(table.times)
    for name in ("sequence", "slot", "counts", "status"):
        one, other = getattr(table, name), getattr(again, name)
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    for name in ("slots", "cells", "suppressed_below", "timezone", "grid", "report"):
        assert getattr(again, name) == getattr(table, name)


def test_other_files_are_refused(table, tmp_path):
    path = tmp_path / "t.parquet"
    with refused("counts-unreadable"):
        open_counts(path)
    path.write_bytes(b"PAR1 nothing")
    with refused("counts-unreadable"):
        open_counts(path)
    pq.write_table(pa.table({"time": [1]}), path)
    with refused("counts-unreadable"):
        open_counts(path)


def test_cells_of_another_kind_of_grid(table):
    cells = ("872f5aad8ffffff", "872f5aadaffffff")
    assert replace(table, cells=cells, grid=HexSettings(cells=cells)).grid.make().labels == list(
        cells
    )


def test_what_is_expected_of_suppressed_counts():
    # Equal numbers per octave up to 20: of 100 between 10 and 20 there are 332 from 1 to 10, whose
    # density falls as 1 / x, with the mean (10 - 1) / ln 10.
    seen = np.repeat(15.0, 100)
    assert expected_of_hidden(seen, 332, 10.0) == pytest.approx(9 / np.log(10), rel=0.01)
    # Ten times as many suppressed: the others are zero.
    assert expected_of_hidden(seen, 3320, 10.0) == pytest.approx(0.9 / np.log(10), rel=0.01)
    assert expected_of_hidden(seen[:0], 10, 10.0) == 0
    assert expected_of_hidden(seen, 0, 10.0) == 0
    assert expected_of_hidden(np.array([1.0, 1.5]), 1, 0.5) == 0.25
