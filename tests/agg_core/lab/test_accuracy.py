import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from agg_core.lab.accuracy import AccuracyProgress, AccuracyReport, accuracy_steps, error_by_groups
from agg_core.lab.experiments import LabProgress, LabResult, LabSettings
from agg_core.lab.trends import Trend
from tests.faults import refused

TINY = LabSettings(
    experiment="fig3", n_states=(3,), group_sizes=(1, 4), n_individuals=(40,), lengths=(3,),
    n_seeds=2, iterations=3,
)  # fmt: skip
TINY_FIG7 = replace(
    TINY, experiment="fig7", group_sizes=(4,), learners=("cfb", "least_squares", "prox"), n_seeds=1
)


def by_groups():
    return error_by_groups((2, 5), (20, 80), n_seeds=2)


@pytest.fixture(scope="module")
def steps():
    return list(accuracy_steps([TINY, TINY_FIG7], by_groups))


def hand_made(ends):
    """A result of one run per seed that ends at the given values after 2 s and 4 s."""
    rows = [
        {
            "n_states": 3, "group_size": 1, "n_individuals": 40, "length": 3, "learner": "cfb",
            "seed": seed, "iteration": iteration, "wall_s": 2.0 * (seed + 1) * iteration,
            "delta_nll": end if iteration else 9.0, "free_energy": 0.0,
        }
        for seed, end in enumerate(ends)
        for iteration in (0, 1)
    ]  # fmt: skip
    trend = Trend("It is so.", True, len(ends), 1, "Holds on average.")
    settings = replace(TINY, n_seeds=len(ends))
    return LabResult(settings, pd.DataFrame(rows), (trend,), 7.0, ("Something was left out.",))


def strict_json(report):
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(json.dumps(report.to_dict()), parse_constant=refuse)


def test_experiments_run_in_turn_and_the_report_comes_last(steps):
    *progress, report = steps
    assert isinstance(report, AccuracyReport)
    assert all(isinstance(step, AccuracyProgress) for step in progress)
    assert list(dict.fromkeys(step.part for step in progress)) == ["fig3", "fig7", "least squares"]
    assert progress[-1].progress == LabProgress(0, 1, "error by number of groups")
    assert list(report.results) == ["fig3", "fig7"]
    assert [error.group_size for error in report.by_groups] == [2, 5]


def test_least_squares_may_be_left_out():
    report = list(accuracy_steps([TINY], None))[-1]
    assert report.by_groups == ()
    assert "least squares" not in report.to_text()


def test_the_dictionary_has_settings_figures_and_trends():
    report = strict_json(AccuracyReport({"fig3": hand_made([0.1, 0.3])}, by_groups()))
    found = report["experiments"]["fig3"]
    assert LabSettings.from_dict(found["settings"]) == TINY
    assert found["final"][0]["delta_nll"] == pytest.approx(0.2)
    assert found["final"][0]["learner"] == "cfb"
    assert found["trends"] == [
        {
            "claim": "It is so.", "holds": True, "n_seeds": 2, "n_holding": 1,
            "sentence": "Holds on average.", "ours": False,
        }
    ]  # fmt: skip
    assert found["notes"] == ["Something was left out."]
    assert report["least_squares"][1]["n_groups"] == [20, 80]


@pytest.mark.parametrize("ends", [[0.1], [0.1, np.inf]])
def test_what_is_no_number_is_null(ends):
    report = strict_json(AccuracyReport({"fig3": hand_made(ends)}, ()))
    (row,) = report["experiments"]["fig3"]["final"]
    assert row["sd"] is None
    assert (row["delta_nll"] is None) == (len(ends) > 1)


def test_the_text_is_a_table_with_verdicts():
    text = AccuracyReport({"fig3": hand_made([0.1, 0.3])}, by_groups()).to_text()
    lines = text.splitlines()
    assert lines[1].startswith("2 seeds, 3 iterations, 7 s; ΔNLL at the end")
    assert lines[2].split() == ["d", "M", "N", "T", "learner", "delta_nll", "sd", "wall_s"]
    assert lines[3].split() == ["3", "1", "40", "3", "CFB", "0.2000", "0.1414", "3.0000"]
    assert lines[4] == "- It is so. Holds on average."
    assert lines[5] == "Something was left out."
    assert "M = 5: " in lines[-1]
    assert "slope" in lines[-1]


def test_learners_are_told_by_their_names():
    settings = replace(TINY_FIG7, learners=("sampling", "cavity_calibrated"), iterations=1)
    *_, report = accuracy_steps([settings], None)
    text = report.to_text()
    assert "MCMC over individual assignments" in text
    assert "Cavity CFB, calibrated" in text
    rows = report.to_dict()["experiments"]["fig7"]["final"]
    assert {row["learner"] for row in rows} == {"sampling", "cavity_calibrated"}


def test_least_squares_errs_less_with_more_groups():
    (error,) = error_by_groups((10,), (100, 400, 1600), n_seeds=4)
    assert error.n_groups == (100, 400, 1600)
    assert error.slope == pytest.approx(-0.5, abs=0.2)
    # Two points of the three: the slope is that of a straight line in logarithms.
    ends = np.log(error.errors[0] / error.errors[-1]) / np.log(16)
    assert error.slope == pytest.approx(-ends, abs=0.02)
    assert 0 < error.errors[-1] < error.errors[0] < 2


def test_a_slope_needs_two_points():
    with refused("too-few-groups"):
        error_by_groups((10,), (100,))
