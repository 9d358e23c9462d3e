"""Errors of whole flow tables."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from agg_core.tables.ensemble import GRAIN, EnsembleMaker, columns_of, thinned

HAPPENED, USUAL = "happened", "usual"

STEPS = np.array([2, 3])


def made_of(worlds, **limit):
    """An ensemble of worlds of two times of day and two cells."""
    maker = EnsembleMaker(STEPS, 2, (HAPPENED, USUAL), **limit)
    for world in worlds:
        moved, happened, usual = (np.array(each, dtype=float) for each in world)
        maker.add(moved, {HAPPENED: happened, USUAL: usual})
    return maker.made()


WORLDS = [
    ([[[5, 1], [2, 6]], [[4, 0], [1, 7]]], [[[5, 2], [2, 5]], [[4, 0], [1, 7]]],
     [[[4, 1], [2, 6]], [[4, 0], [1, 9]]]),
    ([[[3, 3], [2, 6]], [[4, 0], [3, 5]]], [[[3, 3], [1, 7]], [[4, 0], [1, 7]]],
     [[[3, 3], [2, 6]], [[4, 0], [3, 5]]]),
]  # fmt: skip


def test_errors_of_worlds_by_time_and_of_the_day():
    found = made_of(WORLDS)
    assert (found.draws, found.n_states, found.of_day_only) == (2, 2, False)
    np.testing.assert_array_equal(found.errors(HAPPENED, 0), [[[0, -1], [0, 1]], [[0, 0], [1, -1]]])
    np.testing.assert_array_equal(found.errors(HAPPENED, 1), [[[0, 0]] * 2, [[0, 0], [2, -2]]])
    np.testing.assert_array_equal(found.errors(HAPPENED), [[[0, -1], [0, 1]], [[0, 0], [3, -3]]])
    np.testing.assert_array_equal(found.errors(USUAL), [[[1, 0], [0, -2]], [[0, 0]] * 2])
    # A row where either estimate errs: 2 and 2 of the first world, 4 of the second.
    assert len(found.table) == 8
    assert {name: kind.type for name, kind in found.table.dtypes.items()} == columns_of(
        (HAPPENED, USUAL)
    )


def test_where_errors_are_too_many_those_of_the_day_are_kept_and_then_none():
    all_kept = made_of(WORLDS)
    of_day = made_of(WORLDS, most=len(all_kept.table) - 1)
    assert of_day.of_day_only
    assert of_day.tells()
    assert not of_day.tells(0)
    for of in (HAPPENED, USUAL):
        np.testing.assert_array_equal(of_day.errors(of), all_kept.errors(of))
    none = made_of(WORLDS, most=1)
    assert (none.draws, len(none.table), none.megabytes) == (0, 0, 0.0)
    assert not none.tells()


@pytest.mark.parametrize("n", [0, 1])
def test_one_world_is_no_ensemble(n):
    assert made_of(WORLDS[:n]) is None


def test_thin_errors_are_none_or_a_grain_and_sums_stay():
    errors = np.full((2, 5), 0.3)
    # Sums grow by 0.3: 0.3, 0.6, ... 3.0, of which the whole part, rounded, is told.
    expected = [[0, 1, 0, 0, 1], [0, 0, 0, 1, 0]]
    np.testing.assert_allclose(thinned(errors, np.ones((2, 5))), expected)
    large = np.array([[4.25, -2.5, 1.0]])
    np.testing.assert_array_equal(thinned(large, np.ones((1, 3))), large)


def test_sums_of_thinned_errors_are_right_by_time_row_column_and_all():
    rng = np.random.default_rng(2)
    errors = rng.normal(0, 0.3, (4, 30, 30)) * (rng.random((4, 30, 30)) < 0.5) - 0.05
    thin = thinned(errors, np.ones(errors.shape))
    assert np.count_nonzero(thin) < 0.4 * errors.size
    # An error of a grain at most wherever neighbours are summed.
    for axes in (2, (1, 2), (0, 1, 2)):
        assert np.abs(thin.sum(axis=axes) - errors.sum(axis=axes)).max() <= 1.0
    # Columns are not neighbours: their sums are off by chance, in sum by nothing.
    off = thin.sum(axis=1) - errors.sum(axis=1)
    assert np.sqrt((off**2).mean()) < np.sqrt(30 / 4)
    assert abs(off.mean()) < 0.2


def test_no_error_is_below_a_grain_and_large_ones_are_as_they_were():
    rng = np.random.default_rng(3)
    worlds = [rng.gamma(0.2, 0.2, (3, 2, 2, 2)) for _ in range(20)]
    found = made_of(worlds)
    kept = found.table
    grain = GRAIN * STEPS[kept["slot"].to_numpy()]
    for of, column in ((HAPPENED, 1), (USUAL, 2)):
        errors = np.stack([world[0] - world[column] for world in worlds])
        at = tuple(kept[name] for name in ("draw", "slot", "origin", "dest"))
        large = np.abs(errors[at]) >= grain
        np.testing.assert_allclose(kept[of][large], errors[at][large], rtol=1e-6)
        rest = kept[of][~large] / grain[~large]
        np.testing.assert_allclose(rest, np.rint(rest), atol=1e-5)


def test_errors_of_sparse_tables_are_those_of_whole_ones():
    rng = np.random.default_rng(0)
    allowed = rng.random((6, 6)) < 0.4
    like = sparse.csr_array(allowed.astype(float))
    tables = [EnsembleMaker(STEPS, 6, (USUAL,), like=kind) for kind in (None, like)]
    for _ in range(3):
        moved, usual = rng.poisson(0.3, (2, 2, 6, 6)) * allowed
        usual = usual + rng.random((2, 6, 6)) * GRAIN * allowed
        tables[0].add(moved.astype(float), {USUAL: usual})
        tables[1].add(moved[:, allowed].astype(float), {USUAL: usual[:, allowed]})
    whole, few = (maker.made() for maker in tables)
    pd.testing.assert_frame_equal(few.table, whole.table)
    for slot in (None, 0, 1):
        errors = whole.errors(USUAL, slot)
        np.testing.assert_array_equal(few.errors(USUAL, slot, like), errors[:, allowed])
        assert (errors[:, ~allowed] == 0).all()
