"""Geohashes: cells of the world as short texts, each letter of which halves it five times.

The longitude is halved first, then both in turn.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from agg_core.io.texts import as_text, is_missing

__all__ = ["geohash_to_degrees", "looks_like_geohash"]

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]

LETTERS = "0123456789bcdefghjkmnpqrstuvwxyz"
SHORTEST, LONGEST = 4, 12
_GEOHASH = rf"^[{LETTERS}]{{{SHORTEST},{LONGEST}}}$"


def looks_like_geohash(column: pa.ChunkedArray) -> bool:
    """Whether nearly all texts of a column are geohashes, and not all of them numbers."""
    text = as_text(column)
    filled = pc.utf8_lower(text.filter(pc.not_equal(text, "")))
    if not len(filled):
        return False
    hits = pc.sum(pc.match_substring_regex(filled, _GEOHASH)).as_py() or 0
    letters = pc.any(pc.match_substring_regex(filled, "[a-z]")).as_py()
    return bool(hits >= 0.9 * len(filled) and letters)


def geohash_to_degrees(column: pa.ChunkedArray) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Longitude and latitude (n,) of the middles of geohashes, and which rows have none.

    NaN where a text is no geohash.
    """
    text = pc.utf8_lower(as_text(column))
    missing = np.asarray(is_missing(text), dtype=bool)
    codes = text.dictionary_encode().combine_chunks()
    if isinstance(codes, pa.ChunkedArray):
        codes = codes.chunk(0)
    middles = np.array([_middle(each) for each in codes.dictionary.to_pylist()]).reshape(-1, 2)
    lon, lat = middles[codes.indices.to_numpy()].T
    return lon, lat, missing


def _middle(geohash: str) -> tuple[float, float]:
    """Longitude and latitude of the middle; bits halve the two in turn, longitude first."""
    if not 1 <= len(geohash) <= LONGEST or set(geohash) - set(LETTERS):
        return float("nan"), float("nan")
    low, size = [-180.0, -90.0], [360.0, 180.0]
    bit = 0
    for letter in geohash:
        number = LETTERS.index(letter)
        for shift in range(4, -1, -1):
            axis = bit % 2
            size[axis] /= 2
            if number >> shift & 1:
                low[axis] += size[axis]
            bit += 1
    return low[0] + size[0] / 2, low[1] + size[1] / 2
