"""Days that somebody names: found to be a type of their own where people move otherwise on them."""

import json
from dataclasses import replace

import numpy as np
import pytest

from agg_core.base.report import Guess
from agg_core.cli.summaries import counts_text
from agg_core.store.codec import load_result, save_result
from agg_core.study.counts import CountStudy, count_study_steps
from agg_core.study.day_types import DayType, DayTypes, apart_words
from agg_core.study.lasting import CountSizes, tried_alike
from agg_core.study.settings import CountLearnSettings, learn_settings
from agg_core.tables.count_report import CountReport
from tests.agg_core import counted
from tests.agg_core.counts import made
from tests.faults import refused

STAY = np.eye(3)
MOVE = np.array([[0.5, 0.4, 0.1], [0.1, 0.5, 0.4], [0.4, 0.1, 0.5]])
DAYS, HOURS, PEOPLE = 42, 3, 2000
MONDAY = "2024-04-01"
DATES = [str(np.datetime64(MONDAY) + day) for day in range(DAYS)]
STRIKE = (1, 9, 17, 22, 31, 39)
"""Weekdays on which nobody moves."""
MATCH = (2, 8, 15, 24, 30, 37)
"""Weekdays that are like others."""
LABELS = {DATES[day]: "strike" for day in STRIKE} | {DATES[day]: "match" for day in MATCH}
SETTINGS = CountLearnSettings(
    strength="given", count_error=0.0, expansion=1.0, replicates=0, day_labels=LABELS
)


def city():
    """Three cells, six weeks: people move alike on all days but those of the strike."""
    rng = np.random.default_rng(0)
    counts = np.empty((DAYS * HOURS, 3))
    for day in range(DAYS):
        rows = STAY if day in STRIKE else MOVE
        there = rng.multinomial(PEOPLE, rng.dirichlet(np.ones(3)))
        for hour in range(HOURS):
            counts[day * HOURS + hour] = there
            there = rng.multinomial(there, rows).sum(axis=0)
    return made.table(counts, steps=HOURS, start=MONDAY, runs=np.repeat(np.arange(DAYS), HOURS))


def run(table, settings=SETTINGS, known=None):
    *progress, study = count_study_steps(table, settings, known)
    assert isinstance(study, CountStudy)
    return progress, study


@pytest.fixture(scope="module")
def found():
    return run(city())


def by_name(study):
    return {each.name: each for each in study.typed_days.types}


def test_a_type_on_which_people_move_otherwise_is_told_apart_and_one_like_others_is_not(found):
    _, study = found
    assert study.types_apart == ("strike",)
    assert study.day_types
    types = by_name(study)
    assert list(types) == ["weekday", "weekend", "match", "strike"]
    assert [len(each.days) for each in types.values()] == [18, 12, 6, 6]
    assert types["strike"].days == tuple(DATES[day] for day in STRIKE)
    assert types["strike"].gain > 10 * types["strike"].gain_error > 0
    for name in ("weekend", "match"):
        assert types[name].gain <= types[name].gain_error
        assert not types[name].apart
    assert types["weekday"].gain is None
