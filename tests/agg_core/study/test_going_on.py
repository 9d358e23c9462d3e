"""Studies that were stopped at any step come to what they would have come to, to the bit."""

from itertools import islice

import numpy as np
import pandas as pd
import pytest

from agg_core.base import checkpoints as kept_by
from agg_core.base.checkpoints import use_checkpoints
from agg_core.made.counts import simulate_city
from agg_core.study import counts as count_study
from agg_core.study import people as people_study
from agg_core.study.counts import count_study_steps
from agg_core.study.people import study_steps
from agg_core.study.settings import CountLearnSettings
from agg_core.tables.ensemble import Ensemble
from tests.agg_core import tiny
from tests.agg_core.counts import made


@pytest.fixture(autouse=True)
def every_iteration(monkeypatch):
    monkeypatch.setattr(kept_by, "SHARE", 0.0)


def of_people(**learn):
    chosen = tiny.settings(**{"strength": "auto", "replicates": 3, "iterations": 5, **learn})
    return lambda: study_steps(tiny.people(), chosen)


def of_counts(people, **learn):
    table = made.city_table(simulate_city(3, 3, days=4, people=people, random_state=1))
    chosen = CountLearnSettings(**{"replicates": 3, **learn})
    return lambda: count_study_steps(table, chosen)


def assert_same_tables(one, other):
    if one is None:
        assert other is None
    elif isinstance(one, Ensemble):
        pd.testing.assert_frame_equal(one.table, other.table, check_exact=True)
    else:
        pd.testing.assert_frame_equal(one, other, check_exact=True)


def assert_same(one, other):
    """Parameters, flows with their intervals, errors of worlds and what trials found."""
    for name, array in one.parameters().items():
        np.testing.assert_array_equal(array, other.parameters()[name])
    for time in one.times_of_day:
        assert_same_tables(one.values(time), other.values(time))
    assert_same_tables(one.ensemble, other.ensemble)
    assert one.remembered == other.remembered


CASES = {
    "people, all chosen": of_people(),
    "people, sampled": of_people(inference="sampling", strength="given"),
    "people, least squares": of_people(inference="least_squares", replicates=0),
    "people, Gaussian pairs": of_people(inference="gaussian_pairs", replicates=0),
    "people, calibrated": of_people(inference="cfb", calibrate=1, replicates=0),
    "counts, few people": of_counts(40),
    "counts, many people": of_counts(900),
    "counts that err": of_counts(900, count_error=0.03, time="one"),
    "counts within a reach": of_counts(900, reach_m=1_500.0),
}


@pytest.mark.parametrize("case", CASES)
def test_a_study_goes_on(tmp_path, case):
    steps = CASES[case]
    *told, whole = steps()
    rng = np.random.default_rng(0)
    folder = tmp_path / "checkpoint"
    # It is stopped three times, each time farther on.
    for stop in np.sort(rng.integers(1, len(told), 3)):
        with use_checkpoints(folder):
            list(islice(steps(), int(stop)))
    with use_checkpoints(folder):
        *_, found = steps()
    assert_same(found, whole)


def test_what_was_learned_is_not_learned_again(tmp_path, monkeypatch):
    steps = of_people(replicates=0, strength="given")
    with use_checkpoints(tmp_path / "checkpoint"):
        *_, whole = steps()
        monkeypatch.setattr(people_study, "AggregateHMM", None)
        *_, found = steps()
    assert_same(found, whole)


def test_worlds_of_counts_that_were_learned_from_are_not_again(tmp_path, monkeypatch):
    steps = of_counts(900, strength="given", prior=20.0, time="one")
    with use_checkpoints(tmp_path / "checkpoint"):
        *_, whole = steps()
        monkeypatch.setattr("agg_core.counts.certainty.simulated_world", None)
        *_, found = steps()
    assert_same(found, whole)
    assert count_study.replicates is not None
