"""Grid, Learn and Flows on sixty made-up people whose study takes seconds."""

import math
import re
import time
from dataclasses import replace

import pytest

from agg_core.study.people import StudyResult, study_steps
from agg_core.tables.flows import compare_flows
from tests.agg_core import tiny
from tests.pages.visit import RUN_SECONDS, Visit

TIMES = ("02:00", "08:00")
LABELS = {
    "cpc": "Common part",
    "correlation": "Correlation",
    "precision": "Precision",
    "recall": "Recall",
    "total_ratio": "Total movement",
}
SETTINGS = tiny.settings(
    window=tiny.WindowSettings(60, 3, TIMES), iterations=3, noise="auto", strength="auto"
)


@pytest.fixture(scope="module")
def csv() -> bytes:
    return tiny.frame(tiny.day_states(outside=True)).to_csv(index=False).encode()


@pytest.fixture(scope="module")
def expected() -> StudyResult:
    """The same study without the pages."""
    *_, result = study_steps(tiny.people(outside=True), SETTINGS)
    assert isinstance(result, StudyResult)
    return result


def gridded(csv: bytes) -> Visit:
    """The sixty people on their 3 x 3 grid, one step an hour."""
    visit = Visit("Data").upload("sixty.csv", csv).go("Grid")
    grid = SETTINGS.grid
    for name in ("west", "south", "east", "north", "rows", "cols"):
        visit.set(f"grid.{name}", getattr(grid, name))
    assert not visit.errors
    return visit.set("window.step_minutes", 60)


def ready_to_learn(csv: bytes) -> Visit:
    """With noise, prior and intervals that nobody asks for."""
    visit = gridded(csv).go("Learn").set("window.times", list(TIMES))
    for name in ("misclassify", "group_size", "seed", "iterations"):
        visit.set(f"learn.{name}", getattr(SETTINGS.learn, name))
    assert not visit.errors
    return visit


def told(visit: Visit) -> str:
    """How long learning is told to take."""
    found = re.search(r"Takes about (.+?) on this machine, [0-9.]+ GB of memory", visit.captions)
    assert found is not None
    return found[1]


def shown(figure: float) -> str:
    """A figure as the page writes it; one without a meaning is a dash."""
    return "–" if math.isnan(figure) else f"{figure:.3f}"


class TestGrid:
    def test_rows_and_columns_change_the_cells_drawn(self, csv: bytes) -> None:
        visit = gridded(csv)
        assert len(visit.decks()[0]["cells"]) == 9
        visit.set("grid.rows", 4).set("grid.cols", 5)
        assert len(visit.decks()[0]["cells"]) == 20
        assert "20 cells" in visit.captions

    def test_a_reversed_extent_is_a_sentence_and_the_old_grid_stays(self, csv: bytes) -> None:
        visit = gridded(csv).set("grid.west", 139.9)
        assert len(visit.errors) == 1
        assert len(visit.decks()[0]["cells"]) == 9
        visit.set("grid.west", 139.0)
        assert not visit.errors
        visit.set("grid.west", 139.9).go("Learn").go("Grid")
        assert not visit.errors
        assert visit.value("grid.west") == 139.0

    def test_more_cells_than_the_learner_holds_are_warned_of(self, csv: bytes) -> None:
        visit = gridded(csv)
        assert "9 cells" in visit.captions
        assert "6.67 people a cell" in visit.captions
        assert not visit.at.warning
        visit.set("grid.rows", 8).set("grid.cols", 8)
        assert ["fewer people than cells" in w.value for w in visit.at.warning] == [True]
        visit.set("grid.rows", 51).set("grid.cols", 50)
        assert ["2,550 cells are many" in w.value for w in visit.at.warning] == [True]
        # With a farthest move in a step its tables are small.
        visit.go("Learn").set("learn.reach_m", 5.0).go("Grid")
        assert not [w for w in visit.at.warning if "cells are many" in w.value]
        visit.go("Learn").set("learn.reach_m", None).go("Grid")
        assert ["2,550 cells are many" in w.value for w in visit.at.warning] == [True]

    def test_settings_survive_a_change_of_page(self, csv: bytes) -> None:
        visit = gridded(csv).set("grid.rows", 4).set("window.max_gap_minutes", 90)
        visit.set("view.heat.time", "05:00")
        visit.go("Learn").set("learn.group_size", 7).go("Home").go("Grid")
        assert visit.value("grid.rows") == 4
        assert visit.value("window.max_gap_minutes") == 90
        assert visit.value("view.heat.time") == "05:00"
        assert visit.go("Learn").value("learn.group_size") == 7

    def test_people_on_and_beyond_the_grid_are_those_of_the_hour(self, csv: bytes) -> None:
        visit = gridded(csv).set("view.heat.time", "05:00")
        assert "05:00: 50 people on the grid, 10 outside" in visit.captions
        visit.set("view.heat.time", "04:00")
        assert "04:00: 60 people on the grid" in visit.captions

    def test_an_extent_without_anybody_is_no_fault(self, csv: bytes) -> None:
        visit = gridded(csv)
        visit.set("grid.east", 10.0).set("grid.west", 9.0)
        assert not visit.errors
        assert "0 people on the grid" in visit.captions

    def test_two_times_side_by_side_begin_with_those_of_the_paper(self, csv: bytes) -> None:
        visit = gridded(csv).set("view.heat.show", "Two times side by side")
        assert (visit.value("view.heat.first"), visit.value("view.heat.second")) == (
            "02:00", "14:00",
        )  # fmt: skip
        assert people(visit) == [60, 60]
        visit.set("view.heat.first", "05:00")
        assert people(visit) == [50, 60]
        assert "05:00: 50 people on the grid, 10 outside" in visit.captions
        assert "14:00: 60 people on the grid, 0 outside" in visit.captions
        assert len(visit.charts()) == 1, "one legend for both"
        visit.go("Learn").go("Grid")
        assert visit.value("view.heat.first") == "05:00"
        visit.set("view.heat.show", "One time")
        assert len(visit.decks()) == 1
        assert "view.heat.first" not in visit.keys("selectbox")

    def test_the_nearest_times_are_shown_where_the_papers_are_missing(self, csv: bytes) -> None:
        visit = gridded(csv).set("window.step_minutes", 720)
        visit.set("view.heat.show", "Two times side by side")
        assert (visit.value("view.heat.first"), visit.value("view.heat.second")) == (
            "00:00", "12:00",
        )  # fmt: skip

    def test_buttons_step_through_the_day_and_round_midnight(self, csv: bytes) -> None:
        visit = gridded(csv).set("view.heat.time", "22:00")
        assert visit.press("heat.later").value("view.heat.time") == "23:00"
        assert visit.press("heat.later").value("view.heat.time") == "00:00"
        assert visit.press("heat.earlier").value("view.heat.time") == "23:00"

    def test_columns_tilt_the_map_and_say_how_to_turn_it(self, csv: bytes) -> None:
        visit = gridded(csv)
        assert "right button" not in visit.captions
        cells = visit.set("view.heat.columns", True).decks()[0]["cells"]
        assert all(cell["fill"][3] == 255 for cell in cells), "they are opaque"
        assert "right button" in visit.captions
        assert visit.go("Learn").go("Grid").value("view.heat.columns") is True


def people(visit: Visit) -> list[float]:
    """People on each map."""
    return [round(sum(cell["people"] for cell in deck["cells"])) for deck in visit.decks()]


class TestLearn:
    def test_the_figures_are_those_of_the_study(self, csv: bytes, expected: StudyResult) -> None:
        visit = ready_to_learn(csv).learn()
        assert not visit.errors
        assert [s.value.startswith("Done") for s in visit.at.success] == [True]
        assert "See the flows" in visit.ways_on
        visit.go("Flows")
        reason = "Learner: MCMC over individual assignments, since occupied cells hold"
        assert reason in visit.captions
        for at in TIMES:
            for truth in ("single", "counted"):
                visit.tell(time=at, until=at, truth=truth, threshold=2.0)
                figures = compare_flows(
                    expected.matrix(at, "estimate"), expected.matrix(at, truth), 2.0
                )
                assert visit.figures == {
                    label: shown(getattr(figures, name)) for name, label in LABELS.items()
                }
        self._the_view_survives(visit)
        self._old_flows_stay_while_new_settings_fail(visit)

    def test_how_long_it_takes_is_told_before_and_changes_with_the_settings(
        self, csv: bytes
    ) -> None:
        visit = ready_to_learn(csv)
        first = told(visit)
        more = told(visit.set("learn.replicates", 200).set("learn.group_size", 30))
        assert first != more
        assert told(visit.set("learn.replicates", 4).set("learn.group_size", 5)) == first
        # With nobody in the extent there is nothing to tell.
        visit.go("Grid").set("grid.east", 10.0).set("grid.west", 9.0).go("Learn")
        assert "GB of memory" in visit.captions
        assert "on this machine," not in visit.captions

    def test_the_papers_learner_is_one_click_away_and_one_back(self, csv: bytes) -> None:
        visit = ready_to_learn(csv)
        assert visit.value("learner.inference") == "auto"
        assert "learner.prior" not in visit.keys("number_input")
        visit.set("learner.strength", "given")
        assert "learner.prior" in visit.keys("number_input")
        assert visit.press("learner.paper").value("learner.inference") == "cfb"
        assert "learner.calibrate" in visit.keys("number_input")
        assert "learner.prior" not in visit.keys("number_input")
        visit.set("learner.noise", "given").learn().go("Flows")
        assert "Learner: Collective forward-backward (the paper's);" in visit.captions
        assert visit.go("Learn").press("learner.paper").value("learner.inference") == "auto"

    def test_a_farthest_move_is_typed_in_km(self, csv: bytes) -> None:
        visit = ready_to_learn(csv)
        assert visit.value("learn.reach_m") is None
        visit.choose_nothing().press("learner.paper").set("learn.reach_m", 21.5)
        assert not visit.errors
        assert "learner.calibrate" not in visit.keys("number_input")
        visit.set("learner.inference", "cavity")
        assert len(visit.errors) == 1
        visit.set("learner.inference", "cfb")
        assert not visit.errors
        assert visit.go("Grid").go("Learn").value("learn.reach_m") == 21.5
        visit.learn()
        assert not visit.errors
        learn = replace(
            SETTINGS.learn, noise="given", strength="given", replicates=0, inference="cfb",
            reach_m=21_500.0,
        )  # fmt: skip
        *_, found = study_steps(tiny.people(outside=True), replace(SETTINGS, learn=learn))
        assert isinstance(found, StudyResult)
        assert found.beyond_reach > 0
        left = f"{found.beyond_reach:,} of {found.beyond_reach + found.n_sequences:,}"
        assert [left in w.value for w in visit.at.warning] == [True]
        visit.go("Flows")
        assert [left in w.value for w in visit.at.warning if "left out" in w.value] == [True]
        assert "Moves of up to 21.5 km a step" in visit.captions
        visit.tell(time="08:00", until="08:00", truth="counted", threshold=2.0)
        figures = compare_flows(found.matrix("08:00"), found.matrix("08:00", "counted"), 2.0)
        assert visit.figures == {
            label: shown(getattr(figures, name)) for name, label in LABELS.items()
        }

    def test_replicates_go_with_the_learner_that_has_them(self, csv: bytes) -> None:
        visit = ready_to_learn(csv).press("learner.paper").set("learner.calibrate", 2)
        visit.set("learner.inference", "gaussian_pairs")
        assert not visit.errors
        assert "learner.calibrate" not in visit.keys("number_input")
        visit.set("learner.inference", "cavity")
        assert visit.value("learner.calibrate") == 0
        visit.set("learner.calibrate", 3).set("learner.inference", "cfb")
        assert visit.value("learner.calibrate") == 3

    def test_positions_have_no_chance_of_a_neighbour_cell(self, csv: bytes) -> None:
        visit = ready_to_learn(csv)
        assert "learn.misclassify" in visit.keys("number_input")
        visit.set("observed.observed", "positions")
        assert "learn.misclassify" not in visit.keys("number_input")

    def test_metres_are_learned_from_positions_or_told(self, csv: bytes) -> None:
        visit = ready_to_learn(csv).set("observed.observed", "positions")
        assert "learner.assumed_m" not in visit.keys("number_input")
        visit.set("learner.noise", "given").set("learner.assumed_m", 9_000.0)
        assert "learner.assumed" not in visit.keys("number_input")
        visit.set("learner.noise", "auto").set("learn.sigma_m", 2_000.0).learn().go("Flows")
        learn = replace(SETTINGS.learn, observed="positions", sigma_m=2_000.0)
        *_, found = study_steps(tiny.people(outside=True), replace(SETTINGS, learn=learn))
        assert isinstance(found, StudyResult)
        assert found.noise is not None
        assert (
            f"Positions with noise of 2000 m added; noise of {found.noise.groups:,.0f} m was "
            f"learned and allowed for (from single people noise of {found.noise.single:,.0f} m)"
        ) in visit.captions

    def _the_view_survives(self, visit: Visit) -> None:
        visit.tell(threshold=1000.0).go("Grid").go("Flows")
        assert visit.view["threshold"] == 1000.0
        assert visit.view["time"] == TIMES[1]
        assert visit.arrows() == {}

    def _old_flows_stay_while_new_settings_fail(self, visit: Visit) -> None:
        figures = visit.figures
        visit.go("Learn").set("learn.group_size", 61).learn()
        assert len(visit.errors) == 1
        assert "61 is larger than the 60 people" in visit.errors[0].replace("\\", "")
        visit.go("Flows")
        assert visit.figures == figures

    def test_flows_appear_though_nobody_watched_the_end(self, csv: bytes) -> None:
        visit = ready_to_learn(csv).choose_nothing().press("start").go("Flows")
        deadline = time.monotonic() + RUN_SECONDS
        while not visit.figures and time.monotonic() < deadline:
            time.sleep(0.5)
            visit.go("Flows")
        assert set(visit.figures) == set(LABELS.values())

    def test_cancel_ends_it_and_says_so(self, csv: bytes) -> None:
        visit = ready_to_learn(csv).set("learn.iterations", 5000).press("start")
        assert "learner.cancel" in visit.keys("button")
        visit.press("learner.cancel")
        assert [w.value.startswith("Cancelled") for w in visit.at.warning] == [True]
        assert "learner.cancel" not in visit.keys("button")
        assert "last finished run" not in visit.at.warning[0].value, "there was none"
        assert "show.flows" in visit.go("Flows").keys("button")
        assert [w.value.startswith("Cancelled") for w in visit.go("Learn").at.warning] == [True]

    def test_what_more_iterations_may_change_is_said_where_the_limit_ended_it(
        self, csv: bytes
    ) -> None:
        visit = ready_to_learn(csv).choose_nothing().learn()
        learn = replace(SETTINGS.learn, noise="given", strength="given", replicates=0)
        *_, found = study_steps(tiny.people(outside=True), replace(SETTINGS, learn=learn))
        assert isinstance(found, StudyResult)
        for at in found.by_time:
            assert at.estimate.reason == "limit", "after three iterations"
            assert f"{at.time}: {at.estimate.change / 2:.1%}" in visit.captions.replace("\\", "")

    def test_a_second_learner_is_refused_while_one_runs(self, csv: bytes) -> None:
        visit = ready_to_learn(csv).set("learn.iterations", 5000).press("start").press("start")
        assert len(visit.errors) == 1
        assert "running already" in visit.errors[0]
        assert "learner.cancel" in visit.keys("button"), "the first goes on, and is still shown"
        visit.go("Data").press("show.flows")
        assert "running already" in visit.errors[0]
        assert visit.figures["People"] == "60"
        visit.go("Learn")
        assert not visit.errors
        assert "learner.cancel" in visit.keys("button")

    def test_a_fault_goes_when_the_setting_it_named_is_changed(self, csv: bytes) -> None:
        visit = ready_to_learn(csv).set("learner.inference", "gaussian_pairs")
        visit.set("observed.observed", "positions")
        assert len(visit.errors) == 1
        visit.set("learner.inference", "auto")
        assert not visit.errors

    def test_a_time_that_is_no_time_is_a_sentence(self, csv: bytes) -> None:
        visit = ready_to_learn(csv).set("window.times", ["25:00"])
        assert len(visit.errors) == 1
        assert "HH:MM" in visit.errors[0].replace("\\", "")
