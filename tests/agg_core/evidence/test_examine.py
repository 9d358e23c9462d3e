"""All evidence of a result: tables against sums by hand, what is missing, what is refused."""

import json
from dataclasses import replace

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
from shapely.geometry import LineString, box

from agg_core.evidence.examine import Asked, examine
from agg_core.evidence.lines import Screenline
from agg_core.evidence.measures import geh, sqv
from agg_core.evidence.presets import PRESETS
from agg_core.evidence.reference import Reference, of_result, of_source, of_table
from agg_core.evidence.sectors import merged_cells, sectors_of
from agg_core.io.flow_tables import FlowTable
from agg_core.space.areas import AreaGrid
from agg_core.study.result import ESTIMATE, WHOLE_DAY
from tests.agg_core import counted, tiny
from tests.faults import refused

MORNING, NIGHT = counted.MORNING, counted.NIGHT
RIVER = Screenline("river", LineString([(139.1, 34.9), (139.1, 35.4)]))
CENTRE = Screenline("centre", box(139.1, 35.1, 139.2, 35.2))
WEST = [0, 3, 6]
EAST = [1, 2, 4, 5, 7, 8]


def halves():
    table = gpd.GeoDataFrame(
        {"name": ["west", "east"]},
        geometry=[box(139, 35, 139.1, 35.3), box(139.1, 35, 139.3, 35.3)], crs="EPSG:4326",
    )  # fmt: skip
    return sectors_of(AreaGrid.of(table), tiny.GRID.make())


def at(table, **columns):
    """The one row that has these values."""
    rows = table
    for name, value in columns.items():
        rows = rows.loc[rows[name] == value]
    assert len(rows) == 1
    return rows.iloc[0]


def test_volumes_are_sums_over_pairs_with_the_intervals_of_these():
    result = replace(counted.drawn(), step_minutes=30.0)
    found = examine(result, Asked(lines=(RIVER, CENTRE)))
    assert found.unit == "people per hour"
    assert found.times == result.times
    for time in result.times:
        matrix = 2 * np.asarray(result.matrix(time))
        row = at(found.volumes, line="river", direction="eastbound", time=time)
        assert row["count"] == pytest.approx(matrix[np.ix_(WEST, EAST)].sum())
        weights = np.zeros((10, 10))
        weights[np.ix_(WEST, EAST)] = 1
        ends = result.interval(time, ESTIMATE, weights)
        assert [row["low"], row["high"]] == pytest.approx([2 * float(end) for end in ends])
        back = at(found.volumes, line="river", direction="westbound", time=time)
        assert back["count"] == pytest.approx(matrix[np.ix_(EAST, WEST)].sum())
        into = at(found.volumes, line="centre", direction="in", time=time)
        through = matrix[3, 5] + matrix[5, 3] + matrix[1, 7] + matrix[7, 1]
        through += sum(matrix[a, b] for a, b in ((0, 8), (8, 0), (2, 6), (6, 2)))
        ends_there = matrix[[0, 1, 2, 3, 5, 6, 7, 8], 4].sum()
        knights = ((1, 6), (1, 8), (3, 2), (3, 8), (5, 0), (5, 6), (7, 0), (7, 2))
        through += sum(matrix[a, b] + matrix[b, a] for a, b in knights)
        assert into["count"] == pytest.approx(ends_there + through)
    assert np.isnan(found.volumes["geh"]).all()


def test_trip_ends_lengths_and_sectors_are_sums_by_hand():
    result = counted.drawn()
    found = examine(result, Asked(sectors=halves()))
    matrix = np.asarray(result.matrix(MORNING))[:9, :9]
    away = matrix - np.diag(np.diag(matrix))
    out = found.trip_ends.query("end == 'out' and time == @MORNING")["count"].to_numpy()
    np.testing.assert_allclose(out, away.sum(axis=1))
    came = found.trip_ends.query("end == 'in' and time == @MORNING")["count"].to_numpy()
    np.testing.assert_allclose(came, away.sum(axis=0))
    places = result.states.grid.centroids_m
    km = np.hypot(*(places[:, None] - places[None]).transpose(2, 0, 1)) / 1000
    row = at(found.lengths, time=MORNING, figure="mean_km")
    assert row["value"] == pytest.approx((away * km).sum() / away.sum())
    within = at(found.lengths, time=MORNING, figure="share_within")
    assert within["value"] == pytest.approx(np.trace(matrix) / matrix.sum())
    bins = found.histogram.query("time == @MORNING")
    assert bins["count"].sum() == pytest.approx(away.sum())
    here = bins.iloc[int(np.searchsorted(bins["from_km"], km[0, 1], side="right")) - 1]
    in_bin = away[(km >= here["from_km"]) & (km < here["to_km"])].sum()
    assert here["count"] == pytest.approx(in_bin)
    across = at(found.sector_flows, origin="west", dest="east", time=MORNING)
    assert across["count"] == pytest.approx(away[np.ix_(WEST, EAST)].sum())
    inside = at(found.sector_flows, origin="west", dest="west", time=MORNING)
    assert inside["count"] == pytest.approx(away[np.ix_(WEST, WEST)].sum())


def test_lengths_by_a_matrix_of_distances():
    km = np.full((9, 9), 7.0)
    found = examine(counted.drawn(), Asked(km=km))
    row = at(found.lengths, time=MORNING, figure="mean_km")
    assert row["value"] == pytest.approx(7.0)
    # All moves are as long as each other, whatever errs.
    assert [row["low"], row["high"]] == pytest.approx([7.0, 7.0])


def test_a_result_held_against_itself_meets_every_criterion():
    result = counted.drawn()
    asked = Asked(
        lines=(RIVER,), sectors=halves(), reference=of_source(result, ESTIMATE),
        preset=PRESETS["tag-m3.1"],
    )  # fmt: skip
    found = examine(result, asked)
    assert {v.criterion.subject: (v.met, v.share) for v in found.verdicts} == dict.fromkeys(
        ("screenlines", "cells", "trip ends", "lengths", "sectors"), (True, 1.0)
    )
    assert all(verdict.answer != "fail" for verdict in found.verdicts)
    assert len(found.not_asked) == 1  # nothing was counted at counters
    np.testing.assert_allclose(found.fits["slope"], 1.0)
    np.testing.assert_allclose(found.fits["rmse"], 0.0, atol=1e-9)
    assert (found.volumes["geh"] == 0).all()
    assert at(found.lengths, time=MORNING, figure="coincidence")["value"] == pytest.approx(1.0)


def counters(**changed):
    rows = {"line": ["river", "river"], "direction": ["eastbound", "eastbound"],
            "time": [MORNING, MORNING], "count": [10.0, 6.0]}  # fmt: skip
    return pd.DataFrame(rows | changed)


def test_counters_of_a_line_are_summed_and_held_against_its_volume():
    result = counted.drawn()
    asked = Asked(lines=(RIVER,), counters=counters(), preset=PRESETS["txdot"])
    found = examine(result, asked)
    row = at(found.volumes, line="river", direction="eastbound", time=MORNING)
    assert row["counted"] == 16.0
    assert row["geh"] == pytest.approx(float(geh(row["count"], 16.0)))
    assert row["sqv"] == pytest.approx(float(sqv(row["count"], 16.0)))
    subjects = {v.criterion.subject: v.n for v in found.verdicts}
    assert subjects == {"screenlines": 1, "counters": 1, "total": 1}
    assert found.volumes["counted"].notna().sum() == 1


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"line": ["river", "lake"]}, "unknown-line"),
        ({"direction": ["eastbound", "up"]}, "unknown-direction"),
        ({"time": [MORNING, "03:00"]}, "unknown-time"),
    ],
)
def test_counters_that_name_what_is_not_there_are_refused(changed, code):
    with refused(code):
        examine(counted.drawn(), Asked(lines=(RIVER,), counters=counters(**changed)))


def test_without_places_there_are_trip_ends_and_no_lengths():
    found = examine(counted.placeless())
    assert len(found.trip_ends)
    assert found.lengths.empty
    groups = merged_cells([("one", [0, 1])], counted.placeless().states.n_cells)
    assert len(examine(counted.placeless(), Asked(sectors=groups)).sector_flows)
    with refused("cells-without-place"):
        examine(counted.placeless(), Asked(lines=(RIVER,)))
    with refused("unknown-source"):
        examine(counted.drawn(), Asked(source="nobody"))


def test_what_is_not_known_is_said():
    reference = of_source(counted.both(), ESTIMATE)
    asked = Asked(lines=(RIVER,), reference=reference, preset=PRESETS["atap"])
    unsure = examine(counted.both(), asked)
    assert unsure.volumes[["low", "high"]].isna().all(axis=None)
    assert [verdict.answer for verdict in unsure.verdicts] == ["cannot be told"]
    assert any("replicates" in note for note in unsure.notes)
    assert any("outside" in note for note in unsure.notes)


def test_it_is_told_as_json_without_nan():
    result = counted.drawn()
    found = examine(result, Asked(lines=(RIVER,), sectors=halves(), preset=PRESETS["atap"]))
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert told["unit"] == "people per step"
    assert len(told["volumes"]) == 2 * len(result.times)
    assert told["volumes"][0]["reference"] is None
    assert told["not_asked"]


def test_a_table_of_flows_is_a_reference_by_time_and_over_the_day():
    result = counted.drawn()
    rows = pd.DataFrame(
        {"time": [0, 0, 2], "origin": [0, 0, 4], "dest": [1, 9, 0], "count": [8.0, 4.0, 10.0],
         "rows": 1}
    )  # fmt: skip
    table = FlowTable(rows, (MORNING, "12:00", NIGHT))
    found = of_table(result, table, "survey")
    # Four steps are of the morning and five of the night.
    assert found.tables[MORNING][0, 1] == 2.0
    assert found.tables[MORNING][0, 9] == 1.0
    assert found.tables[NIGHT][4, 0] == 2.0
    assert found.tables[WHOLE_DAY][4, 0] == pytest.approx(10 / 9)
    whole = of_table(result, FlowTable(rows.assign(time=0), ()), "survey")
    assert set(whole.tables) == {WHOLE_DAY}
    people = tiny.run(tiny.people(), tiny.settings(replace(tiny.HOURLY, times=("08:00", "12:00"))))
    with refused("times-missing", "08:00"):
        of_table(people[-1], FlowTable(rows.assign(time=0), ()), "survey")


def test_another_run_is_a_reference_by_day():
    one = tiny.run(tiny.people(), tiny.settings())[-1]
    two = tiny.run(tiny.people_of_two_days(), tiny.settings())[-1]
    found = of_result(one, two, "two days")
    time = one.times[0]
    np.testing.assert_allclose(found.tables[time], np.asarray(two.matrix(time)) / two.days_summed)
    assert examine(one, Asked(reference=found)).fits["n"].iloc[0] == 72


def test_times_that_a_reference_lacks_are_told():
    result = counted.drawn()
    tables = {MORNING: np.asarray(result.matrix(MORNING))}
    found = examine(result, Asked(reference=Reference("survey", tables)))
    assert found.trip_ends.query("time == @NIGHT")["reference"].isna().all()
    assert found.trip_ends.query("time == @MORNING")["reference"].notna().all()
    assert any(f"{len(result.times) - 1} of {len(result.times)}" in note for note in found.notes)


def test_bins_of_lengths_go_as_far_as_people_do():
    result = counted.drawn()
    matrix = np.zeros((10, 10))
    matrix[0, 1] = 5.0  # next door, of which there is nobody else
    near = Reference("near", {MORNING: matrix})
    found = examine(result, Asked(reference=near)).histogram
    places = result.states.grid.centroids_m
    rows = [result.rows(time) for time in result.times]
    ends = np.concatenate([r.loc[r["count"] > 0, ["origin", "dest"]].to_numpy() for r in rows])
    ends = ends[(ends < 9).all(axis=1)]
    farthest = np.hypot(*(places[ends[:, 0]] - places[ends[:, 1]]).T).max() / 1000
    width = found["to_km"].iloc[0] - found["from_km"].iloc[0]
    assert farthest <= found["to_km"].max() < farthest + width


@pytest.mark.parametrize(("counts", "met"), [((10.0, 2.5), False), ((8.2, 0.5), True)])
def test_the_sum_of_all_counts_is_that_of_the_counters(counts, met):
    # 8 people go east in the morning and half a one goes west; nobody crosses by night.
    result = replace(counted.drawn(), step_minutes=60.0)
    table = pd.DataFrame({
        "line": "river", "direction": ["eastbound", "westbound"], "time": MORNING, "count": counts,
    })  # fmt: skip
    asked = Asked(lines=(RIVER,), counters=table, preset=PRESETS["txdot"])
    (total,) = [v for v in examine(result, asked).verdicts if v.criterion.subject == "total"]
    # 8.5 of 12.5 is far more than 5 % off, of 8.7 it is not, nor is it more than half a person.
    assert (total.n, total.met) == (1, met)
    # With a reference beside them it is still the counters' sum that is asked.
    both = replace(asked, reference=of_source(result, "usual"))
    (same,) = [v for v in examine(result, both).verdicts if v.criterion.subject == "total"]
    assert (same.n, same.met) == (1, met)
    # Without counters it is that of all moves, at both times of day.
    alone = Asked(reference=of_source(result, ESTIMATE), preset=PRESETS["txdot"])
    (moves,) = [v for v in examine(result, alone).verdicts if v.criterion.subject == "total"]
    assert (moves.n, moves.met) == (2, True)


def test_a_pair_is_looked_at_once_for_all_times(monkeypatch):
    asked = []

    def crossed(line, grid, origin, dest, plain=Screenline.crossed):
        asked.extend((line.name, *pair) for pair in zip(origin, dest, strict=True))
        return plain(line, grid, origin, dest)

    monkeypatch.setattr(Screenline, "crossed", crossed)
    assert len(examine(counted.drawn(), Asked(lines=(RIVER, CENTRE))).times) == 3
    assert asked
    assert len(asked) == len(set(asked))


def test_a_fit_goes_through_pairs_of_nobody_too():
    result = counted.drawn()
    found = examine(result, Asked(reference=of_source(result, "usual")))
    fit = at(found.fits, of="flows between cells")
    # All 72 moves of both times of day, of which nearly all are of nobody.
    modelled, beside = (
        np.concatenate([np.asarray(result.matrix(time, source))[:9, :9][~np.eye(9, dtype=bool)]
                        for time in (MORNING, NIGHT)])
        for source in (ESTIMATE, "usual")
    )  # fmt: skip
    slope, intercept = np.polyfit(beside, modelled, 1)
    assert fit["n"] == 144
    assert [fit["slope"], fit["intercept"]] == pytest.approx([slope, intercept])
    assert fit["r2"] == pytest.approx(np.corrcoef(beside, modelled)[0, 1] ** 2)
    assert fit["rmse"] == pytest.approx(np.sqrt(((modelled - beside) ** 2).mean()))
