"""Columns of degrees: read, and checked for the mistakes that people make with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from agg_core.errors import InputError
from agg_core.readers.report import Guess, printable

__all__ = ["Degrees", "as_degrees", "check_place_columns", "place_causes"]

_NUMBER = r"^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$"
_COMMA_NUMBER = r"^[+-]?\d+,\d+$"
_MISSING = pa.array(["", "nan", "null", "none", "\\n"])
_WEB_MERCATOR_M = 20_037_509
_SAMPLE = 5000

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Degrees:
    """Degrees (n,), NaN where missing or unreadable; ``missing`` (n,) tells which."""

    degrees: FloatArray
    missing: BoolArray
    guesses: Mapping[str, Guess] = field(default_factory=dict)


def as_degrees(column: pa.ChunkedArray, what: str) -> Degrees:
    """Numbers of a column of text or numbers, (n,); a decimal comma is understood.

    Raises
    ------
    InputError
        If the column holds no number at all.
    """
    guesses: dict[str, Guess] = {}
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        text = pc.fill_null(pc.utf8_trim_whitespace(column), "")
        missing = _mask(pc.is_in(pc.utf8_lower(text), _MISSING))
        if _count(text.slice(0, _SAMPLE), _COMMA_NUMBER) > _count(text.slice(0, _SAMPLE), _NUMBER):
            text = pc.replace_substring(text, ",", ".")
            guesses["decimal mark"] = Guess("comma")
        numbers = _text_to_float(text)
        if not missing.all() and np.isnan(numbers).all():
            shown = text.filter(pa.array(~missing))[0].as_py()
            raise InputError(
                f"The {what} column holds {printable(shown)!r}, which is no number; "
                "give decimal degrees, or choose another column."
            )
    elif pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        numbers = np.asarray(pc.fill_null(column.cast(pa.float64()), np.nan).to_numpy())
        missing = np.isnan(numbers)
    else:
        raise InputError(f"The {what} column holds {kind}; give decimal degrees.")
    if missing.all():
        raise InputError(f"The {what} column is empty; choose another column.")
    return Degrees(np.where(np.isfinite(numbers), numbers, np.nan), missing, guesses)


def check_place_columns(lon: FloatArray, lat: FloatArray) -> None:
    """Refuse axes that are swapped or places that are not degrees, when every row says so.

    Raises
    ------
    InputError
        With the likely mistake and its remedy.
    """
    read = np.isfinite(lon) & np.isfinite(lat)
    lon, lat = lon[read], lat[read]
    if len(lon) == 0:
        return
    if (np.abs(lat) > 90).all() and (np.abs(lat) <= 180).all() and (np.abs(lon) <= 90).all():
        raise InputError(
            f"Longitude and latitude look swapped (every latitude, such as {lat[0]:g}, is beyond "
            "90 degrees); name the two columns the other way round.",
            "--column lon=NAME --column lat=NAME",
        )
    size = np.maximum(np.abs(lon), np.abs(lat))
    if np.median(size) <= 1000:
        return
    if size.max() <= _WEB_MERCATOR_M:
        raise InputError(
            f"The places, such as {lon[0]:.1f}, {lat[0]:.1f}, are metres of a map projection "
            "(perhaps EPSG:3857), not degrees; convert them to longitude and latitude (EPSG:4326)."
        )
    raise InputError(
        f"The places, such as {lon[0]:.0f}, {lat[0]:.0f}, are no degrees; if they are degrees "
        "times ten million, divide them first."
    )


def place_causes(lon: Degrees, lat: Degrees) -> dict[str, BoolArray]:
    """Masks (n,) of the rows whose place cannot be used, by cause."""
    missing = lon.missing | lat.missing
    unread = np.isnan(lon.degrees) | np.isnan(lat.degrees)
    return {
        "missing position": missing,
        "unreadable position": unread & ~missing,
        "position out of range": (np.abs(lat.degrees) > 90) | (np.abs(lon.degrees) > 180),
        "position at 0, 0": (lon.degrees == 0) & (lat.degrees == 0),
    }


def _text_to_float(text: pa.ChunkedArray) -> FloatArray:
    try:
        numbers = text.cast(pa.float64())
    except pa.ArrowInvalid:
        numeric = pc.match_substring_regex(text, _NUMBER)
        numbers = pc.if_else(numeric, text, None).cast(pa.float64())
    return np.asarray(pc.fill_null(numbers, np.nan).to_numpy())


def _count(text: pa.ChunkedArray, pattern: str) -> int:
    return int(pc.sum(pc.match_substring_regex(text, pattern)).as_py() or 0)


def _mask(values: pa.ChunkedArray) -> BoolArray:
    return np.asarray(pc.fill_null(values, False).to_numpy(), dtype=bool)
