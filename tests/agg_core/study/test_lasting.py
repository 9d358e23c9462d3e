"""How long learning takes, told before it begins."""

from dataclasses import replace
from itertools import pairwise, product
from time import process_time

import numpy as np
import pytest

from agg_core.counts.choosing import DENSE, DRAWN
from agg_core.counts.pairs import pairs_of
from agg_core.learn.learners import choose_learner
from agg_core.learn.table import LEARNERS
from agg_core.made.counts import simulate_city
from agg_core.model.aggregates import aggregate
from agg_core.model.hmm import HMM
from agg_core.study import lasting as told
from agg_core.study.lasting import (
    CountSizes,
    Lasting,
    PeopleSizes,
    Rates,
    Stage,
    course,
    lasting,
    tried_alike,
)
from agg_core.study.settings import KINDS, CountLearnSettings, LearnSettings, WindowSettings
from agg_core.tables.sequences import to_sequences
from benchmarks.counts.cases import commuters
from tests.agg_core import tiny

PEOPLE = PeopleSizes(
    sequences=(4_000, 6_000), days=3, length=4, states=50, occupied=12.0, fixes=90_000
)
COUNTS = CountSizes(
    pairs=160, states=20, slots=24, days=7, people=4e5, parts=3, rest=0.67, types=1, times=True,
    errs=False, given=False, learners=(DRAWN, DENSE), drawn=True,
)  # fmt: skip
SETTINGS = [
    LearnSettings(
        inference=name, observed=observed, group_size=group, noise=noise, strength=strength,
        replicates=worlds, calibrate=calibrate,
    )
    for name, observed, group, noise, strength, worlds, calibrate in product(
        LEARNERS, KINDS, (1, 20, 400), ("auto", "given"), ("auto", "given"), (0, 4), (0, 2)
    )
    if KINDS[observed] in LEARNERS[name].observes
    and (LEARNERS[name].single if group == 1 else LEARNERS[name].groups)
    and (LEARNERS[name].calibrated or not calibrate)
]  # fmt: skip
COUNT_SETTINGS = [
    CountLearnSettings(time=time, strength=strength, count_error=error, replicates=worlds)
    for time, strength, error, worlds in product(
        ("auto", "one", "by_time"), ("auto", "given"), (None, 0.0, 0.05), (0, 12)
    )
]


# ---------------------------------------------------------------- rates and ranges


RATES = Rates({"a": {"slots": 2.0, "tables": 0.5}, "b": {"calls": 10.0}}, {"some": (0.5, 3.0)})
STAGES = [
    Stage("learning/estimate", "a", {"slots": 100.0, "tables": 20.0}),
    Stage("choosing/estimate", "b", {"calls": 9.0}),
]


@pytest.mark.parametrize(
    ("remembered", "threads", "low", "high"),
    # 100 x 2 + 20 x 0.5 = 210 and 9 x 10 = 90 probes of 10 ms: 3 s, a half to three times that.
    [
        (False, 1, 1.5, 9.0),
        # What is remembered takes nothing: 2.1 s.
        (True, 1, 1.05, 6.3),
        # Half of the work is shared by four.
        (False, 4, 1.5 * (0.5 + 0.5 / 4), 9.0),
    ],
)
def test_a_range_by_hand(remembered, threads, low, high):
    found = lasting(STAGES, "some", remembered=remembered, threads=threads, rates=RATES, probe=0.01)
    assert found.low_s == pytest.approx(low)
    assert found.high_s == pytest.approx(high)


@pytest.mark.parametrize(
    ("now", "alike"),
    [
        ({}, True),
        ({"replicates": 20, "threshold": 1.0, "iterations": 10}, True),
        ({"seed": 8}, False),
        ({"strength": "auto"}, False),
        ({"group_size": 6}, False),
    ],
)
def test_when_trials_of_another_study_tell_all(now, alike):
    before = tiny.settings()
    assert tried_alike(before, tiny.settings(**now)) == alike
    assert not tried_alike(before, replace(tiny.settings(), window=WindowSettings(60, 4)))
    assert not tried_alike(before, CountLearnSettings())
    counts = CountLearnSettings(replicates=3)
    assert tried_alike(counts, CountLearnSettings())
    assert not tried_alike(counts, CountLearnSettings(time="one"))


def test_what_is_told_of_a_range():
    assert Lasting(18.3, 66.0).words == "20 s to 1 min"
    assert Lasting(18.3, 66.0).told_s == [18.0, 66.0]


# ---------------------------------------------------------------- sizes


def test_sizes_of_people_by_hand():
    # Sixty people for 24 hours, in windows of three that begin at midnight in UTC.
    found = PeopleSizes.of(tiny.people(), tiny.GRID.make(), tiny.HOURLY, 5)
    states = tiny.day_states()
    shares = np.bincount(states.ravel(), minlength=9) / states.size
    assert found.sequences == (60 * 8,)
    assert (found.days, found.length, found.states, found.fixes) == (1, 3, 9, 60 * 24)
    # A cell is empty if none of five is in it.
    assert found.occupied == pytest.approx(9 - sum((1 - share) ** 5 for share in shares))


def test_times_of_day_have_sizes_of_their_own():
    window = WindowSettings(60, 3, times=("02:00", "08:00"))
    found = PeopleSizes.of(tiny.people(), tiny.GRID.make(), window, 5)
    assert found.sequences == (60, 60)


@pytest.mark.parametrize("most", [200, 700])
def test_sizes_of_some_people_stand_for_all(monkeypatch, most):
    monkeypatch.setattr(told, "MOST_FIXES", most)
    found = PeopleSizes.of(tiny.people(), tiny.GRID.make(), tiny.HOURLY, 5)
    assert found.sequences == (60 * 8,)
    assert found.fixes == 60 * 24
    assert found.occupied == pytest.approx(3.6, abs=0.5)


@pytest.mark.parametrize("group", [1, 2, 5, 20, 60])
def test_the_learner_that_is_foretold_is_the_one_that_is_chosen(group):
    sequences = to_sequences(tiny.people(), tiny.GRID.make(), "60min", 3)
    groups = aggregate(sequences.states, group, 9, 0, within=sequences.window)
    start = HMM.categorical(np.full(9, 1 / 9), np.full((9, 9), 1 / 9), np.eye(9))
    chosen = choose_learner("auto", groups, start, fixed=("emission",)).learner
    sizes = PeopleSizes.of(tiny.people(), tiny.GRID.make(), tiny.HOURLY, group)
    assert sizes.learner(LearnSettings(group_size=group)) == chosen


def test_sizes_of_counts_by_hand():
    # Three days by the hour make 71 pairs; the city commutes, so that times of day are tried.
    table = commuters(simulate_city(2, 3, days=3, people=3_000, random_state=0)).table
    found = CountSizes.of(table, CountLearnSettings())
    assert found == CountSizes(
        pairs=71, states=6, slots=24, days=3, people=71 * 3_000, parts=3,
        rest=pytest.approx(2 / 3, abs=0.01), types=1, times=True, errs=False, given=False,
        learners=(DENSE,), drawn=False,
    )  # fmt: skip
    assert CountSizes.seen(pairs_of(table), CountLearnSettings()) == found
    # Multiples of ten are of so many fewer who were counted.
    tens = CountSizes.of(replace(table, counts=10 * table.counts), CountLearnSettings())
    assert tens == found


@pytest.mark.parametrize(
    ("error", "wrong", "errs", "given"),
    [(None, 0, False, False), (0.05, 0, True, True), (None, 1, True, False), (0.0, 1, False, True)],
)
def test_counts_that_may_err(error, wrong, errs, given):
    table = commuters(simulate_city(2, 3, days=1, people=3_000, random_state=0)).table
    counts = table.counts.copy()
    counts[3, 2] += wrong
    found = CountSizes.of(replace(table, counts=counts), CountLearnSettings(count_error=error))
    assert (found.errs, found.given) == (errs, given)


# ---------------------------------------------------------------- every branch has a price


def priced(stages, kind):
    """Probes of all stages, of which each has its rates and takes some time."""
    rates = told.shipped_rates()
    low, high = rates.spread[kind]
    assert 0 < low < 1 < high
    probes = 0.0
    for stage in stages:
        assert stage.amounts.keys() == rates.probes[stage.rate].keys()
        assert all(np.isfinite(amount) and amount >= 0 for amount in stage.amounts.values())
        assert all(rate >= 0 for rate in rates.probes[stage.rate].values())
        assert rates.probes_of(stage) > 0 or not any(stage.amounts.values())
        probes += rates.probes_of(stage)
    assert np.isfinite(probes)
    assert probes > 0
    return probes


def of_people(learn, sizes=PEOPLE):
    return priced(sizes.stages(learn), sizes.kind(learn))


def of_counts(learn, sizes=COUNTS):
    return priced(sizes.stages(learn), sizes.kind)


@pytest.mark.parametrize("learn", SETTINGS, ids=lambda learn: f"{learn.inference}-{learn.observed}")
def test_more_people_cells_and_worlds_never_take_less(learn):
    base = of_people(learn)
    # Of many more, fewer parts are kept aside in turn, and fewer M-steps made.
    assert of_people(learn, replace(PEOPLE, sequences=(4_100, 6_200))) > base
    assert of_people(learn, replace(PEOPLE, states=200)) > base
    assert of_people(replace(learn, replicates=learn.replicates + 2)) > base
    assert of_people(replace(learn, iterations=2 * learn.iterations)) >= base
    if learn.pulled and learn.strength == "auto":
        assert of_people(replace(learn, strength="given")) < base
    if learn.noise == "auto" and learn.group_size == 20:
        # What is given is held against single people alone.
        assert of_people(replace(learn, noise="given")) < base


@pytest.mark.parametrize("learn", COUNT_SETTINGS, ids=str)
@pytest.mark.parametrize("errs", [False, True])
@pytest.mark.parametrize("learners", [(DRAWN,), (DENSE,), (DRAWN, DENSE)])
def test_more_moments_cells_and_worlds_of_counts_never_take_less(learn, errs, learners):
    sizes = replace(
        COUNTS, errs=errs, given=learn.count_error is not None, learners=learners,
        times=learn.time != "one",
    )  # fmt: skip
    base = of_counts(learn, sizes)
    assert of_counts(learn, replace(sizes, pairs=320, people=8e5)) > base
    assert of_counts(learn, replace(sizes, states=60)) > base
    assert of_counts(replace(learn, replicates=learn.replicates + 4), sizes) > base
    if learn.strength == "auto":
        assert of_counts(replace(learn, strength="given"), sizes) < base
    if sizes.times:
        assert of_counts(learn, replace(sizes, types=2)) > base


def test_windows_of_two_steps_have_no_noise_to_learn():
    names = {stage.name for stage in replace(PEOPLE, length=2).stages(LearnSettings())}
    assert not any(name.startswith("noise") for name in names)


def test_noise_that_is_given_is_not_tested_where_cells_are_many():
    learn = LearnSettings(noise="given")
    for states, tested in ((500, True), (501, False)):
        names = {stage.name for stage in replace(PEOPLE, states=states).stages(learn)}
        assert ("noise/single" in names) == tested


# ---------------------------------------------------------------- shares of progress


def test_shares_of_work_by_hand():
    stages = [
        Stage("preparing", "b", {"calls": 1_000.0}),
        Stage("noise/single", "a", {"slots": 25.0}),
        Stage("learning/estimate", "b", {"calls": 2.0}, part=0),
        Stage("learning/estimate", "a", {"tables": 60.0}, part=0),
        Stage("learning/estimate", "b", {"calls": 10.0}, part=1),
    ]
    # 50, then 20 + 30, then 100 probes; preparing comes before the first step.
    assert course(stages, RATES) == {
        ("noise/single", 0): (0.0, pytest.approx(0.25)),
        ("learning/estimate", 0): (pytest.approx(0.25), pytest.approx(0.5)),
        ("learning/estimate", 1): (pytest.approx(0.5), pytest.approx(1.0)),
    }


@pytest.mark.parametrize("learn", SETTINGS[:: len(SETTINGS) // 40])
def test_shares_cover_all_work_of_people_in_its_order(learn):
    shares = list(course(PEOPLE.stages(learn)).values())
    assert shares[0][0] == 0
    assert shares[-1][1] == pytest.approx(1)
    assert all(a[1] == b[0] for a, b in pairwise(shares))


def test_it_is_told_at_once():
    began = process_time()
    sizes = PeopleSizes.of(tiny.people(), tiny.GRID.make(), tiny.HOURLY, 5)
    found = sizes.lasting(tiny.LEARN)
    assert process_time() - began < 0.5
    assert 0 < found.low_s < found.high_s
