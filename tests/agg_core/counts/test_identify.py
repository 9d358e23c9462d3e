"""What counts can tell: the rank of small tables by hand, and the words for it."""

from dataclasses import replace

import numpy as np
import pytest

from agg_core.counts.identify import MOST_NAMED, identifiability
from agg_core.counts.pairs import pairs_of
from tests.agg_core.counts import made


def told_of(before):
    return identifiability(made.pairs(before, before))


def test_rank_and_condition_by_hand():
    # Columns (1, 1, 0) and (0, 1, 1) about their lengths have a cosine of 1/2: the squares of the
    # singular values are 1 + 1/2 and 1 - 1/2.
    told = told_of([[1, 0], [1, 1], [0, 1]])
    assert (told.n_states, told.n_pairs, told.rank) == (2, 3, 2)
    assert told.identified
    assert told.condition == pytest.approx(np.sqrt(3))


def test_small_cells_count_like_large_ones():
    plain, unequal = told_of([[1, 0], [1, 1], [0, 1]]), told_of([[1, 0], [1, 1e9], [0, 1e9]])
    assert unequal.rank == 2
    assert unequal.condition == pytest.approx(plain.condition)


def test_a_sum_of_two_cells_is_no_pattern_of_its_own():
    told = told_of([[1, 2, 3], [4, 1, 5], [2, 2, 4], [7, 1, 8]])
    assert told.rank == 2
    assert not told.identified


def test_a_cell_that_is_always_empty_is_not_identified():
    told = told_of([[1, 2, 0], [4, 1, 0], [2, 2, 0]])
    assert told.rank == 2
    assert not told.identified


def test_counts_of_nobody_tell_nothing():
    told = told_of([[0, 0], [0, 0]])
    assert told.rank == 0
    assert told.condition == np.inf
    assert not told.identified


def test_one_day_of_three_hours_and_224_cells_is_not_identified():
    counts = np.random.default_rng(0).multinomial(50_000, np.full(224, 1 / 224), size=3)
    told = identifiability(pairs_of(made.table(counts)))
    assert (told.n_states, told.n_pairs, told.rank) == (224, 2, 2)
    assert not told.identified
    for words in ("2 pairs of successive counts", "2 independent patterns", "need 224", "prior"):
        assert words in told.sentence


def test_one_pair_is_in_the_singular():
    assert "1 pair of successive counts" in told_of([[1, 2]]).sentence


def test_as_many_unlike_days_as_cells_are_enough_and_one_fewer_is_not():
    before = np.random.default_rng(1).poisson(50, (12, 12))
    assert told_of(before).identified
    assert not told_of(before[:-1]).identified


def test_cells_that_rise_and_fall_together_are_named():
    rng = np.random.default_rng(2)
    before = rng.poisson(500, (40, 5)).astype(float)
    before[:, 3] = 2 * before[:, 1] + rng.normal(0, 1, 40)
    told = told_of(before)
    assert told.identified
    assert told.alike == ((1, 3),)
    assert told.sentence.startswith("The counts can tell the flows apart: 40 pairs")
    assert "1 pair of cells rises and falls together" in told.sentence


def test_cells_that_rise_when_others_fall_are_told_apart():
    before = np.random.default_rng(3).poisson(500, (40, 3)).astype(float)
    before[:, 2] = 1000 - before[:, 0]
    told = told_of(before)
    assert told.alike == ()
    assert told.sentence.endswith("for 3 cells.")


def test_cells_that_stand_still_are_not_named():
    before = np.random.default_rng(4).poisson(500, (40, 3)).astype(float)
    before[:, 1:] = 7
    assert told_of(before).alike == ()


def test_two_pairs_are_too_few_to_call_cells_alike():
    assert told_of([[1, 2], [3, 5]]).alike == ()
    assert told_of([[1, 2], [3, 4], [5, 6]]).alike == ((0, 1),)


def test_no_more_than_some_are_named():
    rise = np.arange(1.0, 31)[:, None] * np.arange(1, 11) + np.eye(30, 10)
    told = told_of(rise)
    assert told.identified
    assert len(told.alike) == MOST_NAMED
    assert f"{MOST_NAMED} or more pairs" in told.sentence


@pytest.mark.parametrize("first", [[[5, 1, 2], [2, 9, 1], [1, 1, 4]], [[5, 1, 2]]])
def test_the_outside_is_no_cell(first):
    pairs = made.pairs(first, first)
    outside = replace(pairs, has_outside=True)
    assert identifiability(outside).rank == identifiability(pairs).rank
    for found, cells in ((identifiability(pairs), 3), (identifiability(outside), 2)):
        assert f" {cells} cells" in found.sentence
