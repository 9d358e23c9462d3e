"""From a table to flows in one call, against the long way."""

import io

import numpy as np
import pandas as pd
import pytest

from agg_core.io.counts import read_counts
from agg_core.study.counts import CountStudy, count_study_steps
from agg_core.study.front import learn_flows, sweep_flows
from agg_core.study.people import BEYOND_REACH, StudyResult, study_steps
from agg_core.study.settings import CountLearnSettings
from agg_core.study.suggest import suggest_grid, suggest_window
from tests.agg_core import tiny
from tests.faults import refused

DEFAULT = {"group_size": 5, "iterations": 3, "threshold": 2.0, "seed": 7}
QUICK = {**DEFAULT, "noise": "given", "strength": "given", "replicates": 0}
OF_COUNTS = {"replicates": 0, "time": "one", "strength": "given", "count_error": 0.0}


def counts():
    rng = np.random.default_rng(3)
    hours = pd.date_range("2024-05-01", periods=72, freq="h", tz="UTC")
    present = rng.multinomial(100, [0.5, 0.3, 0.2], len(hours))
    return pd.DataFrame(
        {"time": hours.repeat(3), "cell": ["a", "b", "c"] * len(hours), "count": present.ravel()}
    )


def test_people_are_learned_from_as_by_the_long_way():
    frame = tiny.frame(tiny.day_states())
    found = learn_flows(frame, grid=tiny.GRID, step_minutes=60, length=3, times=(), **DEFAULT)
    settings = tiny.settings(noise="auto", strength="auto", iterations=3, replicates=4)
    *_, expected = study_steps(tiny.people(), settings)
    assert isinstance(found, StudyResult)
    assert found.settings == settings
    time = expected.busiest
    np.testing.assert_array_equal(found.matrix(time, "estimate"), expected.matrix(time, "estimate"))


def test_cells_steps_and_times_of_day_left_out_suit_the_data():
    found = learn_flows(tiny.frame(tiny.day_states()), rows=2, cols=3, **QUICK)
    people = tiny.people()
    assert found.settings.grid == suggest_grid(people, 2, 3)
    assert found.settings.window == suggest_window(people)


def test_a_reach_is_stated_in_metres():
    frame = tiny.frame(tiny.day_states())
    options = {"grid": tiny.GRID, "step_minutes": 60, "length": 2, "times": (), **QUICK}
    found = learn_flows(frame, reach_m=21_000.0, **options)
    assert found.is_sparse
    assert found.settings.learn.reach_m == 21_000.0
    assert 0 < found.beyond_reach < found.summary()["dropped"][BEYOND_REACH] + 1
    assert not learn_flows(frame, **options).is_sparse


def test_columns_of_other_names_are_named():
    frame = tiny.frame(tiny.day_states()).rename(columns={"lon": "c1", "lat": "c2"})
    found = learn_flows(
        frame, columns={"lon": "c1", "lat": "c2"}, grid=tiny.GRID, step_minutes=60, times=(),
        **QUICK,
    )  # fmt: skip
    assert found.n_individuals == tiny.N_PEOPLE


def test_counts_are_learned_from_as_by_the_long_way():
    found = learn_flows(counts(), replicates=0, time="one", seed=4)
    settings = CountLearnSettings(replicates=0, time="one", seed=4)
    *_, expected = count_study_steps(read_counts(counts()), settings)
    assert isinstance(found, CountStudy)
    assert found.settings == settings
    pd.testing.assert_frame_equal(found.flows, expected.flows)


def test_an_open_file_is_learned_from_like_its_table():
    text = counts().to_csv(index=False).encode()
    found = learn_flows(io.BytesIO(text), **OF_COUNTS)
    expected = learn_flows(text, **OF_COUNTS)
    pd.testing.assert_frame_equal(found.flows, expected.flows)


@pytest.mark.parametrize("of_people", [True, False])
def test_a_result_like_it_spares_its_trials(of_people):
    table = tiny.frame(tiny.day_states()) if of_people else counts()
    options = {"replicates": 0} | ({"iterations": 3} if of_people else {"time": "one"})
    once = learn_flows(table, **options)
    again = learn_flows(table, like=once, **options)
    assert once.remembered
    assert again.remembered == once.remembered
    pd.testing.assert_frame_equal(again.rows(again.busiest), once.rows(once.busiest))


@pytest.mark.parametrize(
    ("of_people", "options", "code", "told"),
    [
        (True, {"grop_size": 5}, "unknown-option", "grop_size"),
        (True, {"count_error": 0.1}, "unknown-option", "count_error"),
        (True, {"group_size": 0}, "value-out-of-range", "Group size"),
        (True, {"inference": "cfb", "prior": 5.0}, "option-unused", "no use of prior"),
        (True, {"grid": tiny.GRID, "rows": 3}, "options-conflict", "rows"),
        (False, {"group_size": 5}, "unknown-option", "group_size"),
        (False, {"grid": tiny.GRID}, "option-unused", "grid"),
        (False, {"prior": 5.0}, "option-unused", "no use of prior"),
    ],
)
def test_what_cannot_be_honoured_is_refused(of_people, options, code, told):
    table = tiny.frame(tiny.day_states()) if of_people else counts()
    with refused(code, told):
        learn_flows(table, **options)


OF_TINY = {"grid": tiny.GRID, "step_minutes": 60, "length": 3, "times": ()}


def test_people_at_several_values_are_as_at_each_alone():
    frame = tiny.frame(tiny.day_states())
    others = {name: value for name, value in QUICK.items() if name != "group_size"}
    # At M = 1 nothing is pulled, so that a strength is of use at the other value alone.
    found = sweep_flows(frame, "group_size", [1, 5], **OF_TINY, **others)
    alone = learn_flows(frame, **OF_TINY, **QUICK)
    assert [row.value for row in found.rows] == [1, 5]
    assert found.rows[1].movers == alone.summary()["movers"]
    assert found.rows[1].cpc == alone.vs_single.cpc
    assert found.sweep.each[1] == alone.settings


def test_counts_at_several_values_are_as_at_each_alone():
    found = sweep_flows(counts(), "prior", (1, 20), **OF_COUNTS)
    for row in found.rows:
        alone = learn_flows(counts(), prior=row.value, **OF_COUNTS).summary()
        assert row.movers == alone["movers"]
        assert row.held_out_mae == alone["held_out"]["learned"]["mae"]


@pytest.mark.parametrize(
    ("name", "values", "options", "code"),
    [
        ("group_size", [2, 5], {"group_size": 3}, "options-conflict"),
        ("group_size", ["a", "b"], {}, "not-whole-numbers"),
        ("group_size", [], {}, "wrong-number-of-values"),
        ("group_size", [2, 61], {}, "group-too-large"),
        ("rows", [2, 3], {}, "unknown-option"),
        ("prior", [2, 3], {}, "option-unused"),
        ("seed", [2, 3], {"prior": 3.0}, "option-unused"),
        ("h3", [4, 5], {}, "unknown-option"),
        ("seed", [2, 3], {"like": None}, "unknown-option"),
    ],
)
def test_what_cannot_be_varied_is_refused(name, values, options, code):
    with refused(code):
        sweep_flows(tiny.frame(tiny.day_states()), name, values, **OF_TINY, **options)
