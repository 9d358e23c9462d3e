"""Days that somebody names: found to be a type of their own where people move otherwise on them."""

import json
from dataclasses import replace

import numpy as np
import pytest

from agg_core.base.report import Guess
from agg_core.cli.summaries import counts_text
from agg_core.space.settings import MeshSettings
from agg_core.store.codec import load_result, save_result
from agg_core.store.result_files import SEALS
from agg_core.study.counts import CountStudy, count_study_steps
from agg_core.study.day_types import DayType, DayTypes, apart_words
from agg_core.study.lasting import CountSizes, tried_alike
from agg_core.study.result import ESTIMATE, WHOLE_DAY
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
    assert types["strike"].gain > 2 * types["strike"].gain_error > 0
    for name in ("weekend", "match"):
        assert types[name].gain <= types[name].gain_error
        assert not types[name].apart
    assert types["weekday"].gain is None


def test_types_are_tried_on_top_of_those_that_were_taken(found):
    candidates = found[1].candidates
    tried = list(dict.fromkeys(candidates["apart"]))
    assert tried == ["", "weekend", "match", "strike", "weekend, strike", "match, strike"]
    assert candidates.loc[candidates["chosen"], "apart"].tolist() == ["strike"]
    assert (candidates["day_types"] == (candidates["apart"] != "")).all()
    best = candidates.groupby("apart")["score"].max()
    timed = candidates.loc[(candidates["apart"] == "") & candidates["hours"].notna(), "score"].max()
    types = by_name(found[1])
    assert types["strike"].gain == pytest.approx(best["strike"] - timed)
    assert types["match"].gain == pytest.approx(best["match, strike"] - best["strike"])


def test_flows_of_the_type_are_those_of_its_days(found):
    _, study = found
    away = 1 - np.eye(3)
    assert study.days_by_type["strike"] == by_name(study)["strike"].days
    moved = {
        name: float((study.of_days(days).matrix(WHOLE_DAY, ESTIMATE) * away).sum())
        for name, days in study.days_by_type.items()
    }
    assert moved["strike"] < 0.02 * moved["match"]
    assert moved["match"] == pytest.approx(moved["weekday"], rel=0.1)


def test_it_is_told_in_words_and_in_plain_values(found):
    progress, study = found
    told = json.loads(json.dumps(study.summary()))
    assert told["types_apart"] == ["strike"]
    assert told["joined_days"] == {}
    assert [each["n_days"] for each in told["typed_days"]] == [18, 12, 6, 6]
    assert [each["apart"] for each in told["typed_days"]] == [False, False, False, True]
    assert len(told["day_sentences"]) == 1
    assert told["day_sentences"][0] in counts_text(told)
    assert "strike" in progress[-1].message or any("strike" in p.message for p in progress)


def test_it_is_kept_with_the_run(found, tmp_path):
    _, study = found
    save_result(study, tmp_path / "run")
    again = load_result(tmp_path / "run")
    assert again.typed_days == study.typed_days
    assert again.settings == study.settings
    assert again.types_apart == ("strike",)


def test_runs_that_were_saved_before_load_without(tmp_path):
    study = replace(counted.study(), day_types=True)
    save_result(study, tmp_path / "run")
    about = json.loads((tmp_path / "run" / "result.json").read_text())
    del about["typed_days"], about["settings"]["holidays"], about["settings"]["day_labels"]
    for seal in SEALS:  # such runs have none
        del about[seal]
    (tmp_path / "run" / "result.json").write_text(json.dumps(about))
    again = load_result(tmp_path / "run")
    assert again.typed_days is None
    assert again.types_apart == ("weekend",)
    assert again.days_by_type == {}
    assert again.summary()["typed_days"] == []
    assert not again.settings.days.is_asked


def test_what_was_remembered_is_of_the_labels(found):
    _, study = found
    table = city()
    known = json.loads(json.dumps(study.remembered))
    _, again = run(table, SETTINGS, known)
    assert again.remembered.keys() == study.remembered.keys()
    other = replace(SETTINGS, day_labels=SETTINGS.day_labels[1:])
    _, others = run(table, other, known)
    assert not known.keys() & others.remembered.keys()
    assert tried_alike(SETTINGS, replace(SETTINGS, threshold=9.0))
    assert not tried_alike(SETTINGS, other)


def test_without_names_days_are_weekdays_and_weekends():
    _, plain = run(city(), replace(SETTINGS, day_labels=()))
    assert list(by_name(plain)) == ["weekday", "weekend"]
    assert plain.summary()["day_sentences"] == []


def test_too_few_days_are_joined_and_said():
    few = dict(list(LABELS.items())[:2]) | {"2030-01-01": "never"}
    labels = CountLearnSettings(day_labels=few).day_labels
    _, study = run(city(), replace(SETTINGS, day_labels=labels))
    assert study.typed_days.joined == (("never", 0), ("strike", 2))
    assert list(by_name(study)) == ["weekday", "weekend"]
    assert len(study.summary()["day_sentences"]) == 3


def test_within_a_reach_types_are_told_apart_too():
    grid = counted_city_grid()
    table = replace(city(), grid=grid, cells=grid.codes)
    settings = replace(SETTINGS, count_error=None, expansion=None, reach_m=2_000.0)
    _, study = run(table, settings)
    assert study.is_sparse
    assert study.types_apart == ("strike",)
    assert study.transmats.shape[0] == HOURS


def counted_city_grid():
    return MeshSettings(codes=("53394500", "53394501", "53394510"))


def test_counts_that_err_are_measured_with_types_apart():
    table = city()
    rng = np.random.default_rng(1)
    noisy = np.rint(table.counts * (1 + 0.02 * rng.standard_normal(table.counts.shape)))
    settings = replace(SETTINGS, count_error=0.02, expansion=1.0)
    _, study = run(replace(table, counts=noisy), settings)
    assert study.count_error == 0.02
    assert "strike" in study.types_apart


def test_dates_that_are_not_known_refuse_names_of_days():
    table = city()
    guesses = {"dates": Guess("months and kinds of day")}
    stand_in = replace(table, report=CountReport(1, 1, guesses=guesses))
    for settings in (SETTINGS, CountLearnSettings(holidays="JP")):
        with refused("dates-unknown"):
            run(stand_in, settings)
        with refused("dates-unknown"):
            CountSizes.of(stand_in, settings)
    _, study = run(stand_in, replace(SETTINGS, day_labels=()))
    assert study.typed_days is None


def test_names_of_days_are_of_no_use_where_times_are_not_apart():
    for name, value in (("holidays", "JP"), ("day_labels", LABELS)):
        with refused("option-unused"):
            learn_settings(CountLearnSettings, {"time": "one", name: value})
        assert learn_settings(CountLearnSettings, {name: value}).days.is_asked
        assert not CountLearnSettings(time="one", **{name: value}).days.is_asked


def test_settings_hold_labels_by_value_and_come_back():
    settings = CountLearnSettings(holidays="de-bw", day_labels={"2024-05-01": "strike"})
    assert settings.holidays == "DE-BW"
    assert settings.day_labels == (("2024-05-01", "strike"),)
    assert CountLearnSettings.from_dict(json.loads(json.dumps(settings.to_dict()))) == settings
    hash(settings)
    with refused("unknown-country"):
        CountLearnSettings(holidays="XX")


def test_more_types_take_longer():
    table = city()
    named, plain = (CountSizes.of(table, s) for s in (SETTINGS, CountLearnSettings()))
    assert (named.types, plain.types) == (4, 2)
    longer, shorter = (each.lasting(SETTINGS).high_s for each in (named, plain))
    assert longer > shorter


@pytest.mark.parametrize(
    ("apart", "named"),
    [((), 0), (("weekend",), 0), (("strike",), 1), (("holiday", "a", "b"), 3)],
)
def test_which_types_are_apart_in_words(apart, named):
    words = apart_words(apart)
    assert bool(words) == bool(apart)
    assert sum(name in words for name in apart if name != "weekend") == named


def test_a_type_that_was_not_tried_is_said_so():
    types = DayTypes((DayType("weekday", ("2024-05-01",)), DayType("weekend", ())))
    assert not types.are_named
    assert types.sentences == ()
    assert DayTypes.from_dict(json.loads(json.dumps(types.to_dict()))) == types
