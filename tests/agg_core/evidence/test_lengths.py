"""Lengths of moves: bins, mean, spread and shares, by hand."""

import numpy as np
import pandas as pd
import pytest
from pyproj import Geod

from agg_core.evidence.lengths import bins_with_people, length_bins, length_sums, straight_km
from agg_core.evidence.sums import CellFlows
from agg_core.space.build import Grid
from tests.faults import refused

KM = np.array([0.0, 2.0, 5.0, 12.0])
FLOWS = CellFlows(
    np.array([0, 0, 0, 1]), np.array([0, 1, 2, 2]), np.array([70.0, 10.0, 15.0, 5.0]),
    np.array([[1.0, 2.0, -3.0, 1.0], [0.0, -4.0, 5.0, 0.0], [2.0, 1.0, 1.0, -2.0]]), 0.0,
)  # fmt: skip


def test_figures_of_lengths_are_those_by_hand():
    found = length_sums(FLOWS, KM, np.array([0.0, 5.0, 10.0, 15.0]))
    assert found.by_bin.estimate.tolist() == [10, 15, 5]
    mean = (10 * 2 + 15 * 5 + 5 * 12) / 30
    spread = ((10 * 4 + 15 * 25 + 5 * 144) / 30 - mean**2) ** 0.5
    figures = found.figures()
    assert figures.estimate.tolist() == pytest.approx([mean, spread, 0.7])
    # The first world has 12, 12 and 6 people who move, and 71 who stay.
    first = (12 * 2 + 12 * 5 + 6 * 12) / 30
    assert figures.estimate[0] + figures.errors[0, 0] == pytest.approx(first)
    assert figures.estimate[2] + figures.errors[0, 2] == pytest.approx(71 / 101)


def test_two_distributions_of_lengths_are_compared_bin_by_bin():
    edges = np.array([0.0, 5.0, 10.0, 15.0])
    found = length_sums(FLOWS, KM, edges)
    counted = CellFlows(FLOWS.origin, FLOWS.dest, np.array([50.0, 20.0, 10.0, 10.0]), None, 0.0)
    beside = found.figures(length_sums(counted, KM, edges)).estimate
    # Shares 1/3, 1/2, 1/6 and 1/2, 1/4, 1/4.
    assert beside[3] == pytest.approx((1 / 3 + 1 / 4 + 1 / 6) / (1 / 2 + 1 / 2 + 1 / 4))


def test_nobody_has_no_length():
    nobody = CellFlows(FLOWS.origin, FLOWS.dest, np.zeros(4), None, 0.0)
    assert np.isnan(length_sums(nobody, KM, np.array([0.0, 20.0])).figures().estimate).all()


def test_distances_must_be_known():
    for wrong in (np.nan, -1.0, np.inf):
        with refused("distance-missing"):
            length_sums(FLOWS, np.array([0.0, wrong, 1.0, 1.0]), np.array([0.0, 20.0]))


@pytest.mark.parametrize(
    ("longest", "width", "n"), [(20.0, 1.0, 20), (31.0, 2.0, 16), (0.7, 0.05, 14), (430, 25.0, 18)]
)
def test_bins_are_round(longest, width, n):
    edges = length_bins(longest)
    np.testing.assert_allclose(np.diff(edges), width)
    assert len(edges) == n + 1
    assert edges[-1] >= longest
    assert length_bins(0.0).tolist() == [0, 1]


def test_straight_lengths_are_those_on_the_ellipsoid():
    grid = Grid.from_bbox(139.0, 35.0, 139.5, 35.4, rows=2, cols=3)
    origin, dest = np.divmod(np.arange(36), 6)
    found = straight_km(grid, CellFlows(origin, dest, np.ones(36), None, 0.0))
    a, b = grid.centroids[origin], grid.centroids[dest]
    *_, metres = Geod(ellps="WGS84").inv(*a.T, *b.T)
    np.testing.assert_allclose(found, metres / 1000, rtol=1e-4, atol=1e-9)


def test_worlds_that_are_too_far_off_for_a_spread_leave_it_open():
    # In the second world 20 people are missing of those who go far: its variance is below 0.
    far = np.array([0.0, 1.0, 5.0, 5.0])
    errors = np.array([[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, -20.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    flows = CellFlows(FLOWS.origin, FLOWS.dest, np.array([0.0, 90.0, 5.0, 5.0]), errors, 0.0)
    found = length_sums(flows, far, np.array([0.0, 20.0])).figures()
    low, high = found.interval()
    assert found.estimate[1] == pytest.approx((0.9 * 1 + 0.1 * 25 - 1.4**2) ** 0.5)
    assert np.isnan([low[1], high[1]]).all()
    assert np.isfinite([low[0], high[0]]).all()
    equal = CellFlows(FLOWS.origin, FLOWS.dest, np.ones(4), None, 0.0)
    alike = length_sums(equal, np.full(4, 0.7), np.array([0.0, 20.0])).figures()
    assert alike.estimate[1] == 0.0


def test_bins_beyond_the_last_with_people_are_not_shown():
    rows = pd.DataFrame({"count": [5.0, 2000.0, 0.0, 2.5, 0.1, 0.0], "reference": np.nan})
    assert len(bins_with_people(rows)) == 4
    assert len(bins_with_people(rows.assign(reference=[0, 0, 0, 0, 0, 9.0]))) == 6
    assert len(bins_with_people(rows * 0)) == 6
