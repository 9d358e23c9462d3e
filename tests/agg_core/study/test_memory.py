"""Memory that is told before learning from counts: measured peaks, and what it grows with."""

from dataclasses import replace

import pytest

from agg_core.counts.choosing import DENSE, DRAWN
from agg_core.study.lasting import CountSizes
from agg_core.study.memory import BASE_BYTES, count_megabytes
from agg_core.study.settings import CountLearnSettings

SIZES = CountSizes(
    pairs=167, states=100, slots=24, days=7, people=3.34e6, parts=3, rest=0.7, types=1, times=False,
    errs=False, given=True, learners=(DENSE,), drawn=False,
)  # fmt: skip
DRAWN_SIZES = {"states": 49, "people": 33_400.0, "learners": (DRAWN, DENSE), "drawn": True}

PEAKS = [
    ({"states": 25, "people": 8.35e5}, 4, 329),
    ({"states": 49, "people": 1.67e6}, 4, 445),
    ({"states": 49, "people": 1.67e6}, 12, 609),
    ({"states": 49, "pairs": 335, "people": 3.35e6}, 4, 551),
    ({"states": 49, "pairs": 671, "people": 6.71e6}, 4, 801),
    ({}, 0, 443),
    ({}, 2, 653),
    ({}, 4, 859),
    ({"states": 49, "people": 1.67e6, "errs": True}, 2, 398),
    (DRAWN_SIZES, 4, 615),
    ({"pairs": 95, "people": 1.9e6, "moves": 6.84}, 0, 305),
]
"""Sizes, simulated worlds, and the peak in MB that a study of these was seen to take."""


def told(worlds=4, **sizes):
    return count_megabytes(replace(SIZES, **sizes), CountLearnSettings(replicates=worlds))


@pytest.mark.parametrize(("sizes", "worlds", "peak"), PEAKS)
def test_it_is_near_what_was_measured(sizes, worlds, peak):
    assert peak / 1.3 < told(worlds, **sizes) < 1.5 * peak


@pytest.mark.parametrize(
    "more", [{"states": 200}, {"pairs": 400}, {"slots": 96}, {"types": 3}, {"errs": True}]
)
def test_more_takes_more(more):
    assert told(**more) > told()


def test_worlds_take_more_and_a_reach_less():
    assert told(20) > told(4) > told(0)
    assert told(0, moves=7.0) < told(0)
    assert told(0, states=1, pairs=1) == pytest.approx(BASE_BYTES / 1e6, rel=0.01)


def test_what_is_not_kept_takes_nothing():
    """Flows of single pairs beyond so many are not kept, however many pairs there are."""
    assert told(pairs=20_000) / told(pairs=2_000) < 1.3
