"""Figures of the samples and runs saved in formats of today stay what they were."""

import json
import shutil
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest

from agg_core.store.codec import load_result
from tests.agg_core import counted
from tests.golden import figures

LEAST = 0.5
"""People per step from which a flow is listed."""

TOLERANCE = 1e-7
"""Relative: sums in another order differ in the last digits on another processor."""


@cache
def golden():
    return json.loads(figures.FIGURES.read_text(encoding="utf-8"))


def assert_equal(found, expected, where=""):
    if isinstance(expected, dict):
        assert set(found) == set(expected), where
        for name, value in expected.items():
            assert_equal(found[name], value, f"{where}/{name}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for number, value in enumerate(expected):
            assert_equal(found[number], value, f"{where}/{number}")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=TOLERANCE, abs=1e-12), where
    else:
        assert found == expected, where


@pytest.mark.parametrize("learner", figures.LEARNERS)
def test_the_sample_study(learner):
    assert_equal(figures.of_study(figures.sample_study(learner)), golden()[f"study {learner}"])


@pytest.mark.parametrize("crowd", figures.CROWDS)
def test_a_sample_of_counts(crowd):
    assert_equal(figures.of_counts(figures.sample_counts(crowd)), golden()[f"counts of {crowd}"])


def test_a_saved_study_opens():
    folder = figures.RUNS / "study"
    result, anew = load_result(folder), figures.tiny_study()
    about = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    assert result.settings == anew.settings
    assert result.dropped == about["dropped"] == anew.dropped
    kept = pd.read_parquet(folder / "flows.parquet")
    for time in ("08:00", "20:00"):
        for source in ("estimate", "single", "counted"):
            mine = kept.loc[(kept["anchor"] == time) & (kept["source"] == source)]
            expected = mine.loc[mine["count"] >= LEAST].set_index(["origin", "dest"])["count"]
            found = result.table(time, source).set_index(["origin", "dest"])["count"]
            found = found.loc[found >= LEAST]
            pd.testing.assert_series_equal(
                found.sort_index(), expected.sort_index(), check_exact=False, rtol=1e-12
            )


def test_a_study_saved_under_names_of_earlier_versions_opens(tmp_path):
    """The run of today with the name that least squares had: all else is as it was saved."""
    folder = tmp_path / "study"
    shutil.copytree(figures.RUNS / "study", folder)
    about = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    about["settings"]["learn"] |= {"inference": "moments", "start": "moments"}
    for found in about["anchors"]:
        found["estimate"]["learner"] = "moments"
    (folder / "result.json").write_text(json.dumps(about), encoding="utf-8")
    found, saved = load_result(folder), load_result(figures.RUNS / "study")
    named = replace(saved.settings.learn, inference="least_squares", start="least_squares")
    assert found.settings == replace(saved.settings, learn=named)
    assert found.learner == "least_squares"
    for mine, other in zip(found.by_time, saved.by_time, strict=True):
        np.testing.assert_array_equal(mine.estimate.transmat, other.estimate.transmat)


def test_a_saved_study_of_counts_opens():
    study = load_result(figures.RUNS / "counts")
    expected = counted.study()
    np.testing.assert_array_equal(study.transmats, expected.transmats)
    pd.testing.assert_frame_equal(study.flows, expected.flows)
    pd.testing.assert_frame_equal(study.held_out, expected.held_out)
    assert study.settings == expected.settings
