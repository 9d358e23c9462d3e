"""Areas whose rings cross themselves, mended in bounded time."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["FLAT", "TANGLED", "mended", "paths_of", "segments_of"]

Shapes = npt.NDArray[np.object_]

MOST_CHECKED = 20_000
"""Points of one area, and of all that cross themselves together; more are thinned out evenly.

Far more than are drawn, and few enough to look for crossings in a fraction of a second.
"""

LEAST_ROUND_AN_AREA = 100

MOST_CROSSINGS = 5_000
"""Crossings that are mended: the work grows by them, up to the square of the points."""

CROSSINGS_AT_ONCE = 100

FLAT = "without size"
TANGLED = "crossing themselves too often"


def mended(parts: Shapes, *, thin: bool = True) -> tuple[Shapes, Counter[str]]:
    """Parts of which none crosses itself, None for what could not be mended, and how many.

    Areas of very many points are thinned out if they cross themselves, or, to ``thin``, anyway.
    """
    import shapely  # noqa: PLC0415

    whole, left_out, crossings = parts.copy(), Counter[str](), 0
    n_points = shapely.get_num_coordinates(parts)
    many = thin & (n_points > MOST_CHECKED) & (shapely.get_dimensions(parts) == 2)
    for i in np.flatnonzero(many):
        whole[i] = _every(-(-int(n_points[i]) // MOST_CHECKED), parts[i])
    broken = np.flatnonzero(~shapely.is_valid(whole))
    step = -(-int(shapely.get_num_coordinates(whole[broken]).sum()) // MOST_CHECKED)
    for i in broken:
        few, whole[i] = _every(step, whole[i]), None
        found = _crossings(few, MOST_CROSSINGS - crossings)
        if crossings + found >= MOST_CROSSINGS:
            left_out[TANGLED] += 1
            continue
        crossings += found
        simple = shapely.make_valid(few, method="structure", keep_collapsed=False)
        if simple.is_empty:
            left_out[FLAT] += 1
        else:
            whole[i] = simple
    return whole, +left_out


def _every(step: int, part: Any) -> Any:
    """An area with every step-th point, more of a short border; a line becomes an empty area."""
    import shapely  # noqa: PLC0415

    if part.geom_type != "Polygon":
        return shapely.Polygon()
    outer, *holes = [shapely.get_coordinates(ring)[:-1] for ring in shapely.get_rings(part)]
    few = [hole[::step] for hole in holes]
    outer_step = min(step, max(len(outer) // LEAST_ROUND_AN_AREA, 1))
    return shapely.Polygon(outer[::outer_step], [hole for hole in few if len(hole) >= 3])


def _crossings(shape: Any, most: int) -> int:
    """Pairs of segments that meet elsewhere than one after the other, counted up to `most`."""
    import shapely  # noqa: PLC0415

    segments = segments_of(paths_of(np.array([shape], dtype=object)))
    tree, pairs = shapely.STRtree(segments), 0
    for start in range(0, len(segments), CROSSINGS_AT_ONCE):
        some = segments[start : start + CROSSINGS_AT_ONCE]
        # Every segment meets itself and the two beside it.
        pairs += max(tree.query(some, predicate="intersects").shape[1] - 3 * len(some), 0)
        if pairs >= 2 * most:
            return most
    return pairs // 2


def paths_of(parts: Shapes) -> Shapes:
    """Rings of areas, and lines."""
    import shapely  # noqa: PLC0415

    parts = shapely.get_parts(parts)
    areas = shapely.get_dimensions(parts) == 2
    return np.concatenate([shapely.get_rings(parts[areas]), parts[~areas]])


def segments_of(paths: Shapes) -> Shapes:
    """Straight pieces of paths, in order."""
    import shapely  # noqa: PLC0415

    places, owner = shapely.get_coordinates(paths, return_index=True)
    joined = owner[:-1] == owner[1:]
    ends = np.stack([places[:-1][joined], places[1:][joined]], axis=1)
    segments: Shapes = shapely.linestrings(ends)
    return segments
