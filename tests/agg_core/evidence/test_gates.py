"""Gates from files: at lines, at borders, between cells; what matches no step of the counts."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from shapely.geometry import box

from agg_core import GateFile
from agg_core.evidence.gates import passing
from agg_core.evidence.lines import Screenline, cordon_around, line_through
from agg_core.space.settings import GridSettings
from tests.agg_core.counts import made
from tests.faults import refused

GRID = GridSettings(139.0, 35.0, 139.3, 35.1, 1, 3)
"""Three cells from west to east."""
LINE = line_through("bridge", [(139.1, 34.9), (139.1, 35.2)])


def table(n=8, steps=4, grid=GRID):
    found = made.table(np.full((n, 3), 50.0), steps=steps, zone="Asia/Tokyo")
    return replace(found, grid=grid, cells=tuple(grid.make().labels)) if grid else found


def rows(*given, columns=("line", "direction", "time", "count")):
    return pd.DataFrame(list(given), columns=list(columns))


def test_a_line_is_passed_by_those_who_go_across_it():
    grid = GRID.make()
    east, west = passing(LINE, grid)
    assert LINE.directions(grid) == ("eastbound", "westbound")
    np.testing.assert_array_equal(np.argwhere(east), [[0, 1], [0, 2]])
    np.testing.assert_array_equal(west, east.T)


def test_who_comes_from_outside_passes_a_cordon_and_no_line():
    into, out = passing(cordon_around("middle", GRID.make(), [1]), GRID.make())
    np.testing.assert_array_equal(np.argwhere(into), [[0, 1], [0, 2], [2, 0], [2, 1], [3, 1]])
    assert out[1, 3] == 1
    assert not passing(LINE, GRID.make())[0][3].any()


def test_counts_are_those_of_the_step_that_begins_then():
    given = rows(
        ("bridge", "eastbound", "2024-04-01 01:00", 7),
        ("bridge", "eastbound", "2024-04-01 01:00", 2),  # a second counter at the line
        ("bridge", "westbound", "2024-04-02 02:00", 5),
        ("bridge", "both", "2024-04-01 00:00", 4),
        ("bridge", "eastbound", "2024-04-02 03:00", 9),  # no step begins at the last moment
        ("bridge", "eastbound", "2024-05-02 02:00", 9),
        ("tunnel", "eastbound", "2024-04-01 01:00", 9),
    )
    found = GateFile(given, [LINE], 0.05).beside(table())
    names = list(zip(found.gates, found.directions, strict=True))
    assert sorted(names) == [
        ("bridge", "both ways"), ("bridge", "eastbound"), ("bridge", "westbound")
    ]  # fmt: skip
    east, west, both = (
        names.index(("bridge", way)) for way in ("eastbound", "westbound", "both ways")
    )
    assert found.counts[1, east] == 9
    assert found.counts[6, west] == 5
    assert found.counts[0, both] == 4
    assert np.isfinite(found.counts).sum() == found.n_used == 3
    assert found.set_aside == {"no such line": 1, "no step of the counts begins then": 2}
    moves = found.moves.toarray().reshape(3, 4, 4)
    np.testing.assert_array_equal(moves[both], moves[east] + moves[west])
    assert found.between(outside=False).shape == (3, 9)
    assert found.error == 0.05


def test_counts_of_parts_of_a_step_are_summed_if_there_are_all():
    quarters = [("bridge", "eastbound", f"2024-04-01 01:{m:02d}", 3) for m in (0, 15, 30, 45)]
    part = [("bridge", "eastbound", f"2024-04-01 02:{m:02d}", 3) for m in (0, 15)]
    found = GateFile(rows(*quarters, *part), [LINE]).beside(table())
    assert found.counts[1, 0] == 12
    assert found.n_used == 1
    assert found.set_aside == {"not counted throughout a step": 2}


def test_dates_may_stand_in_a_column_of_their_own():
    given = rows(
        ("bridge", "eastbound", "2024-04-02", "01:00", 6),
        columns=("line", "direction", "date", "time", "count"),
    )
    assert GateFile(given, [LINE]).beside(table()).counts[5, 0] == 6


def test_a_counter_with_a_place_stands_at_the_border_of_two_cells():
    given = rows(
        (139.2001, 35.05, "E", "2024-04-01 01:00", 6), (139.15, 35.05, "E", "2024-04-01 01:00", 6),
        columns=("lon", "lat", "direction", "time", "count"),
    )  # fmt: skip
    found = GateFile(given).beside(table())
    assert found.n_gates == 1
    np.testing.assert_array_equal(
        np.argwhere(found.moves.toarray().reshape(4, 4)), [[0, 2], [1, 2]]
    )
    assert sum(found.set_aside.values()) == 1


def test_gates_between_cells_need_no_place():
    given = rows(
        ("c0", "c2", "2024-04-01 01:00", 6), ("c2", "outside", "2024-04-01 01:00", 2),
        ("c0", "nowhere", "2024-04-01 01:00", 2),
        columns=("origin", "dest", "time", "count"),
    )  # fmt: skip
    found = GateFile(given).beside(table(grid=None))
    assert found.gates == ("c0 – c2", "c2 – outside")
    np.testing.assert_array_equal(np.argwhere(found.moves.toarray()), [[0, 2], [1, 11]])
    np.testing.assert_array_equal(found.counts[1], [6, 2])
    assert found.set_aside == {"no such cell": 1}


@pytest.mark.parametrize(
    ("code", "given", "lines", "grid"),
    [
        ("dates-missing", rows(("bridge", "eastbound", "01:00", 6)), [LINE], GRID),
        (
            "dates-missing",
            rows(("a", "b", "01:00", 6), columns=("origin", "dest", "time", "count")).replace(
                {"a": "c0", "b": "c1"}
            ),
            None,
            None,
        ),
        ("cells-without-place", rows(("bridge", "eastbound", "2024-04-01 01:00", 6)), [LINE], None),
        ("unknown-lines", rows(("tunnel", "eastbound", "2024-04-01 01:00", 6)), [LINE], GRID),
        (
            "no-gate-counts",
            rows(("far", "eastbound", "2024-04-01 01:00", 6)),
            [line_through("far", [(138.0, 34.9), (138.0, 35.2)])],
            GRID,
        ),
        (
            "no-gate-counts",
            rows(("inner", "in", "2024-04-01 01:00", 6)),
            [Screenline("inner", box(139.01, 35.01, 139.02, 35.02))],
            GRID,
        ),
    ],
)
def test_what_cannot_be_matched_is_refused(code, given, lines, grid):
    with refused(code):
        GateFile(given, lines).beside(table(grid=grid))


def test_counts_longer_than_a_step_say_nothing_of_it():
    given = rows(
        ("bridge", "eastbound", "2024-04-01 01:00", 6),
        ("bridge", "eastbound", "2024-04-01 02:00", 6),
    )
    short = table()
    half = replace(
        short, times=short.times[0] + (short.times - short.times[0]) / 2,
        slots=("00:00", "00:30", "01:00", "01:30"),
    )  # fmt: skip
    with refused("counts-too-long"):
        GateFile(given, [LINE]).beside(half)


def test_an_error_is_a_share():
    with refused("value-out-of-range"):
        GateFile(rows(("bridge", "eastbound", "2024-04-01 01:00", 6)), [LINE], 5.0).beside(table())
