"""The page Evidence: lines, sectors, lengths, checks, changes, with the figures of the core."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from agg_core.evidence.changes import of_days, of_times, what_changed
from agg_core.evidence.examine import Asked, examine
from agg_core.evidence.lines import (
    Screenline,
    cordon_around,
    cordon_through,
    line_between,
    line_through,
)
from agg_core.evidence.places import flows_of_place
from agg_core.evidence.presets import PRESETS
from agg_core.evidence.profiles import (
    cell_profiled,
    pair_profiled,
    profile,
    sector_profiled,
)
from agg_core.evidence.reference import of_source
from agg_core.evidence.sectors import merged_cells
from agg_core.store.shipped_runs import load_shipped
from agg_core.study.settings import WindowSettings
from tests.agg_core import counted, tiny
from tests.pages.visit import Visit
from ui.cached import store

TOKYO, COUNTS = "sample-tokyo", "sample-counts"
PLACELESS = replace(counted.drawn(), grid=None)
HOSTILE = "<img src=x onerror=alert(1)>*b*"


@pytest.fixture
def visit() -> Visit:
    found = Visit("Flows", run=TOKYO).go("Evidence")
    assert not found.errors
    return found


def part(visit: Visit, name: str) -> Visit:
    visit.set("evidence.part", name)
    assert not visit.errors
    return visit


def table(visit: Visit, *columns: str) -> pd.DataFrame:
    """The first table with these columns."""
    return next(
        found.value for found in visit.at.dataframe if set(columns) <= set(found.value.columns)
    )


def upload(visit: Visit, key: str, name: str, content: str) -> Visit:
    visit.at.file_uploader(key=key).upload(name, content.encode(), "text/plain")
    visit.at.run()
    assert not visit.at.exception
    return visit


def geojson(**shapes: dict[str, Any]) -> str:
    features = [
        {"type": "Feature", "properties": {"name": name}, "geometry": shape}
        for name, shape in shapes.items()
    ]
    return json.dumps({"type": "FeatureCollection", "features": features})


def straight(lon: float) -> dict[str, Any]:
    return {"type": "LineString", "coordinates": [[lon, 35.0], [lon, 36.5]]}


def square(west: float, east: float) -> dict[str, Any]:
    ring = [[west, 35.3], [east, 35.3], [east, 36.1], [west, 36.1], [west, 35.3]]
    return {"type": "Polygon", "coordinates": [ring]}


def test_without_flows_the_page_offers_ways_to_some() -> None:
    visit = Visit("Evidence")
    assert not visit.errors
    assert any("sample" in label for label in visit.ways_on)


def test_a_straight_line_is_two_clicks_and_counts_who_cross_it(visit: Visit) -> None:
    visit.press("evidence.line.add")
    assert not visit.errors
    result = load_shipped(TOKYO)
    west, south, east, north = result.states.placed_grid.bounds
    line = line_between("river", (round((west + east) / 2, 4), south),
                        (round((west + east) / 2, 4), north))  # fmt: skip
    expected = examine(result, Asked(lines=(line,))).volumes.query("time == '08:00'")
    found = table(visit, "Line", "Estimate", "From")
    assert found["Estimate"].tolist() == pytest.approx(expected["count"].tolist())
    assert found["To"].tolist() == pytest.approx(expected["high"].tolist())
    visit.press("evidence.drop.0")
    assert not [t for t in visit.at.dataframe if "Line" in t.value.columns]


def test_lines_stay_when_the_page_is_left_and_the_run_is_another(visit: Visit) -> None:
    visit.press("evidence.line.add").go("Home").press(f"home.{COUNTS}").go("Evidence")
    assert not visit.errors
    assert set(table(visit, "Line")["Line"]) == {"river"}


def test_a_cordon_goes_around_cells_of_the_map() -> None:
    visit = Visit("Flows", run=TOKYO, cell="100,101").go("Evidence")
    visit.press("evidence.cordon.add")
    assert not visit.errors
    result = load_shipped(TOKYO)
    line = cordon_around("centre", result.states.placed_grid, [100, 101])
    expected = examine(result, Asked(lines=(line,))).volumes.query("time == '08:00'")
    assert table(visit, "Line")["Estimate"].tolist() == pytest.approx(expected["count"].tolist())


def test_a_line_goes_between_two_cells_of_the_map() -> None:
    visit = Visit("Flows", run=TOKYO, cell="100,101").go("Evidence")
    visit.press("evidence.line.cells").press("evidence.line.add")
    assert not visit.errors
    result = load_shipped(TOKYO)
    places = result.states.placed_grid.centroids[[100, 101]].round(4).tolist()
    line = line_between("river", (places[0][0], places[0][1]), (places[1][0], places[1][1]))
    expected = examine(result, Asked(lines=(line,))).volumes.query("time == '08:00'")
    assert table(visit, "Line")["Estimate"].tolist() == pytest.approx(expected["count"].tolist())


def test_a_file_of_lines_and_counters_at_them(visit: Visit) -> None:
    upload(visit, "evidence.lines.file", "lines.geojson", geojson(**{HOSTILE: straight(139.75)}))
    assert not visit.errors
    for block in (*visit.at.markdown, *visit.at.caption):
        assert "<img" not in block.value.replace("\\<", "")
    part(visit, "Checks")
    upload(visit, "evidence.counters.file", "c.csv",
           f"line,direction,time,count\n{HOSTILE},E,08:00,1200\nlake,E,08:00,1\n")  # fmt: skip
    assert not visit.errors
    verdicts = table(visit, "Answer")
    assert verdicts["Values"].tolist() == [1, 1]
    shape = Screenline("x", line_between("x", (139.75, 35.0), (139.75, 36.5)).shape)
    counters = pd.DataFrame(
        {"line": ["x"], "direction": ["eastbound"], "time": ["08:00"], "count": [1200.0]}
    )
    asked = Asked(lines=(shape,), counters=counters, preset=PRESETS["tag-m3.1"])
    expected = examine(load_shipped(TOKYO), asked).verdicts
    assert verdicts["Answer"].tolist() == [verdict.answer for verdict in expected]
    visit.set("evidence.slot", 30)
    part(visit, "Screenlines")
    assert table(visit, "Counted")["Counted"].max() == 2400


def test_where_people_come_from_and_how_sure(visit: Visit) -> None:
    part(visit, "Sectors")
    result = load_shipped(TOKYO)
    cell = list(result.states.cells).index(visit.value("evidence.place"))
    expected = flows_of_place(result, "08:00", cell, "in")
    found = table(visit, "Place", "Estimate", "From", "To")
    assert found["Place"].tolist() == expected["place"].tolist()
    assert found["From"].tolist() == pytest.approx(expected["low"].tolist())
    visit.set("evidence.end", "out")
    expected = flows_of_place(result, "08:00", cell, "out")
    assert table(visit, "Place")["Estimate"].tolist() == pytest.approx(expected["count"].tolist())


def test_the_table_of_my_wards_from_a_file(visit: Visit) -> None:
    part(visit, "Sectors")
    wards = geojson(west=square(139.2, 139.76), east=square(139.76, 140.3))
    upload(visit, "evidence.areas.file", "wards.geojson", wards)
    assert not visit.errors
    wide = table(visit, "west", "east")
    assert wide.index.tolist() == ["west", "east"]
    rows = table(visit, "Origin", "Destination", "From")
    assert rows["Estimate"].tolist() == pytest.approx(wide.to_numpy().ravel().tolist())
    visit.press("evidence.sectors.drop")
    assert not [t for t in visit.at.dataframe if "Origin" in t.value.columns]


def test_a_sector_of_cells(visit: Visit) -> None:
    part(visit, "Sectors")
    result = load_shipped(TOKYO)
    visit.set("evidence.sector.cells", list(result.states.cells[100:103]))
    visit.press("evidence.sector.add")
    assert not visit.errors
    sectors = merged_cells([("my ward", [100, 101, 102])], result.states.n_cells)
    expected = examine(result, Asked(sectors=sectors)).sector_flows.query("time == '08:00'")
    rows = table(visit, "Origin", "Destination", "From")
    assert rows["Estimate"].tolist() == pytest.approx(expected["count"].tolist())
    visit.set("evidence.sector.cells", [])
    visit.press("evidence.sector.add")
    assert len(visit.errors) == 1
    assert table(visit, "Origin", "Destination")["Origin"].tolist() == rows["Origin"].tolist()


def test_lengths_and_trip_ends_beside_a_reference(visit: Visit) -> None:
    part(visit, "Lengths and trip ends")
    visit.set("evidence.reference", "counted")
    assert not visit.errors
    result = load_shipped(TOKYO)
    expected = examine(result, Asked(reference=of_source(result, "counted")))
    lengths = expected.lengths.query("time == '08:00'")
    found = table(visit, "Figure", "Reference")
    assert found["Value"].tolist() == pytest.approx(lengths["value"].tolist())
    assert found["Reference"].tolist() == pytest.approx(lengths["reference"].tolist())
    part(visit, "Checks")
    found = table(visit, "Answer")
    asked = Asked(reference=of_source(result, "counted"), preset=PRESETS["tag-m3.1"])
    answers = [verdict.answer for verdict in examine(result, asked).verdicts]
    assert found["Answer"].tolist() == answers
    visit.set("evidence.preset", "own")
    assert not visit.errors


def test_flows_that_grew_from_one_time_to_the_next(visit: Visit) -> None:
    part(visit, "What changed")
    assert visit.at.multiselect("evidence.times.before").value == ["08:00"]
    expected = what_changed(of_times(load_shipped(TOKYO), ["08:00"], ["14:00"]))
    grew = expected.flows.query("difference > 0").nlargest(10, "difference")
    found = table(visit, "Origin", "Difference")
    assert found["Difference"].tolist() == pytest.approx(grew["difference"].tolist())
    assert found["Changed"].tolist() == grew["changed"].tolist()


def test_tuesday_and_sunday() -> None:
    visit = Visit("Flows", run=COUNTS).go("Evidence")
    visit.press("evidence.line.add")
    part(visit, "What changed").set("evidence.kind", "days")
    assert not visit.errors
    before, after = (
        visit.at.multiselect(f"evidence.days.{side}").value for side in ("before", "after")
    )
    assert [pd.Timestamp(day).day_name() for day in (*before, *after)] == ["Tuesday", "Sunday"]
    result = load_shipped(COUNTS)
    expected = what_changed(of_days(result, before, after, result.busiest))
    found = table(visit, "Place", "Difference")
    assert found["Difference"].tolist() == pytest.approx(expected.trip_ends["difference"].tolist())
    assert set(table(visit, "Line", "Difference")["Line"]) == {"river"}
    visit.set("evidence.days.after", before)
    assert len(visit.errors) == 1


def test_a_run_of_other_cells_is_refused_in_a_sentence(visit: Visit) -> None:
    visit.set("evidence.part", "What changed").set("evidence.kind", "runs")
    assert len(visit.errors) == 1
    visit.set("evidence.kind", "times")
    assert not visit.errors


def test_a_report_is_offered(visit: Visit) -> None:
    part(visit, "What changed")
    part(visit, "Report")
    assert "evidence.report" in [b.key for b in visit.at.get("download_button")]


@pytest.mark.parametrize(
    "content",
    ["", "{", "[" * 5000, geojson(point={"type": "Point", "coordinates": [139.7, 35.7]})],
    ids=["empty", "cut", "deep", "points"],
)
def test_a_file_that_cannot_be_used_is_one_sentence_and_lines_stay(
    visit: Visit, content: str
) -> None:
    visit.press("evidence.line.add")
    upload(visit, "evidence.lines.file", f"{HOSTILE}.geojson", content)
    assert len(visit.errors) == 1
    assert "<img" not in visit.errors[0].replace("\\<", "")
    assert set(table(visit, "Line")["Line"]) == {"river"}


def test_a_table_that_cannot_be_used_is_one_sentence_and_the_one_before_stays(
    visit: Visit,
) -> None:
    visit.press("evidence.line.add")
    part(visit, "Checks")
    good = "line,direction,time,count\nriver,E,08:00,600\n"
    upload(visit, "evidence.counters.file", "c.csv", good)
    kept = table(visit, "Answer")
    upload(visit, "evidence.counters.file", "d.csv", "x,y\n1,2\n")
    assert len(visit.errors) == 1
    assert table(visit, "Answer").equals(kept)


def test_cells_without_a_place_have_trip_ends_and_changes() -> None:
    run = store().save(PLACELESS, HOSTILE)
    visit = Visit("Flows", run=run.id).go("Evidence")
    for name in ("Screenlines", "Sectors", "Times of day", "Lengths and trip ends", "Checks",
                 "What changed", "Report"):  # fmt: skip
        part(visit, name)
    part(visit, "Lengths and trip ends")
    expected = examine(PLACELESS).trip_ends
    at = expected.loc[expected["time"] == visit.value("evidence.time")]
    assert sorted(table(visit, "Place", "Estimate")["Estimate"]) == pytest.approx(
        sorted(at["count"])
    )


def test_days_that_are_chosen_on_the_map_are_those_of_the_figures() -> None:
    run = store().save(counted.by_day(), "week")
    visit = Visit("Flows", run=run.id, day=counted.DAYS[0]).go("Evidence")
    part(visit, "Lengths and trip ends")
    assert counted.DAYS[0] in visit.captions.replace("\\", "")
    expected = examine(counted.by_day().of_days([counted.DAYS[0]])).trip_ends
    at = expected.loc[expected["time"] == visit.value("evidence.time")]
    assert sorted(table(visit, "Place", "Estimate")["Estimate"]) == pytest.approx(
        sorted(at["count"])
    )


def test_a_cell_is_followed_over_the_day_with_single_days_and_a_table_to_take_away() -> None:
    visit = Visit("Flows", run=COUNTS).go("Evidence")
    part(visit, "Times of day")
    result = load_shipped(COUNTS)
    expected = profile(result, cell_profiled(result.states, 0))
    found = table(visit, "Direction", "Time", "Estimate", "From")
    assert found["Estimate"].tolist() == pytest.approx(expected.rows["count"].tolist())
    assert f"{len(result.days)} days" in visit.captions
    assert "evidence.profile.csv" in [b.key for b in visit.at.get("download_button")]
    visit.set("evidence.profile.kind", "pair").set("evidence.reference", "usual")
    assert not visit.errors
    expected = profile(
        result, pair_profiled(result.states, 0, 1), reference=of_source(result, "usual")
    )
    found = table(visit, "Direction", "Reference")
    assert found["Reference"].tolist() == pytest.approx(expected.rows["reference"].tolist())
    visit.set("evidence.profile.pair.other", result.states.cells[0])
    assert len(visit.errors) == 1
    part(visit, "Report")


def test_a_line_and_a_sector_are_followed_where_there_are_some(visit: Visit) -> None:
    visit.press("evidence.line.add")
    part(visit, "Sectors")
    result = load_shipped(TOKYO)
    visit.set("evidence.sector.cells", list(result.states.cells[100:103]))
    visit.press("evidence.sector.add")
    part(visit, "Times of day")
    assert visit.value("evidence.profile.kind") == "line"
    assert table(visit, "Direction", "Estimate")["Direction"].tolist()[0] == "eastbound"
    visit.set("evidence.profile.kind", "sector")
    assert not visit.errors
    sectors = merged_cells([("my ward", [100, 101, 102])], result.states.n_cells)
    expected = profile(result, sector_profiled(sectors, "my ward"))
    found = table(visit, "Direction", "Estimate")
    assert found["Estimate"].tolist() == pytest.approx(expected.rows["count"].tolist())


def test_counters_with_places_need_no_lines_and_say_how_many_stand_at_a_border(
    visit: Visit,
) -> None:
    part(visit, "Checks")
    result = load_shipped(TOKYO)
    middles = result.states.placed_grid.centroids[[100, 101]]
    (west, south), (lon, lat) = middles.mean(axis=0).tolist(), middles[0].tolist()
    rows = (
        f"lon,lat,direction,time,count\n{west},{south},E,08:00,1200\n{lon},{lat},E,08:00,5\n"
        f"{west},{south},,09:00,3\n"
    )
    upload(visit, "evidence.counters.file", "c.csv", rows)
    assert not visit.errors
    assert "1 of 2 places" in visit.captions
    part(visit, "Screenlines")
    assert not visit.errors
    found = table(visit, "Line", "Counted")
    names = [result.states.cells[number] for number in (100, 101)]
    assert set(found["Line"]) == {" – ".join(names)}
    assert found["Counted"].max() == 1200
    part(visit, "Checks").set("evidence.within", 5_000.0)
    assert not visit.errors
    assert "2 of 2 places" in visit.captions


def test_moments_of_another_zone_are_put_on_the_clock_that_is_chosen(visit: Visit) -> None:
    visit.press("evidence.line.add")
    part(visit, "Checks")
    rows = "line,direction,time,count\nriver,E,2024-05-01T23:00:00Z,900\n"
    upload(visit, "evidence.counters.file", "c.csv", rows)
    assert len(visit.errors) == 1
    visit.set("evidence.counters.zone", "Asia/Tokyo")
    upload(visit, "evidence.counters.file", "d.csv", rows)
    part(visit, "Screenlines")
    assert table(visit, "Line", "Counted")["Counted"].max() == 900


def drawn(visit: Visit, *cells: int) -> list[str]:
    """Draw through cells, as clicks on the map do; their names."""
    names = [load_shipped(TOKYO).states.cells[cell] for cell in cells]
    visit.at.session_state["evidence.drawn"] = names
    visit.at.run()
    assert not visit.at.exception
    return names


def test_several_cells_make_a_line_or_a_cordon_and_the_last_can_be_taken_back(
    visit: Visit,
) -> None:
    result = load_shipped(TOKYO)
    places = [(lon, lat) for lon, lat in result.states.placed_grid.centroids.tolist()]
    names = drawn(visit, 100, 102, 134, 136)
    visit.press("evidence.map.undo")
    assert visit.at.session_state["evidence.drawn"] == names[:3]
    visit.press("evidence.map.line")
    assert not visit.errors
    assert visit.at.session_state["evidence.drawn"] == []
    line = line_through("line 1", [places[cell] for cell in (100, 102, 134)])
    expected = examine(result, Asked(lines=(line,))).volumes.query("time == '08:00'")
    found = table(visit, "Line", "Estimate")
    assert set(found["Line"]) == {"line 1"}
    assert found["Estimate"].tolist() == pytest.approx(expected["count"].tolist())
    drawn(visit, 100, 102, 134)
    visit.press("evidence.map.closed")
    cordon = cordon_through("cordon 1", [places[cell] for cell in (100, 102, 134)])
    expected = examine(result, Asked(lines=(cordon,))).volumes.query("time == '08:00'")
    found = table(visit, "Line", "Estimate").query("Line == 'cordon 1'")
    assert found["Estimate"].tolist() == pytest.approx(expected["count"].tolist())
    drawn(visit, 100, 101)
    assert "evidence.map.closed" not in visit.keys("button")
    drawn(visit, 100, 101, 102)
    visit.press("evidence.map.closed")
    assert len(visit.errors) == 1
    assert len(visit.at.session_state["evidence.drawn"]) == 3


def test_moves_within_a_reach_have_all_parts() -> None:
    window = WindowSettings(60, 3, ("02:00", "08:00"))
    result = tiny.run(tiny.people(), tiny.settings(window, reach_m=40_000.0, iterations=2))[1]
    assert result.is_sparse
    visit = Visit("Flows", run=store().save(result, "near").id).go("Evidence")
    visit.press("evidence.line.add")
    for name in ("Screenlines", "Sectors", "Times of day", "Lengths and trip ends", "Checks",
                 "What changed", "Report"):  # fmt: skip
        part(visit, name)
    part(visit, "Times of day").set("evidence.profile.kind", "cell")
    expected = profile(result, cell_profiled(result.states, 0))
    found = table(visit, "Direction", "Estimate")
    assert found["Estimate"].tolist() == pytest.approx(expected.rows["count"].tolist())
    part(visit, "Lengths and trip ends").set("evidence.reference", "counted")
    assert not visit.errors
    asked = Asked(reference=of_source(result, "counted"))
    lengths = examine(result, asked).lengths
    lengths = lengths.loc[lengths["time"] == visit.value("evidence.time")]
    found = table(visit, "Figure", "Reference")
    assert found["Reference"].tolist() == pytest.approx(lengths["reference"].tolist())
