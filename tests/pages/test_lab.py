"""The Lab: an experiment and the teaching view that take seconds, held against the core."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest

from agg_core.io import read_trajectories
from agg_core.lab.experiments import EXPERIMENTS, LabResult, LabSettings, lab_steps
from agg_core.lab.teaching import GROUP_SIZES, TEACHING_TIME, TeachingSettings
from agg_core.lab.trends import final_rows
from agg_core.made.samples import sample_path
from agg_core.plotting.lab import size_label
from agg_core.store.codec import save_lab
from agg_core.store.jobs import EXPERIMENT
from agg_core.store.lab_results import LabStore
from agg_core.store.runs import default_folder
from agg_core.store.shipped_lab import load_shipped_teaching
from agg_core.study.people import StudyResult, study_steps
from tests.pages.visit import Visit, cleared_session
from ui import cached

TINY = LabSettings(
    n_states=(2,), group_sizes=(1, 5), n_individuals=(50,), lengths=(3,), n_seeds=2, iterations=4,
    learners=("cfb", "cavity"),
)  # fmt: skip
VIEW = TeachingSettings(n_people=300, iterations=3)
OWN = "lab.fig3"


def with_values(settings: LabSettings) -> Visit:
    """The Lab with own values of Fig. 3."""
    visit = Visit("Lab", part="experiments").set("view.lab.preset", "own")
    for name in ("n_states", "group_sizes", "n_individuals", "lengths"):
        visit.set(f"{OWN}.{name}", ", ".join(map(str, getattr(settings, name))))
    for name in ("n_seeds", "iterations", "seed"):
        visit.set(f"{OWN}.{name}", getattr(settings, name))
    visit.set(f"{OWN}.learners", list(settings.learners))
    assert not visit.errors
    return visit


def run(visit: Visit) -> Visit:
    return visit.press("lab.start").wait_until_ended()


def result_of(settings: LabSettings) -> LabResult:
    *_, result = lab_steps(settings)
    assert isinstance(result, LabResult)
    return result


def ends(visit: Visit) -> list[float]:
    return [float(value) for value in visit.at.dataframe[0].value["Mean"]]


def markdown(visit: Visit) -> str:
    return "\n".join(block.value for block in visit.at.markdown)


class TestExperiments:
    def test_every_experiment_says_how_many_runs_it_has(self) -> None:
        visit = Visit("Lab", part="experiments")
        for name, experiment in EXPERIMENTS.items():
            visit.set("view.lab.experiment", name)
            assert f"N = {experiment.quick.n_individuals[0]:,}" in visit.captions
            assert f"{experiment.quick.n_runs:,} runs of a learner" in visit.captions
            assert not visit.errors

    def test_numbers_are_those_of_the_core_and_follow_the_seed(self) -> None:
        expected = result_of(TINY)
        visit = run(with_values(TINY))
        assert [s.value.startswith("Done") for s in visit.at.success] == [True]
        runs = final_rows(expected.table).sort_values(["learner", "group_size"])
        mean = runs.groupby(["learner", "group_size"])["delta_nll"].mean()
        assert ends(visit) == pytest.approx(mean.tolist(), rel=1e-9)
        assert all(trend.sentence in markdown(visit) for trend in expected.trends)
        assert len(expected.trends) == 5, "two of each learner, and one against the other"
        assert EXPERIMENTS["fig3"].see in markdown(visit)
        assert EXPERIMENTS["fig3"].doubt in markdown(visit)
        figure = visit.charts()[0]
        assert {trace["name"] for trace in figure["data"]} == {"M = 1", "M = 5"}
        assert figure["layout"]["yaxis"]["title"]["text"] == "ΔNLL per person, nats"
        assert {"lab.csv", "lab.html"} <= set(visit.keys("download_button"))

        visit.go("Home").go("Lab")
        assert ends(visit) == pytest.approx(mean.tolist()), "the result stays over a change of page"
        assert visit.value(f"{OWN}.n_individuals") == "50"
        assert visit.set("view.lab.log", True).charts()[0]["layout"]["yaxis"]["type"] == "log"

        run(visit.set(f"{OWN}.seed", 5))
        assert ends(visit) != pytest.approx(mean.tolist())

    def test_a_cancelled_run_leaves_what_was_shown(self) -> None:
        visit = run(with_values(TINY))
        before = ends(visit)
        visit.set(f"{OWN}.iterations", 5000).set(f"{OWN}.n_individuals", "5000")
        visit.press("lab.start").press("lab.start")
        assert [("running already" in error) for error in visit.errors] == [True]
        visit.press("lab.cancel")
        said = visit.at.warning[0].value
        assert said == "Cancelled. The last finished experiment is still shown."
        assert ends(visit) == before

    def test_learners_are_those_that_can_do_it(self) -> None:
        visit = with_values(TINY)
        offered = visit._widget(f"{OWN}.learners").options
        assert "MCMC over individual assignments" in offered
        assert "Gaussian pairs" not in offered
        visit.set(f"{OWN}.learners", [])
        assert ["learners is empty" in error for error in visit.errors] == [True]
        visit.set("view.lab.experiment", "groups")
        assert "Gaussian pairs" in visit._widget("lab.groups.learners").options

    @pytest.mark.parametrize(
        ("name", "text", "said"),
        [
            ("n_states", "3, many", "whole numbers with commas between them, not '3, many'"),
            ("group_sizes", "", "whole numbers"),
            ("group_sizes", "51", "Groups of M = 51 cannot be formed"),
            ("lengths", "1", "Steps, T must lie between 2 and 100"),
        ],
    )
    def test_values_that_cannot_be_are_one_sentence(self, name: str, text: str, said: str) -> None:
        visit = with_values(TINY).set(f"{OWN}.{name}", text)
        assert len(visit.errors) == 1
        assert said in visit.errors[0].replace("\\", "")
        assert "lab.start" in visit.keys("button")


@cache
def studied(learner: str, size: int) -> StudyResult:
    """One point of the teaching view: a study by itself of the first people of the sample."""
    table = pd.read_parquet(sample_path("tokyo_commuters"))
    first = table["user_id"].unique()[: VIEW.n_people]
    people = read_trajectories(table[table["user_id"].isin(first)], tz="Asia/Tokyo")
    *_, study = study_steps(people, VIEW.study(learner, size))
    assert isinstance(study, StudyResult)
    return study


def moves(study: StudyResult, source: str = "estimate") -> float:
    flows = study.matrix(TEACHING_TIME, source)
    return float(flows.sum() - np.trace(flows))


class TestTeaching:
    def test_the_slider_changes_figures_sentence_and_map(self) -> None:
        visit = Visit("Lab").set("view.lab.part", "teaching")
        assert visit.maps[0].header["times"] == [size_label(size) for size in GROUP_SIZES]
        assert f"{load_shipped_teaching().true_moves:,.0f} do" in markdown(visit), "it is shipped"
        for name in ("n_people", "iterations"):
            visit.set(f"teach.{name}", getattr(VIEW, name))
        visit.press("teach.start").wait_until_ended()
        assert not visit.errors
        seen = {}
        for size in (100, 1):
            visit.tell("lab.map", time=size_label(size))
            for place, (learner, who) in enumerate(
                (("cfb", "the paper's learner"), ("auto", "“Best for the data”"))
            ):
                # Single people are learned from once, by the paper's learner.
                expected = moves(studied("cfb" if size == 1 else learner, size))
                assert f"At M = {size} {who}" in markdown(visit)
                assert f"{expected:,.0f} people seem to move per step" in markdown(visit)
                curve = visit.charts()[-1]["data"][2 * place]
                marked = curve["x"].index(size)
                assert curve["y"][marked] == pytest.approx(expected)
                assert curve["marker"]["size"][marked] == max(curve["marker"]["size"])
            assert f"where {moves(studied('cfb', 100), 'single'):,.0f} do" in markdown(visit)
            (sent,) = visit.maps
            seen[size] = [
                sent.flows(source, size_label(size)) for source in ("cfb", "auto", "truth")
            ]
        assert seen[100][2] == seen[1][2], "the truth stays"
        assert seen[100][0] != seen[1][0]
        assert seen[1][0] == seen[1][1], "at M = 1 both estimates are the same"
        assert "about the true movement" in markdown(visit)
        visit.go("Home").go("Lab")
        assert visit.maps[0].header["view"]["time"] == size_label(1)

    def test_both_parts_may_run_at_once(self) -> None:
        visit = with_values(TINY).set(f"{OWN}.iterations", 5000).press("lab.start")
        visit.set("view.lab.part", "teaching").press("teach.start")
        assert not visit.errors
        assert "teach.cancel" in visit.keys("button")
        visit.press("teach.cancel").set("view.lab.part", "experiments")
        assert "lab.cancel" in visit.keys("button") or visit.at.success


class TestStory:
    def test_the_lab_opens_with_its_first_scene(self) -> None:
        visit = Visit("Lab")
        assert visit.address == {"part": "story", "scene": "1"}
        (sent,) = visit.maps
        assert sent.header["view"]["scene"] == 0
        assert len(sent.header["story"]) == 6
        assert "lab.story.page" in visit.keys("download_button")

    def test_the_scene_stays_over_a_change_of_page(self) -> None:
        visit = Visit("Lab").tell("lab.story", scene=3)
        assert visit.go("Home").go("Lab").maps[0].header["view"]["scene"] == 3

    def test_a_scene_is_in_the_address(self) -> None:
        visit = Visit("Lab").tell("lab.story", scene=4)
        assert visit.address == {"part": "story", "scene": "5"}
        view = Visit("Lab", **visit.address).maps[0].header["view"]
        assert (view["scene"], view["show"]) == (4, "both")
        visit.tell("lab.story", scene=None)
        assert visit.address == {"part": "story"}

    @pytest.mark.parametrize("scene", ["0", "7", "-1", "x", "", "²", "1e9"])
    def test_a_scene_that_is_not_there_is_the_first(self, scene: str) -> None:
        visit = Visit("Lab", part="story", scene=scene)
        assert visit.maps[0].header["view"]["scene"] == 0
        assert not visit.errors


class TestAddress:
    """A reload is another session that comes with the address."""

    def test_an_experiment_is_there_again_with_its_settings(self) -> None:
        visit = run(with_values(TINY))
        address = visit.address
        assert set(address) == {"part", "result"}
        again = Visit("Lab", **address)
        assert ends(again) == ends(visit)
        assert again.value(f"{OWN}.n_individuals") == "50"
        assert again.value(f"{OWN}.learners") == list(TINY.learners)
        assert "kept by the server" in again.captions

    def test_a_teaching_view_is_there_again_with_its_settings(self) -> None:
        visit = Visit("Lab", part="teaching")
        for name in ("n_people", "iterations"):
            visit.set(f"teach.{name}", getattr(VIEW, name))
        visit.press("teach.start").wait_until_ended()
        address = visit.address
        again = Visit("Lab", **address)
        assert again.value("teach.n_people") == VIEW.n_people
        assert again.maps[0].flows("cfb", "M = 20") == visit.maps[0].flows("cfb", "M = 20")

    def test_what_was_learned_is_not_learned_twice_unless_asked(self) -> None:
        first = ends(run(with_values(TINY)))
        with cleared_session():
            visit = with_values(TINY)
            label = visit.at.button(key="lab.start").label
            visit.press("lab.start")
            assert ends(visit) == first
            assert not visit.at.success
            assert visit.at.button(key="lab.start").label != label, "it says what comes now"
            run(visit)  # now it is learned again
            assert [s.value.startswith("Done") for s in visit.at.success] == [True]
            assert ends(visit) == first

    @pytest.mark.parametrize("part", ["story", "teaching", "experiments"])
    @pytest.mark.parametrize("key", ["0" * 32, "../runs", "x" * 500])
    def test_a_result_that_is_not_there_is_one_sentence(self, part: str, key: str) -> None:
        visit = Visit("Lab", part=part, result=key)
        assert len(visit.errors) == 1
        assert visit.value("view.lab.part") == part
        other = "teaching" if part != "teaching" else "story"
        assert not visit.set("view.lab.part", other).errors

    def test_a_preset_stays_one(self) -> None:
        settings = EXPERIMENTS["fig4"].quick
        folder = default_folder().with_name("kept")
        table = pd.DataFrame(columns=["seed"])
        save_lab(LabResult(settings, table, (), 1.0, ()), folder)
        store = LabStore(default_folder().with_name("lab"))
        key = store.keep(EXPERIMENT, settings, "Fig. 4", folder)
        visit = Visit("Lab", result=key)
        assert visit.value("view.lab.part") == "experiments", "the kind of the result tells"
        assert visit.value("view.lab.experiment") == "fig4"
        assert visit.value("view.lab.preset") == "quick"

    def test_what_comes_with_the_app_is_not_learned_unless_asked(self) -> None:
        visit = Visit("Lab", part="teaching").set("teach.seed", 5).set("teach.seed", 0)
        assert visit.at.button(key="teach.start").label == "Learn it again"
        visit.set("teach.seed", 5)
        assert visit.at.button(key="teach.start").label == "Learn at every M"

    @pytest.mark.parametrize(
        ("holds", "n_holding", "icon"),
        [(True, 3, "check_circle"), (True, 1, "contrast"), (True, 0, "contrast"),
         (False, 0, "cancel"), (False, 2, "cancel")],
    )  # fmt: skip
    def test_what_holds_in_some_seeds_is_no_plain_yes(
        self, holds: bool, n_holding: int, icon: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made = result_of(TINY)
        changed = replace(made.trends[0], holds=holds, n_seeds=3, n_holding=n_holding)
        monkeypatch.setattr(cached, "experiment", lambda _: replace(made, trends=(changed,)))
        assert f":material/{icon}:" in markdown(run(with_values(TINY)))

    def test_a_part_that_is_not_there_is_one_sentence(self) -> None:
        visit = Visit("Lab", part="<b>nothing</b>")
        assert len(visit.errors) == 1
        assert visit.value("view.lab.part") == "story"
