"""Sectors over cells: shares by area, flows between them by matrices, what is split."""

import geopandas as gpd
import numpy as np
import pytest
from shapely.geometry import box

from agg_core.evidence.sectors import ELSEWHERE, merged_cells, sectors_of
from agg_core.evidence.sums import CellFlows
from agg_core.space.areas import AreaGrid
from agg_core.space.build import Grid
from tests.faults import refused

ROWS = Grid.from_bbox(0.0, 0.0, 0.3, 0.3, rows=3, cols=3)


def areas(*boxes):
    names = [f"ward {k}" for k in range(len(boxes))]
    return AreaGrid.of(gpd.GeoDataFrame({"name": names}, geometry=list(boxes), crs="EPSG:4326"))


def all_flows(seed=0, worlds=3, n=9):
    rng = np.random.default_rng(seed)
    matrix, errors = rng.gamma(1, 5, (n, n)), rng.normal(size=(worlds, n, n))
    origin, dest = np.divmod(np.arange(n * n), n)
    return matrix, errors, CellFlows(origin, dest, matrix.ravel(), errors.reshape(worlds, -1), 0.0)


def by_matrices(matrix, shares):
    """Moves go from and to sectors in proportion to the shares, and stays stay in each."""
    stays = np.diag(matrix)
    return shares.T @ (matrix - np.diag(stays)) @ shares + np.diag(shares.T @ stays)


def test_cells_belong_to_areas_by_their_share():
    # The first area has the western column and half of the middle one; the second the rest of it.
    found = sectors_of(areas(box(-1, -1, 0.15, 1), box(0.15, -1, 0.2, 1)), ROWS)
    assert found.names == ("ward 0", "ward 1", ELSEWHERE)
    shares = found.shares.toarray()
    np.testing.assert_allclose(shares[::3], [[1, 0, 0]] * 3, atol=1e-9)
    np.testing.assert_allclose(shares[1::3], [[0.5, 0.5, 0]] * 3, atol=1e-4)
    np.testing.assert_allclose(shares[2::3], [[0, 0, 1]] * 3, atol=1e-9)
    assert found.n_split == 3
    assert found.split.tolist() == [False, True, False] * 3


def test_what_areas_share_belongs_to_the_first_of_them():
    found = sectors_of(areas(box(0, 0, 0.2, 0.3), box(0.1, 0, 0.3, 0.3)), ROWS)
    shares = found.shares.toarray()
    np.testing.assert_allclose(shares[:3], [[1, 0], [1, 0], [0, 1]], atol=1e-6)
    assert found.n_split == 0


@pytest.mark.parametrize("boxes", [
    (box(0, 0, 0.15, 0.3), box(0.15, 0, 0.3, 0.17)),
    (box(0, 0, 0.13, 0.12), box(0.13, 0, 0.3, 0.12), box(0, 0.12, 0.3, 0.3)),
])  # fmt: skip
def test_flows_between_sectors_are_sums_over_pairs(boxes):
    found = sectors_of(areas(*boxes), ROWS)
    matrix, errors, flows = all_flows()
    shares, n = found.shares.toarray(), len(found.names)
    sums = found.flows(flows)
    np.testing.assert_allclose(sums.estimate.reshape(n, n), by_matrices(matrix, shares))
    for world in range(3):
        np.testing.assert_allclose(
            sums.errors[world].reshape(n, n), by_matrices(errors[world], shares), atol=1e-10
        )
    assert sums.estimate.sum() == pytest.approx(matrix.sum())
    out, came = found.trip_ends(flows)
    between = by_matrices(matrix, shares)
    np.testing.assert_allclose(out.estimate, between.sum(axis=1) - np.diag(between))
    np.testing.assert_allclose(came.estimate, between.sum(axis=0) - np.diag(between))


def test_moves_with_an_end_in_a_split_cell_are_told():
    found = sectors_of(areas(box(0, 0, 0.15, 0.3)), ROWS)
    matrix, _, flows = all_flows()
    moved = matrix - np.diag(np.diag(matrix))
    split = np.arange(9) % 3 == 1
    of_split = moved[split[:, None] | split[None, :]].sum()
    assert found.share_split(flows) == pytest.approx(of_split / moved.sum())
    nobody = CellFlows(flows.origin, flows.dest, np.zeros(81), None, 0.0)
    assert found.share_split(nobody) == 0.0


def test_areas_of_another_place_are_refused():
    with refused("areas-elsewhere"):
        sectors_of(areas(box(10, 10, 11, 11)), ROWS)


def test_merged_cells_are_sectors():
    found = merged_cells([("north", [6, 7, 8]), ("corner", [0])], 9)
    assert found.names == ("north", "corner", ELSEWHERE)
    matrix, _, flows = all_flows()
    sums = found.flows(flows).estimate.reshape(3, 3)
    assert sums[0, 1] == pytest.approx(matrix[[6, 7, 8], 0].sum())
    assert sums[1, 1] == pytest.approx(matrix[0, 0])
    assert merged_cells([("all", range(9))], 9).names == ("all",)
    with refused("unknown-cell", "9"):
        merged_cells([("north", [9])], 9)
    with refused("cell-in-two-sectors", "north", "corner"):
        merged_cells([("north", [1]), ("corner", [1])], 9)
