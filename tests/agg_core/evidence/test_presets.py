"""Criteria of guidelines: bounds by hand, and what can be told of them."""

import math

import numpy as np
import pytest

from agg_core.evidence.presets import PRESETS, Criterion, judge, own_preset, preset_of, within
from agg_core.evidence.sums import Sums
from tests.faults import refused


def criterion(preset, subject):
    return next(c for c in PRESETS[preset].criteria if c.subject == subject)


@pytest.mark.parametrize(
    ("modelled", "counted", "holds"),
    [
        (590, 500, True),  # within 100 below 700, GEH 3.9
        (385, 500, False),  # 115 off, GEH 5.5
        (610, 500, True),  # 110 off, but GEH 4.7
        (1150, 1000, True),  # 15 %
        (1160, 1000, True),  # 16 %, GEH 4.9
        (1170, 1000, False),  # 17 %, GEH 5.2
        (3100, 2700, True),
        (3400, 3000, True),  # 400 off, GEH 7.1
        (3450, 3000, False),
        (0, 0, True),
    ],
)
def test_counters_by_tag(modelled, counted, holds):
    found = criterion("tag-m3.1", "counters").holds(np.array([modelled]), np.array([counted]))
    assert found.tolist() == [holds]
    assert math.sqrt(2 * 110**2 / 1110) < 5 < math.sqrt(2 * 115**2 / 885)


@pytest.mark.parametrize(
    ("preset", "subject", "modelled", "counted", "holds"),
    [
        ("tag-m3.1", "screenlines", [105.0, 94.9], [100.0, 100.0], [True, False]),
        ("atap", "screenlines", [110.0, 89.0], [100.0, 100.0], [True, False]),
        ("atap", "counters", [120.0, 79.0], [100.0, 100.0], [True, False]),
        ("txdot", "screenlines", [1090.0, 1100.0], [1000.0, 1000.0], [True, False]),
        ("txdot", "counters", [1160.0, 1170.0], [1000.0, 1000.0], [True, False]),
        ("tag-m3.1", "cells", [1.0, 2.0, 3.06], [1.0, 2.0, 3.0], [False]),  # slope 1.03
        ("tag-m3.1", "cells", [1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [True]),
        ("tag-m3.1", "trip ends", [1.0, 2.0, 3.03], [1.0, 2.0, 3.0], [False]),  # 1.015
        ("tag-m3.1", "sectors", [104.0, 106.0], [100.0, 100.0], [True, False]),
    ],
)
def test_bounds_of_guidelines(preset, subject, modelled, counted, holds):
    found = criterion(preset, subject).holds(np.array(modelled), np.array(counted))
    assert found.tolist() == holds


WITHIN = Criterion("screenlines", "within a tenth", within(0.1), 0.5)


def sums(middle, spread, n_worlds=8):
    """Sums that err by ``spread`` about ``middle``, each by other worlds."""
    rng = np.random.default_rng(0)
    errors = rng.standard_normal((n_worlds, len(middle)))
    errors = (errors - errors.mean(axis=0)) / errors.std(axis=0, ddof=1) * spread
    return Sums(np.array(middle, dtype=float), errors)


@pytest.mark.parametrize(
    ("middle", "spread", "answer"),
    [
        ([100.0, 100.0], 1.0, "pass"),
        ([100.0, 500.0], 1.0, "pass"),  # half of them is enough
        ([150.0, 60.0], 1.0, "fail"),
        ([150.0, 60.0], 40.0, "cannot be told"),
        ([100.0, 100.0], 20.0, "cannot be told"),
    ],
)
def test_verdicts(middle, spread, answer):
    found = judge(WITHIN, sums(middle, spread), np.array([100.0, 100.0]))
    assert found.answer == answer
    assert found.n == 2
    assert found.share == np.mean([abs(m - 100) <= 10 for m in middle])
    assert found.met == (found.share >= 0.5)
    if answer != "cannot be told":
        assert (found.chance >= 0.95) == (answer == "pass")


def test_of_many_values_some_are_always_off():
    """Few draws meet a criterion of all values at once, which is no reason to fail it."""
    n = 200
    truth = np.full(n, 100.0)
    every = Criterion("sectors", "all within a fifth", within(0.2))
    found = judge(every, sums(truth + 1.0, 18.0), truth)
    assert found.chance < 0.05
    assert found.answer == "cannot be told"


def test_the_truth_itself_is_seldom_failed():
    """The counted flows are the true ones, so that each criterion is met: no fail is right."""
    every = Criterion("sectors", "all within a twentieth", within(0.05))
    rng, failed = np.random.default_rng(5), 0
    for _ in range(200):
        truth = rng.uniform(50, 150, 30)
        spread = rng.uniform(5, 20, 30)
        errors = rng.normal(0, spread, (4, 30))
        learned = truth - rng.normal(0, spread, 30)
        failed += judge(every, Sums(learned, errors), truth).answer == "fail"
    # One in twenty is promised: of 200, 17 or more are seen once in a hundred times.
    assert failed <= 16


def test_without_worlds_it_cannot_be_told():
    found = judge(WITHIN, Sums(np.array([100.0]), None), np.array([100.0]))
    assert (found.answer, found.chance, found.met) == ("cannot be told", None, True)


def test_nothing_counted_is_refused():
    with refused("nothing-counted"):
        judge(WITHIN, Sums(np.zeros(0), None), np.zeros(0))


def test_presets_by_key_and_of_ones_own():
    assert preset_of("atap").label == "ATAP"
    with refused("unknown-preset", "tag-m3.1"):
        preset_of("webtag")
    own = own_preset(screenlines=0.2, counters_geh=4.0, share=0.9)
    assert own.criteria[0].holds(np.array([119.0]), np.array([100.0])).all()
    assert own.criteria[1].share == 0.9
    for wrong in ({"screenlines": 0}, {"counters_geh": -1}, {"share": 1.1}):
        with refused("value-out-of-range"):
            own_preset(**{"screenlines": 0.2, "counters_geh": 4.0, "share": 0.9, **wrong})


def test_less_than_half_a_person_is_no_difference():
    every = Criterion("sectors", "all within a twentieth", within(0.05))
    tiny, nobody = np.array([1e-9, 0.4, 100.0]), np.array([0.0, 0.0, 100.0])
    assert not judge(every, Sums(tiny, None), nobody).met
    assert judge(every, Sums(tiny, None), nobody, slack=0.5).met
    assert judge(every, Sums(tiny, np.zeros((3, 3))), nobody, slack=0.5).answer == "pass"
    assert judge(every, Sums(tiny, np.zeros((3, 3))), nobody, slack=0.3).answer == "fail"


def test_values_without_an_interval_are_open():
    every = Criterion("lengths", "all within a twentieth", within(0.05))
    known = Sums(np.array([100.0, 150.0]), np.array([[1.0, np.nan], [-1.0, 2.0], [0.0, 0.0]]))
    found = judge(every, known, np.array([100.0, 100.0]))
    assert (found.answer, found.chance) == ("cannot be told", 0.0)
