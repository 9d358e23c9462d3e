"""Measures of modelled against counted volumes, each by arithmetic of its own."""

import math

import numpy as np
import pytest

from agg_core.evidence.measures import (
    SQV_FACTORS,
    coincidence_ratio,
    geh,
    relative_difference,
    sqv,
    xy_fit,
)
from tests.faults import refused


@pytest.mark.parametrize(
    ("modelled", "counted", "value"),
    [
        (1200, 1000, math.sqrt(2 * 200**2 / 2200)),
        (60, 40, 2 * math.sqrt(2)),  # 2 * 400 / 100 = 8
        (5, 0, math.sqrt(10)),
        (0, 5, math.sqrt(10)),
        (0, 0, 0.0),
        (7, 7, 0.0),
    ],
)
def test_geh_is_written_out(modelled, counted, value):
    assert float(geh(modelled, counted)) == pytest.approx(value)
    assert float(geh(counted, modelled)) == pytest.approx(value)


def test_nothing_counted_has_no_geh_and_no_sqv():
    assert np.isnan(geh(10, np.nan))
    assert np.isnan(sqv(10, np.nan))
    assert np.isnan(sqv(10, 0))


def test_geh_by_the_day_is_larger_by_the_root_of_hours():
    assert float(geh(24 * 1200, 24 * 1000) / geh(1200, 1000)) == pytest.approx(math.sqrt(24))


@pytest.mark.parametrize("factor", [1.0, 10.0, 1000.0, 10_000.0])
def test_sqv_is_written_out(factor):
    by_hand = 1 / (1 + math.sqrt((1200 - 1000) ** 2 / (factor * 1000)))
    assert float(sqv(1200, 1000, factor)) == pytest.approx(by_hand)
    assert float(sqv(1000, 1000, factor)) == 1.0
    # Scaled with its unit it is the same figure of other units.
    assert float(sqv(12, 10, factor / 100)) == pytest.approx(by_hand)


def test_factors_grow_with_what_is_counted():
    assert list(SQV_FACTORS.values()) == [1, 10, 100, 1000, 10_000]
    for factor in (0.0, -1.0, math.nan):
        with refused("value-out-of-range"):
            sqv(1, 1, factor)


def test_relative_differences():
    found = relative_difference([11, 9, 0, 3], [10, 10, 0, 0])
    np.testing.assert_allclose(found[:3], [0.1, -0.1, 0.0])
    assert found[3] == math.inf


def test_the_line_of_all_points_by_normal_equations():
    rng = np.random.default_rng(0)
    counted = rng.uniform(0, 100, 12)
    modelled = 3 + 0.9 * counted + rng.normal(0, 5, 12)
    fit = xy_fit(modelled, counted)
    design = np.column_stack([np.ones(12), counted])
    (intercept, slope), (left,), *_ = np.linalg.lstsq(design, modelled, rcond=None)
    assert float(fit.slope) == pytest.approx(slope)
    assert float(fit.intercept) == pytest.approx(intercept)
    total = sum((m - sum(modelled) / 12) ** 2 for m in modelled)
    assert float(fit.r2) == pytest.approx(1 - left / total)
    rmse = math.sqrt(sum((m - c) ** 2 for m, c in zip(modelled, counted, strict=True)) / 12)
    assert float(fit.rmse) == pytest.approx(rmse)
    assert float(fit.percent_rmse) == pytest.approx(100 * rmse / (sum(counted) / 12))
    assert fit.n == 12
    many = xy_fit(np.stack([modelled, counted]), counted)
    assert many.slope.tolist() == pytest.approx([slope, 1.0])
    assert many.r2[1] == pytest.approx(1.0)


def test_equal_counts_have_no_line():
    fit = xy_fit([1.0, 2.0], [3.0, 3.0])
    assert np.isnan(fit.slope)
    assert np.isnan(fit.r2)


def test_two_distributions_coincide_by_shares():
    # Shares .6, .3, .1 and .5, .3, .2: minima .5 + .3 + .1, maxima .6 + .3 + .2.
    assert float(coincidence_ratio([6, 3, 1], [50, 30, 20])) == pytest.approx(0.9 / 1.1)
    assert float(coincidence_ratio([2, 4], [1, 2])) == pytest.approx(1.0)
    assert float(coincidence_ratio([1, 0], [0, 1])) == 0.0
    assert np.isnan(coincidence_ratio([0, 0], [1, 1]))
