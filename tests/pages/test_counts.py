"""The way from a file of counts to a map of flows: Data, Grid, Learn, Flows."""

from __future__ import annotations

import re
import time
from pathlib import Path
from urllib.parse import parse_qsl

import numpy as np
import pandas as pd
import pytest
import streamlit as st

from agg_core.exports import EXPORTS
from agg_core.io.counts import read_counts
from agg_core.made.counts import CountedCity, docomo_csv, mlit_csv, simulate_city
from agg_core.store.saved_runs import SavedCounts, SavedRun
from agg_core.study.counts import CountStudy, count_study_steps
from agg_core.study.result import WHOLE_DAY
from agg_core.study.settings import CountLearnSettings
from tests.agg_core import counted, tiny
from tests.agg_core.plotting.unpacked import unpacked_page
from tests.pages.visit import RUN_SECONDS, Visit, cleared_session
from ui import cached
from ui.cached import store
from ui.state import Run

ARROWS_ABOVE = 1.0
MORNING = "05:00"
CENTRE = {"53394511", "53394512", "53394521", "53394522"}
"""Codes of the four cells in the middle of 4 x 4."""
QUICK = {"counts.strength": "given", "counts.replicates": 0, "counts.time": "one"}
NAMELESS = "time,place,count\n" + "\n".join(
    f"2024-04-0{day} {hour:02d}:00,{place},{30 + sign * ((hour * 7 + day) % 5)}"
    for day in range(1, 6)
    for hour in range(8, 14)
    for place, sign in (("Nord", 1), ("*Süd*", -1))
)


@pytest.fixture(scope="module")
def city() -> CountedCity:
    return simulate_city(4, 4, 5, 2_000, random_state=0)


@pytest.fixture(scope="module")
def docomo(city: CountedCity) -> str:
    return docomo_csv(city)


@pytest.fixture(scope="module")
def mlit() -> str:
    """Three months: the layout has a night and a day of each kind of day of a month."""
    return mlit_csv(simulate_city(4, 4, 75, 2_000, random_state=0))


@pytest.fixture(scope="module")
def found(docomo: str) -> CountStudy:
    table = read_counts(docomo.encode(), filename="docomo.csv", step_minutes=240)
    settings = CountLearnSettings(
        time="by_time", strength="given", replicates=2, threshold=ARROWS_ABOVE
    )
    *_, study = count_study_steps(table, settings)
    assert isinstance(study, CountStudy)
    return study


@pytest.fixture
def visit(docomo: str) -> Visit:
    opened = Visit("Data").upload("docomo.csv", docomo)
    assert not opened.errors
    return opened


def learned(visit: Visit, **settings: object) -> Visit:
    visit.go("Learn")
    for key, value in (QUICK | settings).items():
        visit.set(key, value)
    visit.learn()
    assert not visit.errors
    return visit


def shown(visit: Visit) -> str:
    return "\n".join([*(block.value for block in visit.at.markdown), visit.captions])


class TestData:
    def test_a_file_of_counts_is_told_from_one_of_people_and_reported(
        self, visit: Visit, city: CountedCity
    ) -> None:
        suppressed = int((city.counts < 10).sum())
        assert visit.figures == {
            "Cells": "16",
            "Moments": "120",
            "Published": f"{city.counts.size - suppressed:,}",
            "Suppressed": f"{suppressed:,}",
            "Not measured": "0",
        }
        assert "120 moments, one every 1 hour, without a gap" in shown(visit).replace("\\", "")
        assert "Mobile Spatial Statistics" in visit.captions
        assert "clock of Asia/Tokyo" in visit.captions
        assert visit.guesses["Cells"] == "JIS mesh codes"

    def test_the_totals_are_a_line_and_the_means_a_map(
        self, visit: Visit, city: CountedCity
    ) -> None:
        known = np.where(city.counts >= 10, city.counts, np.nan)
        line = visit.charts()[0]["data"][0]
        assert line["y"] == np.nansum(known, axis=1).tolist()
        assert line["x"][0] == "2024-04-01T00:00:00"
        people = {cell["where"]: cell["people"] for cell in visit.decks()[0]["cells"]}
        means = dict(zip(city.codes, np.nanmean(known, axis=0), strict=True))
        assert people == pytest.approx(means, abs=0.006)

    def test_the_ministrys_layout_needs_no_choice(self, mlit: str) -> None:
        visit = Visit("Data").upload("mlit.csv", mlit)
        assert not visit.errors
        assert visit.figures["Moments"] == "12"
        assert "MLIT people-flow open data" in visit.captions.replace("\\", "")
        learned(visit).go("Flows")
        assert not visit.errors
        assert visit.arrows()

    def test_a_refused_file_leaves_what_was_open(self, visit: Visit) -> None:
        before = visit.figures
        visit.upload("changes.csv", "date,region,percent_change_from_baseline\n2024-04-01,A,-12\n")
        assert len(visit.errors) == 1
        assert visit.errors[0].endswith(".")
        assert visit.figures == before
        assert "docomo" in visit.captions
        visit.go("Grid")
        assert len(visit.decks()[0]["cells"]) == 16

    def test_a_doubt_is_settled_by_one_click(self) -> None:
        lines = [line for i, line in enumerate(NAMELESS.splitlines()) if i % 7 != 5]
        visit = Visit("Data").upload("holes.csv", "\n".join(lines))
        assert visit.guesses["Absent"] == "zero"
        assert visit.figures["Not measured"] == "0"
        visit.press("doubt.absent.missing")
        assert not visit.errors
        assert visit.figures["Not measured"] == str(60 + 1 - len(lines))
        assert visit.value("reading.absent") == "missing"

    def test_what_is_read_can_be_stated(self, visit: Visit) -> None:
        visit.read_again(tz="UTC", absent="missing")
        assert not visit.errors
        assert "clock of UTC" in visit.captions
        assert visit.figures["Suppressed"] == "0"

    def test_the_kind_can_be_stated_and_taken_back(self, visit: Visit) -> None:
        visit.press("reading.as_tracks")
        assert len(visit.errors) == 1, "nobody is in this file"
        assert visit.figures["Moments"] == "120", "what was open stays"
        visit.press("reading.as_counts")
        assert not visit.errors
        assert visit.figures["Moments"] == "120"

    def test_people_after_counts_and_counts_after_people(self, visit: Visit, docomo: str) -> None:
        people = "user,time,lon,lat\n" + "\n".join(
            f"u{i},2024-05-06 08:{10 * j:02d}:00,{139.5 + 0.01 * i},{35.6 + 0.01 * j}"
            for i in range(3)
            for j in range(6)
        )
        visit.upload("people.csv", people)
        assert visit.figures["People"] == "3"
        visit.go("Grid").go("Data").upload("docomo.csv", docomo)
        assert visit.figures["Cells"] == "16"
        assert not visit.errors

    def test_markdown_in_a_name_is_shown_as_text(self) -> None:
        visit = Visit("Data").upload("*b*.csv", NAMELESS)
        assert not visit.errors
        learned(visit).go("Flows")
        said = [*visit.at.markdown, *visit.at.caption]
        assert not any(block.allow_html for block in said)
        assert "\\*b\\*" in visit.captions


def test_the_sample_is_one_click_away() -> None:
    visit = Visit("Data").press("data.counts")
    assert not visit.errors
    assert visit.figures["Cells"] == "25"
    assert visit.go("Grid").title == "Grid"
    assert len(visit.decks()[0]["cells"]) == 25
    assert "start" in visit.go("Learn").keys("button")


class TestGrid:
    def test_the_cells_are_those_of_the_file(self, visit: Visit, city: CountedCity) -> None:
        visit.go("Grid")
        assert not visit.errors
        assert {cell["where"] for cell in visit.decks()[0]["cells"]} == set(city.codes)
        assert "16 cells" in shown(visit)
        assert "grid.kind" not in visit.keys("button_group")

    def test_a_time_of_day_shows_its_mean(self, visit: Visit, city: CountedCity) -> None:
        visit.go("Grid").set("view.heat.time", "08:00")
        at_eight = city.counts[8::24].astype(float)
        at_eight[at_eight < 10] = np.nan
        people = {cell["where"]: cell["people"] for cell in visit.decks()[0]["cells"]}
        means = dict(zip(city.codes, np.nanmean(at_eight, axis=0), strict=True))
        assert people == pytest.approx(means, abs=0.006)

    def test_suppressed_counts_are_said_to_be_between_numbers(self) -> None:
        visit = Visit("Data").press("data.counts")
        assert "a suppressed count is taken for what is expected" in visit.captions
        visit.go("Grid").set("view.heat.time", "13:00")
        said = re.search(r"([\d,]+) to ([\d,]+) people on the grid", visit.captions)
        assert said is not None
        least, most = (int(number.replace(",", "")) for number in said.groups())
        assert least <= 900 <= most, "the people of the sample"
        assert 0 < most - least < 200

    def test_two_periods_side_by_side(self, mlit: str) -> None:
        visit = Visit("Data").upload("mlit.csv", mlit).go("Grid")
        visit.set("view.heat.show", "Two times side by side")
        assert not visit.errors
        assert len(visit.decks()) == 2

    def test_names_without_a_place_are_no_map_and_it_is_said(self) -> None:
        visit = Visit("Data").upload("names.csv", NAMELESS).go("Grid")
        assert not visit.errors
        assert not visit.decks()
        assert ["there is no map" in info.value for info in visit.at.info] == [True]
        assert "Next: learn" in visit.ways_on

    def test_numbered_cells_get_their_map_from_an_extent(self) -> None:
        numbered = "time,cell,count\n" + "\n".join(
            f"2024-04-0{day} {hour:02d}:00,{cell},{30 + (cell * hour) % 7}"
            for day in range(1, 4)
            for hour in range(8, 12)
            for cell in range(6)
        )
        visit = Visit("Data").upload("numbered.csv", numbered)
        assert not visit.decks()
        assert "for a map say the extent" in visit.captions
        visit.read_again(grid_box="139, 35.2, 139.3, 35")
        assert len(visit.errors) == 1
        assert "south below north" in visit.errors[0]
        visit.read_again(grid_box="139, 35, 139.3, 35.2", grid_rows=2, grid_cols=3)
        assert not visit.errors
        visit.press("doubt.numbers.from the north-west")
        assert visit.value("reading.grid_box") == "139.0, 35.0, 139.3, 35.2"
        assert visit.value("reading.grid_corner") == "from the north-west"
        visit.go("Grid")
        assert [cell["where"] for cell in visit.decks()[0]["cells"]] == list("345012")

    def test_an_extent_to_keep_can_be_stated(self, visit: Visit) -> None:
        visit.read_again(bbox="139.62, 35.66, 139.65, 35.675")
        assert not visit.errors
        assert visit.figures["Cells"] == "2"


class TestLearn:
    def test_how_long_it_takes_is_told_before_and_changes_with_the_settings(
        self, visit: Visit
    ) -> None:
        def told() -> str:
            found = re.search(r"Takes about (.+?) on this machine", visit.captions)
            assert found is not None
            return found[1]

        visit.go("Learn").set("counts.replicates", 0)
        first = told()
        visit.set("counts.replicates", 200)
        assert told() != first
        # Without a prior these counts are refused, whatever time that would take.
        visit.set("counts.strength", "given").set("counts.prior", 0.0)
        assert ("on this machine" in visit.captions) == (not visit.errors)

    def test_what_the_counts_can_tell_is_said_before_the_start(self, visit: Visit) -> None:
        visit.go("Learn")
        assert len([*visit.at.success, *visit.at.warning]) == 1
        assert visit.at.button(key="start").disabled is False

    def test_what_is_not_identified_is_refused_without_a_prior(self, mlit: str) -> None:
        visit = Visit("Data").upload("mlit.csv", mlit).go("Learn")
        assert len(visit.at.warning) == 1, "six pairs of counts do not settle 16 x 16 flows"
        visit.set("counts.strength", "given").set("counts.prior", 0.0)
        assert len(visit.errors) == 1
        assert "prior" in visit.errors[0]
        assert visit.at.button(key="start").disabled is True
        visit.set("counts.strength", "auto")
        assert not visit.errors
        assert visit.at.button(key="start").disabled is False

    def test_a_farthest_move_bounds_what_is_learned_and_shown(self, visit: Visit) -> None:
        visit.go("Learn").set("counts.time", "one").set("counts.reach_m", 1.2)
        assert "within reach of one" in [*visit.at.success, *visit.at.warning][0].value
        keys = {widget.key for widget in visit.at.number_input}
        assert "counts.replicates" not in keys, "no worlds are simulated within a reach"
        visit.set("counts.strength", "given").learn()
        assert not visit.errors
        assert "moves within a reach are learned" in shown(visit)
        visit.go("Flows")
        assert not visit.errors
        ends = [(divmod(origin, 4), divmod(dest, 4)) for origin, dest in visit.arrows()]
        assert {abs(a - c) + abs(b - d) for (a, b), (c, d) in ends} == {1}

    def test_a_farthest_move_needs_cells_with_places(self) -> None:
        visit = Visit("Data").upload("nameless.csv", NAMELESS).go("Learn")
        visit.set("counts.reach_m", 1.2)
        assert len(visit.errors) == 1
        assert visit.at.button(key="start").disabled is True
        visit.set("counts.reach_m", None)
        assert not visit.errors

    def test_one_moment_has_no_flows_and_it_is_said(self) -> None:
        one = "time,place,count\n2024-04-01 08:00,A,5\n2024-04-01 08:00,B,7\n"
        visit = Visit("Data").upload("one.csv", one).go("Learn")
        assert len(visit.errors) == 1
        assert visit.at.button(key="start").disabled is True

    def test_who_learned_and_how_held_out_days_were_met(self, visit: Visit) -> None:
        learned(visit, **{"counts.strength": "auto"})
        assert "Done" in visit.at.success[-1].value
        tables = [frame.value for frame in visit.at.dataframe]
        held_out = next(t for t in tables if "Predicted by" in t)
        assert held_out["Predicted by"].tolist() == [
            "Learned flows", "Nobody moves", "Gravity model",
        ]  # fmt: skip
        assert (held_out["MAE"] > 0).all()
        assert any("Chosen" in table for table in tables)
        assert "See the flows" in visit.ways_on
        visit.set("counts.seed", 1)
        assert "settings have changed" in visit.captions

    def test_cancel_ends_it_and_says_so(self, visit: Visit) -> None:
        visit.go("Learn").set("counts.replicates", 500).press("start")
        visit.press("counts.cancel")
        assert not visit.errors
        assert "Cancelled" in visit.at.warning[-1].value
        assert "show.flows" in visit.go("Flows").keys("button")

    def test_the_settings_stay_from_page_to_page(self, visit: Visit) -> None:
        visit.go("Learn").set("counts.replicates", 7).go("Grid").go("Learn")
        assert visit.value("counts.replicates") == 7
        assert CountLearnSettings().replicates != 7


class TestFlows:
    @pytest.fixture
    def flows(self, visit: Visit, found: CountStudy, monkeypatch: pytest.MonkeyPatch) -> Visit:
        monkeypatch.setattr(cached, "result", lambda _: found)
        now = visit.at.session_state["app"]
        now.counts.finished = Run("learned before", "docomo.csv", found.settings)
        now.show("counts")
        visit.go("Flows")
        assert not visit.errors
        return visit

    def table(self, visit: Visit) -> pd.DataFrame:
        return next(f.value for f in visit.at.dataframe if "People" in f.value)

    def test_arrows_are_the_rows_of_the_table_above_the_threshold(
        self, flows: Visit, city: CountedCity
    ) -> None:
        rows = self.table(flows)
        names = flows.maps[0].header["cells"]
        assert [name.split(", ")[-1] for name in names] == list(city.codes)
        number = {name: i for i, name in enumerate(names)}
        inside = rows[rows["From"].isin(number) & rows["To"].isin(number)]
        above = inside[inside["People"] > ARROWS_ABOVE]
        assert len(above) > 5
        expected = {
            (number[a], number[b]): count
            for a, b, count in zip(above["From"], above["To"], above["People"], strict=True)
        }
        assert flows.arrows() == pytest.approx(expected, abs=0.006)

    def test_numbers_are_said_to_be_per_length_of_a_step(
        self, flows: Visit, found: CountStudy
    ) -> None:
        assert found.step_minutes == 4 * 60
        assert "People per 4 hours on an average day" in flows.captions
        assert "per step" not in flows.captions

    def test_a_time_of_day_has_flows_of_its_own(self, flows: Visit) -> None:
        whole = flows.arrows()
        flows.tell(time=MORNING, until=MORNING)
        morning = flows.arrows()
        assert sum(morning.values()) > sum(whole.values()), "people go to work then"
        number = self.table(flows).groupby("To")["People"].sum().nlargest(4)
        assert {name.split(", ")[-1] for name in number.index} == CENTRE, "where jobs are"

    def test_intervals_stand_beside_the_flows(self, flows: Visit) -> None:
        rows = self.table(flows)
        assert (rows["Low"] <= rows["High"]).all()
        assert (rows["High"] > 0).all()

    def test_what_is_not_resolved_is_told_to_the_map_and_can_be_left_out(
        self, flows: Visit
    ) -> None:
        table = self.table(flows)
        names = flows.maps[0].header["cells"]
        told = flows.maps[0].flows("estimate", flows.view["time"], column="resolved")
        inside = table[table["From"].isin(names) & table["To"].isin(names)]
        resolved = inside.query("Resolved and People >= 0.02")
        assert {(names[a], names[b]) for (a, b), sure in told.items() if sure
                and max(a, b) < len(names)} == set(
            zip(resolved["From"], resolved["To"], strict=True))  # fmt: skip
        flows.tell(resolved=True)
        assert self.table(flows)["Resolved"].all()

    def test_chosen_cells_show_their_own_flows(self, flows: Visit) -> None:
        flows.tell(cells=[5], direction="in")
        assert self.table(flows)["To"].nunique() == 1

    def test_the_view_survives_a_change_of_page_and_ends_with_a_new_run(
        self, flows: Visit, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        flows.tell(time=MORNING, until=MORNING).go("Grid").go("Flows")
        assert flows.view["time"] == MORNING
        monkeypatch.undo()
        learned(flows).go("Flows")
        assert not flows.errors
        assert flows.view["time"] == "whole day"

    def test_flows_of_trajectories_and_of_counts_take_turns(self, flows: Visit) -> None:
        flows.go("Data").press("data.tokyo_commuters").go("Flows")
        assert "docomo" in flows.captions, "the flows shown are those learned last"
        flows.at.session_state["app"].show("study")
        assert "show.flows" in flows.go("Flows").keys("button")

    def test_what_counts_have_is_offered_as_files(self, flows: Visit, found: CountStudy) -> None:
        formats = flows._widget("view.export.format").options
        assert formats == [e.label for e in EXPORTS.values() if e.available(found)]
        assert len(formats) == len(EXPORTS) - 1
        flows.tell(time=MORNING, until=MORNING).set("view.export.format", "omx-times")
        assert "Of all times of day." in flows.captions
        flows.set("view.export.format", "flows-csv")
        assert f"Of {MORNING}." in flows.captions

    def test_the_page_is_that_of_the_picture_shown(
        self, flows: Visit, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made: list[bytes] = []
        monkeypatch.setattr(st, "download_button", lambda _, data, **__: made.append(data()))
        flows.tell(resolved=True, threshold=0.5, cells=[3])
        saved = unpacked_page(made[-1].decode())
        view = saved.header["view"]
        assert (view["resolved"], view["threshold"], view["cells"]) == (True, 0.5, [3])
        time = view["time"]
        assert saved.flows("estimate", time) == flows.maps[0].flows("estimate", time)

    def test_cells_without_a_place_are_a_table(self) -> None:
        visit = Visit("Data").upload("names.csv", NAMELESS)
        learned(visit).go("Flows")
        assert not visit.errors
        assert not visit.maps
        assert "GeoJSON" not in "".join(visit._widget("view.export.format").options)
        assert "Origin-destination matrix" in visit._widget("view.export.format").options
        assert {"Nord", "*Süd*"} <= set(self.table(visit)["From"])
        assert any("table" in info.value for info in visit.at.info)

    def test_a_finished_run_is_saved_once_and_opened_by_a_later_session(self, visit: Visit) -> None:
        learned(visit).go("Flows").go("Learn").go("Runs")
        (kept,) = store().list()
        assert isinstance(kept, SavedCounts)
        assert (kept.title, kept.n_cells, kept.n_days) == ("docomo.csv", 16, 5)
        before = visit.go("Flows").arrows()
        assert before
        assert not visit.errors
        with cleared_session():
            later = Visit("Runs").press(f"runs.{kept.id}.open")
            assert not later.errors
            assert later.arrows() == before
            assert later.go("Learn").go("Flows").arrows() == before, "no data is open, the run is"

    def test_flows_appear_though_nobody_watched_the_end(self, visit: Visit) -> None:
        visit.go("Learn")
        for key, value in QUICK.items():
            visit.set(key, value)
        visit.press("start").go("Flows")
        deadline = time.monotonic() + RUN_SECONDS
        while not visit.maps and time.monotonic() < deadline:
            time.sleep(0.5)
            visit.go("Flows")
        assert not visit.errors
        assert visit.maps[0].header["cells"]


class TestAddress:
    @pytest.fixture
    def saved(self) -> SavedRun:
        return store().save(counted.study(), "week")

    def test_it_opens_the_run_with_its_flows(self, saved: SavedRun) -> None:
        visit = Visit("Flows", run=saved.id, at=counted.MORNING)
        assert not visit.errors
        assert visit.arrows() == {(0, 1): 6.0}
        assert visit.view["time"] == counted.MORNING
        assert visit.address == {"run": saved.id, "at": counted.MORNING, "theme": "light"}

    def test_it_brings_the_whole_view_back(self, saved: SavedRun) -> None:
        visit = Visit("Flows", run=saved.id)
        chosen = {"time": counted.NIGHT, "until": counted.NIGHT, "threshold": 0.5,
                  "shade": "stays", "top_n": 7, "resolved": True, "cells": [4],
                  "direction": "out", "cell_threshold": 0.25}  # fmt: skip
        assert visit.tell(**chosen).errors == []
        address = visit.address
        assert address == {
            "run": saved.id, "at": "23:00", "above": "0.5", "cell_above": "0.25", "shade": "stays",
            "top": "7", "resolved": "1", "cell": "4", "way": "out", "theme": "light",
        }  # fmt: skip
        code = visit.at.code[0].value
        assert dict(parse_qsl(code.split("?")[1])) == address
        with cleared_session():  # a colleague, elsewhere
            other = Visit("Flows", **address)
            assert not other.errors
            assert other.address == address
            assert {name: other.view[name] for name in chosen} == chosen

    def test_what_is_asked_in_vain_is_named_and_shown_as_usual(self, saved: SavedRun) -> None:
        visit = Visit("Flows", run=saved.id, at="12:00", cell="9", way="in", beside="single")
        assert ["at, beside, cell" in error for error in visit.errors] == [True]
        assert (visit.view["time"], visit.view["cells"]) == (WHOLE_DAY, [])
        visit.tell(top_n=5)
        assert not visit.errors

    def test_a_damaged_run_is_a_sentence(self, saved: SavedRun) -> None:
        (store().folder / saved.id / "result" / "day_flows.parquet").unlink()
        visit = Visit("Flows", run=saved.id)
        assert [r"day\_flows\.parquet is missing" in error for error in visit.errors] == [True]
        assert "no flows yet" in visit.at.info[0].value

    def test_it_follows_from_counts_to_people_and_back(self, saved: SavedRun) -> None:
        result = tiny.run(tiny.people(), tiny.settings(iterations=1))[1]
        people = store().save(result, "people")
        visit = Visit("Flows", run=saved.id, way="in", cell="4")
        visit.go("Runs").press(f"runs.{people.id}.open")
        assert visit.address["run"] == people.id
        visit.go("Runs").press(f"runs.{saved.id}.open")
        assert not visit.errors
        assert visit.address == {
            "run": saved.id, "at": WHOLE_DAY, "way": "in", "theme": "light",
        }, "another run is looked at afresh, in one's own way"  # fmt: skip

    def test_cells_without_a_place_have_an_address_too(self) -> None:
        run = store().save(counted.placeless(), "names")
        visit = Visit("Flows", run=run.id, at=counted.NIGHT)
        assert not visit.errors
        assert visit.address["at"] == counted.NIGHT
        assert visit.at.dataframe[0].value["People"].tolist() == [9.0]

    def test_flows_that_could_not_be_saved_have_none(
        self, visit: Visit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "runs").write_text("no folder")
        with monkeypatch.context() as refused:
            refused.setenv("FLOWS_HOME", str(tmp_path / "other"))
            store.clear()
            learned(visit)
            assert any("could not be saved" in w.value for w in visit.at.warning)
            visit.go("Flows")
            assert not visit.errors
            assert "run" not in visit.address
            assert not visit.at.code
        store.clear()
        visit.go("Runs").press("runs.save")
        assert len(store().list()) == 1
        assert "run" in visit.go("Flows").address
