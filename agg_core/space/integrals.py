"""Sums over cells: how places spread within them, and where noise takes places."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from scipy import sparse

__all__ = ["area_noise", "interval_noise", "moments"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Shapes = npt.NDArray[np.object_]

COARSEST, FINEST = 24, 32
"""Squares along the side of a small cell: so many where noise is wide, and at most."""

SQUARES_PER_SIGMA = 2
REACH_SIGMAS = 5.2
"""Beyond this less than a millionth of the noise is left in a direction."""

MOST_SQUARES = 12_000_000
MOST_VISITS = 1_000_000_000
"""Squares that the noise of all cells reaches: some seconds of work. Beyond, squares are larger."""

COARSER = 1.25


def interval_noise(n: int, sigma: float) -> FloatArray:
    """Chance that a uniform place in unit interval i, moved by N(0, sigma), lands in j: (n, n)."""
    if sigma < 1e-9 or n == 1:
        return np.eye(n)
    lag = np.abs(np.arange(n)[None, :] - np.arange(n)[:, None])
    chance = _by_lag(n, sigma)[lag]
    return np.asarray(chance / chance.sum(axis=1, keepdims=True))


def _by_lag(n: int, sigma: float) -> FloatArray:
    """Chance that the place lands 0, 1, …, n - 1 intervals to one side, (n,)."""
    from scipy.special import ndtr  # noqa: PLC0415

    edges = np.arange(-n, n + 1) / sigma
    # Second antiderivative of the normal density: E[max(edge - noise, 0)] in units of sigma.
    ramp = edges * ndtr(edges) + np.exp(-(edges**2) / 2) / np.sqrt(2 * np.pi)
    return np.asarray(np.clip(sigma * np.diff(ramp, n=2), 0.0, None)[n - 1 :])


def moments(shapes: Shapes) -> tuple[FloatArray, FloatArray]:
    """Mean (d, 2) and covariance (d, 2, 2) of a uniform place in each area, by Green's theorem."""
    import shapely  # noqa: PLC0415

    origin = shapely.get_coordinates(shapely.centroid(shapes))
    parts, cell_of_part = shapely.get_parts(shapes, return_index=True)
    rings, part_of_ring = shapely.get_rings(shapely.orient_polygons(parts), return_index=True)
    places, ring = shapely.get_coordinates(rings, return_index=True)
    cell = cell_of_part[part_of_ring[ring]]
    x, y = (places - origin[cell]).T
    side = ring[:-1] == ring[1:]
    x0, x1, y0, y1, cell = x[:-1][side], x[1:][side], y[:-1][side], y[1:][side], cell[:-1][side]
    cross = x0 * y1 - x1 * y0

    def total(values: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(cell, values * cross, minlength=len(shapes)), dtype=float)

    area = total(np.ones_like(cross)) / 2
    mean = np.stack([total(x0 + x1), total(y0 + y1)], axis=1) / 6 / area[:, None]
    xx, yy = total(x0**2 + x0 * x1 + x1**2) / 12, total(y0**2 + y0 * y1 + y1**2) / 12
    xy = total(x0 * y1 + 2 * x0 * y0 + 2 * x1 * y1 + x1 * y0) / 24
    second = np.stack([np.stack([xx, xy], axis=1), np.stack([xy, yy], axis=1)], axis=1)
    covariance = second / area[:, None, None] - mean[:, :, None] * mean[:, None, :]
    return mean + origin, covariance


def area_noise(shapes: Shapes, sigma: float) -> sparse.csr_array:
    """Chance that a uniform place in area i, moved by N(0, sigma) each way, lands in j: (d, d).

    Rows sum to 1: what lands in no area is spread over the areas in proportion. Areas are taken
    as sets of small squares, between which the noise is exact. Noise finer than two squares is
    taken as a share of the noise of two squares, since what crosses a border grows in proportion
    to fine noise. Of areas that overlap the first holds the place.
    """
    import shapely  # noqa: PLC0415
    from scipy import sparse  # noqa: PLC0415
    from scipy.ndimage import find_objects  # noqa: PLC0415

    from agg_core.base.moves import normalised_rows  # noqa: PLC0415

    d = len(shapes)
    if sigma <= 0 or d == 1:
        return sparse.csr_array(sparse.eye_array(d))
    side = float(np.sqrt(np.quantile(shapely.area(shapes), 0.1, method="lower")))
    west, south, east, north = shapely.total_bounds(shapes)
    size = max(min(sigma / SQUARES_PER_SIGMA, side / COARSEST), side / FINEST)
    whole, reached = (east - west) * (north - south), (side + 2 * REACH_SIGMAS * sigma) ** 2
    while whole > MOST_SQUARES * size**2 or d * min(reached, whole) > MOST_VISITS * size**2:
        size *= COARSER
    taken = max(sigma, SQUARES_PER_SIGMA * size)
    squares = _squares(shapes, size)
    by_lag = _by_lag(max(squares.shape) + 1, taken / size)
    reach = int(np.ceil(REACH_SIGMAS * taken / size))
    boxes = find_objects(squares + 1)
    rows = [_spread(squares, box, cell, by_lag, reach) for cell, box in enumerate(boxes)]
    indptr = np.cumsum([0, *(len(cells) for cells, _ in rows)])
    cells, shares = (np.concatenate(part) for part in zip(*rows, strict=True))
    # Squares are whole: an area reached by noise is as large as it is, not as its squares are.
    size_of = shapely.area(shapes) / np.bincount(squares.ravel() + 1, minlength=d + 1)[1:]
    chance = normalised_rows(sparse.csr_array((shares * size_of[cells], cells, indptr), (d, d)))
    stays = sparse.eye_array(d, format="csr")
    return sparse.csr_array((1 - sigma / taken) * stays + sigma / taken * chance)


def _squares(shapes: Shapes, size: float) -> IntArray:
    """Area that holds the middle of each square, -1 for none: rows from the south, (rows, cols)."""
    import shapely  # noqa: PLC0415

    west, south, east, north = shapely.total_bounds(shapes)
    n_cols, n_rows = (int(np.ceil(span / size)) + 1 for span in (east - west, north - south))
    holder: IntArray = np.full((n_rows, n_cols), -1, dtype=np.int64)
    corner, last = np.array([west, south]), np.array([n_cols, n_rows])
    inner = shapely.get_coordinates(shapely.point_on_surface(shapes))
    shapely.prepare(shapes)
    for cell, shape in enumerate(shapes):
        low, high = np.array(shape.bounds).reshape(2, 2)
        first = np.floor((low - corner) / size).astype(int)
        stop = np.minimum(np.ceil((high - corner) / size).astype(int) + 1, last)
        x, y = (corner[k] + (np.arange(first[k], stop[k]) + 0.5) * size for k in (0, 1))
        part = holder[first[1] : stop[1], first[0] : stop[0]]
        part[shapely.contains_xy(shape, *np.meshgrid(x, y)) & (part < 0)] = cell
        if not (part == cell).any():
            # Too small for the squares: it gets the one it lies in.
            col, row = np.floor((inner[cell] - corner) / size).astype(int)
            holder[row, col] = cell
    return holder


def _spread(
    squares: IntArray, box: tuple[slice, ...], cell: int, by_lag: FloatArray, reach: int
) -> tuple[IntArray, FloatArray]:
    """The cells (n,) that noise brings places of a cell in a box into, and their shares (n,)."""
    near = tuple(
        slice(max(side.start - reach, 0), min(side.stop + reach, n))
        for side, n in zip(box, squares.shape, strict=True)
    )
    across, along = (
        by_lag[np.abs(np.arange(n.start, n.stop)[:, None] - np.arange(b.start, b.stop)[None, :])]
        for n, b in zip(near, box, strict=True)
    )
    reached = across @ (squares[box] == cell).astype(float) @ along.T
    cells, number = np.unique(squares[near], return_inverse=True)
    shares = np.bincount(number.ravel(), reached.ravel(), len(cells))
    some = (cells >= 0) & (shares > 0)
    return cells[some], shares[some].astype(np.float64)
