"""The way from a file of counts to a map of flows: Data, Grid, Learn, Flows."""

from __future__ import annotations

import re
import time

import numpy as np
import pandas as pd
import pytest

from agg_core.counting.study import CountStudy, count_study_steps
from agg_core.readers.counts import read_counts
from agg_core.settings import CountLearnSettings
from agg_core.synthetic_counts import CountedCity, docomo_csv, mlit_csv, simulate_city
from tests.pages.visit import RUN_SECONDS, Visit
from ui import cached
from ui.counts_job import CountedFlows
from ui.state import Run
from ui.views import COUNTS_KEY

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
def found(docomo: str) -> CountedFlows:
    table = read_counts(docomo.encode(), filename="docomo.csv", step_minutes=240)
    settings = CountLearnSettings(
        time="by_time", strength="given", replicates=2, threshold=ARROWS_ABOVE
    )
    *_, study = count_study_steps(table, settings)
    assert isinstance(study, CountStudy)
    return CountedFlows(study)


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
        withheld = int((city.counts < 10).sum())
        assert visit.figures == {
            "Cells": "16",
            "Moments": "120",
            "Published": f"{city.counts.size - withheld:,}",
            "Withheld": f"{withheld:,}",
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
        assert visit.decks()[0]["arrows"]

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
        visit.read_again(timezone="UTC", absent="missing")
        assert not visit.errors
        assert "clock of UTC" in visit.captions
        assert visit.figures["Withheld"] == "0"

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

    def test_withheld_counts_are_said_to_be_between_numbers(self) -> None:
        visit = Visit("Data").press("data.counts")
        assert "a withheld count is taken for what is expected" in visit.captions
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
        assert "no flows yet" in visit.go("Flows").at.info[0].value

    def test_the_settings_stay_from_page_to_page(self, visit: Visit) -> None:
        visit.go("Learn").set("counts.replicates", 7).go("Grid").go("Learn")
        assert visit.value("counts.replicates") == 7
        assert CountLearnSettings().replicates != 7


class TestFlows:
    @pytest.fixture
    def flows(self, visit: Visit, found: CountedFlows, monkeypatch: pytest.MonkeyPatch) -> Visit:
        monkeypatch.setattr(cached, "counted", lambda _: found)
        now = visit.at.session_state["app"]
        now.counts.finished = Run("learned before", "docomo.csv", found.study.settings)
        now.shows_counts = True
        visit.go("Flows")
        assert not visit.errors
        return visit

    def arrows(self, visit: Visit) -> dict[tuple[int, int], float]:
        (deck,) = visit.decks()
        return {(a["origin"], a["dest"]): a["count"] for a in deck["arrows"]}

    def table(self, visit: Visit) -> pd.DataFrame:
        return visit.at.dataframe[0].value

    def test_arrows_are_the_rows_of_the_table_above_the_threshold(
        self, flows: Visit, city: CountedCity
    ) -> None:
        rows = self.table(flows)
        number = {code: i for i, code in enumerate(city.codes)}
        inside = rows[rows["From"].isin(number) & rows["To"].isin(number)]
        above = inside[inside["People"] > ARROWS_ABOVE]
        assert len(above) > 5
        expected = {
            (number[a], number[b]): count
            for a, b, count in zip(above["From"], above["To"], above["People"], strict=True)
        }
        assert self.arrows(flows) == pytest.approx(expected, abs=0.006)

    def test_a_time_of_day_has_flows_of_its_own(self, flows: Visit) -> None:
        whole = self.arrows(flows)
        flows.set(f"{COUNTS_KEY}time", MORNING)
        morning = self.arrows(flows)
        assert sum(morning.values()) > sum(whole.values()), "people go to work then"
        number = self.table(flows).groupby("To")["People"].sum().nlargest(4)
        assert set(number.index) == CENTRE, "where jobs are"

    def test_intervals_stand_beside_the_flows(self, flows: Visit) -> None:
        rows = self.table(flows)
        assert (rows["Low"] <= rows["High"]).all()
        assert (rows["High"] > 0).all()

    def test_what_is_not_resolved_is_faded_and_can_be_left_out(self, flows: Visit) -> None:
        resolved = set(
            zip(*self.table(flows).query("Resolved")[["From", "To"]].to_numpy().T, strict=True)
        )
        (deck,) = flows.decks()
        names = {cell["cell"]: cell["where"] for cell in deck["cells"]}
        opaque = {
            (names[a["origin"]], names[a["dest"]]) for a in deck["arrows"] if a["fill"][3] > 200
        }
        drawn = {(names[a["origin"]], names[a["dest"]]) for a in deck["arrows"]}
        assert opaque == drawn & resolved
        assert any(
            "faded" in note["text"]
            for chart in flows.charts()
            for note in chart["layout"].get("annotations", ())
        )
        flows.set(f"{COUNTS_KEY}resolved", True)
        assert {
            (names[a["origin"]], names[a["dest"]]) for a in flows.decks()[0]["arrows"]
        } == drawn & resolved

    def test_a_cell_shows_its_own_flows(self, flows: Visit) -> None:
        flows.set(f"{COUNTS_KEY}cell", 5).set(f"{COUNTS_KEY}direction", "in")
        assert {dest for _, dest in self.arrows(flows)} == {5}
        assert self.table(flows)["To"].nunique() == 1

    def test_the_view_survives_a_change_of_page_and_ends_with_a_new_run(
        self, flows: Visit, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        flows.set(f"{COUNTS_KEY}time", MORNING).go("Grid").go("Flows")
        assert flows.value(f"{COUNTS_KEY}time") == MORNING
        monkeypatch.undo()
        learned(flows).go("Flows")
        assert not flows.errors
        assert flows.value(f"{COUNTS_KEY}time") == "whole day"

    def test_flows_of_trajectories_and_of_counts_take_turns(self, flows: Visit) -> None:
        flows.go("Data").press("data.tokyo_commuters").go("Flows")
        assert "docomo" in flows.captions, "the flows shown are those learned last"
        flows.at.session_state["app"].shows_counts = False
        assert "no flows yet" in flows.go("Flows").at.info[0].value

    def test_cells_without_a_place_are_a_table(self) -> None:
        visit = Visit("Data").upload("names.csv", NAMELESS)
        learned(visit).go("Flows")
        assert not visit.errors
        assert not visit.decks()
        assert {"Nord", "*Süd*"} <= set(self.table(visit)["From"])
        assert any("table" in info.value for info in visit.at.info)

    def test_flows_appear_though_nobody_watched_the_end(self, visit: Visit) -> None:
        visit.go("Learn")
        for key, value in QUICK.items():
            visit.set(key, value)
        visit.press("start").go("Flows")
        deadline = time.monotonic() + RUN_SECONDS
        while not visit.decks() and time.monotonic() < deadline:
            time.sleep(0.5)
            visit.go("Flows")
        assert not visit.errors
        assert visit.decks()[0]["cells"]
