"""Counters with a place: the nearest line, which way it is crossed there, borders of cells."""

import numpy as np
import pandas as pd
import pytest
from shapely.geometry import LineString, Polygon, box

from agg_core import Grid
from agg_core.evidence.asking import counters_for
from agg_core.evidence.counters import NearestLines, border_lines
from agg_core.evidence.examine import Asked, examine
from agg_core.evidence.lines import Screenline
from agg_core.evidence.presets import PRESETS
from agg_core.io.counters import BOTH_WAYS
from agg_core.space.settings import HexSettings
from tests.agg_core import counted, tiny
from tests.faults import refused

MORNING = counted.MORNING
GRID = tiny.GRID.make()
CELLS = counted.drawn().states.cells
RIVER = Screenline("river", LineString([(139.1, 34.9), (139.1, 35.4)]))
RING = [(139.1, 35.1), (139.2, 35.1), (139.2, 35.2), (139.1, 35.2)]
ONE_KM = 1 / 91.0
"""Degrees of longitude at 35 degrees north, about."""


def volumes(read):
    table = read.counters
    keys = zip(table["line"], table["direction"], table["time"], strict=True)
    return dict(zip(keys, table["count"], strict=True))


def read_at(text, lines=(RIVER,), **how):
    return counters_for(counted.drawn(), lines, text.encode(), **how)


def test_the_nearest_line_within_the_distance_and_no_other():
    near = NearestLines([RIVER, Screenline("centre", box(139.2, 35, 139.3, 35.3))], GRID, 2_000)
    places = np.array([
        [139.1 + ONE_KM, 35.2], [139.1 - 3 * ONE_KM, 35.2], [139.2 + ONE_KM, 35.2], [np.nan, 35.2],
        [999.0, 35.2],
    ])  # fmt: skip
    line, bearing = near(places)
    assert line.tolist() == [0, -1, 1, -1, -1]
    # From left to right of who goes north is east, and into the area from its west side, too.
    assert bearing[[0, 2]] == pytest.approx([90, 90], abs=0.5)
    none, _ = NearestLines([], GRID)(places)
    assert (none == -1).all()
    with refused("value-out-of-range"):
        NearestLines([RIVER], GRID, 0)


@pytest.mark.parametrize("ring", [RING, RING[::-1]])
def test_in_is_the_way_inwards_however_an_area_was_drawn(ring):
    near = NearestLines([Screenline("centre", Polygon(ring))], GRID, 500)
    sides = [[139.1, 35.15], [139.15, 35.2], [139.2, 35.15], [139.15, 35.1]]
    _, bearing = near(np.array(sides))
    assert bearing == pytest.approx([90, 180, 270, 0], abs=0.5)


@pytest.mark.parametrize(
    ("direction", "expected"),
    [
        ("90", "eastbound"), ("45", "eastbound"), ("271.5", "westbound"), ("-90", "westbound"),
        ("NE", "eastbound"), ("southwest", "westbound"), ("", BOTH_WAYS), ("both", BOTH_WAYS),
        ("0", None), ("N", None), ("180", None), ("up", None), ("in", None), ("1", None),
        ("2", None), ("nan", None),
    ],
)  # fmt: skip
def test_a_direction_is_a_bearing_a_wind_or_both(direction, expected):
    rows = f"lon,lat,direction,time,count\n139.1,35.2,90,{MORNING},5\n"
    found, lines = read_at(f"{rows}139.1,35.21,{direction},{MORNING},70\n")
    assert lines == (RIVER,)
    told = {way: count for (_, way, _), count in volumes(found).items()}
    if expected is None:
        assert told == {"eastbound": 5}
        assert found.set_aside == {"no such direction": 1}
    else:
        assert told == ({"eastbound": 75} if expected == "eastbound" else
                        {"eastbound": 5, expected: 70})  # fmt: skip
        assert found.set_aside == {}
    assert (found.n_places, found.n_matched) == (2, 2)


def test_at_a_cordon_in_and_out_are_names_and_bearings_go_in_or_out():
    centre = Screenline("centre", box(139.1, 35.1, 139.2, 35.2))
    found, _ = read_at(
        f"station,lon,lat,direction,time,count\na,139.1,35.15,in,{MORNING},1\n"
        f"b,139.2,35.15,270,{MORNING},2\nc,139.15,35.2,N,{MORNING},4\n",
        (centre,),
    )
    assert volumes(found) == {("centre", "in", MORNING): 3, ("centre", "out", MORNING): 4}


def test_who_is_at_no_line_is_counted_and_a_table_of_none_is_refused():
    rows = (
        f"counter,lon,lat,time,count\na,139.1,35.2,{MORNING},5\nb,139.15,35.2,{MORNING},6\n"
        f"c,east,35.2,{MORNING},7\nriver,,,{MORNING},8\n"
    )
    found, _ = read_at(rows, within_m=100)
    # A name that is known counts for more than a place, and without a direction for both ways.
    assert volumes(found) == {("river", BOTH_WAYS, MORNING): 13}
    assert found.set_aside == {"no line or border within 100 m": 1, "no place in degrees": 1}
    assert (found.n_places, found.n_matched) == (2, 1)
    assert "1 of 2 places" in found.words
    with refused("counters-elsewhere", "1,000"):
        rows = "".join(f"139.15,{35 + i / 10_000},{MORNING},1\n" for i in range(1_000))
        read_at(f"lon,lat,time,count\n{rows}")
    with refused("column-not-found", "lines first"):
        read_at(f"line,direction,time,count\nriver,E,{MORNING},5\n", ())
    with refused("column-not-found"):
        read_at(f"lon,time,count\n139.1,{MORNING},5\n")


@pytest.mark.parametrize("kind", ["squares", "hexagons"])
def test_borders_lie_between_neighbours_and_are_crossed_by_who_goes_between_them(kind):
    grid = GRID if kind == "squares" else HexSettings(139.0, 35.0, 139.2, 35.2, 6).make()
    names = [str(number) for number in range(grid.n_cells)]
    borders = border_lines(grid, names)
    pairs = [tuple(map(int, line.name.split(" – "))) for line in borders]
    apart = np.hypot(*(grid.centroids_m[:, None] - grid.centroids_m).transpose(2, 0, 1))
    if kind == "squares":
        assert sorted(pairs) == sorted(
            [(c, c + 1) for c in range(9) if c % 3 < 2] + [(c, c + 3) for c in range(6)]
        )
    else:
        near = apart < 1.3 * np.sort(apart[apart > 0])[0]
        assert sorted(pairs) == [(a, b) for a, b in np.argwhere(near).tolist() if a < b]
    for line, (a, b) in zip(borders, pairs, strict=True):
        ways = line.crossed(grid, np.array([a, b]), np.array([b, a]))
        assert sum(way.astype(int) for way in ways).tolist() == [1, 1]


def test_without_lines_a_counter_stands_at_the_border_of_two_cells():
    result = counted.drawn()
    rows = (
        f"lon,lat,direction,time,count\n139.1,35.05,E,{MORNING},9\n139.1001,35.06,270,{MORNING},4\n"
        f"139.15,35.15,E,{MORNING},1\n"
    )
    found, lines = counters_for(result, (), rows.encode())
    (line,) = lines
    assert line.name == f"{CELLS[0]} – {CELLS[1]}"
    east, west = line.directions(GRID)
    assert {east, west} == {"eastbound", "westbound"}
    assert volumes(found) == {
        (line.name, "eastbound", MORNING): 9, (line.name, "westbound", MORNING): 4,
    }  # fmt: skip
    assert (found.n_places, found.n_matched) == (3, 2)
    asked = Asked(lines=lines, counters=found.counters)
    rows = examine(result, asked).volumes.query("time == @MORNING").set_index("direction")
    volume = rows.loc["eastbound"]
    # Nobody else's straight way crosses that border.
    assert volume["count"] == np.asarray(result.matrix(MORNING))[0, 1] == 8
    assert volume["counted"] == 9


def test_both_ways_together_are_held_against_their_sum():
    result = counted.drawn()
    counters = pd.DataFrame(
        {"line": ["river"], "direction": [BOTH_WAYS], "time": [MORNING], "count": [20.0]}
    )
    found = examine(result, Asked(lines=(RIVER,), counters=counters, preset=PRESETS["atap"]))
    rows = found.volumes.query("time == @MORNING").set_index("direction")
    ways = rows.loc[["eastbound", "westbound"], "count"]
    assert rows.loc[BOTH_WAYS, "count"] == pytest.approx(ways.sum())
    assert rows.loc[BOTH_WAYS, "counted"] == 20
    assert rows.loc[["eastbound", "westbound"], "counted"].isna().all()
    assert {v.criterion.subject: v.n for v in found.verdicts} == {"screenlines": 1, "counters": 1}


def test_a_grid_of_one_cell_has_no_border():
    assert border_lines(Grid.from_bbox(139, 35, 140, 36, rows=1, cols=1), ["a"]) == ()
