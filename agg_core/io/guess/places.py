"""Columns that say where: degrees in any writing, map metres, geometries; and their mistakes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from agg_core.base.errors import InputError
from agg_core.base.report import Guess, printable
from agg_core.io.geometry import dms_to_degrees, geometry_to_lonlat, looks_like_dms, pair_to_columns
from agg_core.io.guess.geohash import geohash_to_degrees, looks_like_geohash
from agg_core.io.guess.units import (
    MINUTES,
    SEMICIRCLES,
    TIMES_1E7,
    Hints,
    check_axes,
    projected,
    utm_zone,
)
from agg_core.io.nearest import nearest_place
from agg_core.io.texts import (
    NUMBER,
    as_mask,
    as_text,
    is_missing,
    is_text,
    plain,
    to_float,
    trimmed,
)
from agg_core.space.degrees import DEGREES, epsg_of, to_degrees

__all__ = ["Hints", "PlaceReader", "Places", "utm_zone"]

_COMMA_NUMBER = r"^[+-]?\d+,\d+$"
_WEB_MERCATOR_M = 20_037_509
_SAMPLE = 5000
_E7 = 1e7
_DEGREES = {DEGREES, "EPSG:6668", "EPSG:4612", "EPSG:4269"}
"""Systems of degrees that differ from WGS84 by metres at most."""

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
Columns = Mapping[str, pa.ChunkedArray]


@dataclass(frozen=True)
class Places:
    """Degrees (n,) of a batch, NaN where unreadable, and why a row has no place (n,)."""

    lon: FloatArray
    lat: FloatArray
    causes: Mapping[str, BoolArray]


class PlaceReader:
    """Places of a file, read batch by batch and all in one form.

    The form is that of the first batch: two columns of degrees (with point or comma, or as
    degrees, minutes and seconds; times ten million), two of map metres whose reference system
    ``crs`` is stated, one column of geometries (role "geometry"), or of pairs (role "place"). The
    roles "lat_side" and "lon_side" say north or south, east or west. ``unit`` (one of
    `PLACE_UNITS`) settles what numbers of degrees count, which else is told by their size and
    ``hints``.

    Raises
    ------
    InputError
        If a column holds no place at all, axes look swapped, or metres lack their system; with
        the option that mends it.
    """

    def __init__(
        self,
        first: Columns,
        crs: str | None = None,
        swap_axes: bool = False,
        unit: str | None = None,
        hints: Hints | None = None,
    ) -> None:
        self.guesses: dict[str, Guess] = {}
        self._hints, self._unit = hints or Hints(), unit
        self.are_semicircles = False
        self._minutes = False
        self._swap = swap_axes
        self._lat_first: bool | None = None
        self._geohash: bool | None = None
        self._sided = bool({"lat_side", "lon_side"} & first.keys())
        self._forms = {role: self._form_of(first[role], role) for role in first if role in _SPOKEN}
        self._scale, self._wrap = 1.0, False
        self._stated: str | None = None
        x, y, missing = self._read_columns(first)
        crs = crs or self._stated
        self._map = _projection(crs)
        seen = np.isfinite(x) & np.isfinite(y) & ~missing
        x, y = x[seen], y[seen]
        if crs is not None:
            self.guesses["coordinates"] = Guess(crs, option="crs")
        if len(x) and self._map is None:
            if unit is None:
                self._check_degrees(x, y)
            else:
                self._take_unit(unit)
        axes = "swapped" if swap_axes else "as named"
        if self._map is None and len(x) and (np.abs(x) <= 90).all():
            other = "as named" if swap_axes else "swapped"
            self.guesses["axes"] = Guess(axes, (other,), option="swap_axes")
        elif self._map is not None and crs is not None and len(x) and not swap_axes:
            turned = check_axes(crs, x, y)
            if turned is not None:
                where = nearest_place(turned.lon, turned.lat)
                note = f"swapped they would lie {where}" if where else ""
                self.guesses["axes"] = Guess(axes, ("swapped",), note, "swap_axes")
        elif swap_axes:
            self.guesses["axes"] = Guess(axes, option="swap_axes")

    @property
    def as_stored(self) -> bool:
        """Whether longitudes and latitudes are the very numbers of the columns of these names."""
        numbers = all(form == "number" for form in self._forms.values())
        numbers = numbers and not (self._minutes or self._sided)
        return numbers and self._map is None and self._scale == 1 and not (self._wrap or self._swap)

    def read(self, columns: Columns) -> Places:
        """The places of a batch of the same columns."""
        x, y, missing = self._read_columns(columns)
        if self._scale != 1:
            x, y = x * self._scale, y * self._scale
        if self._minutes:
            x, y = _of_minutes(x), _of_minutes(y)
        if self._map is not None:
            x, y = self._map.transform(x, y)
            x, y = (np.where(np.isfinite(axis), axis, np.nan) for axis in (x, y))
        if self._wrap:
            x = np.where((x > 180) & (x <= 360), x - 360, x)
        if _all_good(x, y):
            return Places(x, y, {})
        unread = np.isnan(x) | np.isnan(y)
        causes = {
            "missing position": missing,
            "unreadable position": unread & ~missing,
            "position out of range": (np.abs(y) > 90) | (np.abs(x) > 180),
            "position at 0, 0": (x == 0) & (y == 0),
        }
        return Places(x, y, causes)

    def _form_of(self, column: pa.ChunkedArray, role: str) -> str:
        if role in ("geometry", "place"):
            return role
        if not is_text(column):
            return "number"
        text = trimmed(column).slice(0, _SAMPLE)
        numbers, commas = _count(text, f"^{NUMBER}$"), _count(text, _COMMA_NUMBER)
        if commas > numbers:
            self.guesses["decimal mark"] = Guess("comma")
            return "comma"
        present = text.filter(pc.invert(is_missing(text)))
        if numbers == 0 and len(present) and looks_like_dms(present.to_pylist()):
            self.guesses["degrees"] = Guess("degrees, minutes and seconds")
            return "dms"
        if numbers == 0 and len(present):
            raise InputError(
                f"The {_SPOKEN[role]} column holds {printable(present[0].as_py())!r}, which is no "
                "number; give decimal degrees, or choose another column.",
                f"--column {role}=NAME",
                code="coordinates-not-numbers",
            )
        return "point"

    def _read_columns(self, columns: Columns) -> tuple[FloatArray, FloatArray, BoolArray]:
        """First and second axis of each row, and which rows have no place at all."""
        if "geometry" in columns:
            found = geometry_to_lonlat(columns["geometry"])
            if found.others:
                kinds = ", ".join(found.others)
                self.guesses["geometry"] = Guess("points", (), f"others, such as {kinds}, left out")
            if found.srid:  # geometries name their system: SRID=6677;POINT ...
                self._stated = f"EPSG:{found.srid}"
            x, y, missing = found.lon, found.lat, found.missing
        elif "place" in columns and self._is_geohash(columns["place"]):
            x, y, missing = geohash_to_degrees(columns["place"])
        elif "place" in columns:
            pair = pair_to_columns(columns["place"], self._lat_first)
            self._lat_first = pair.lat_first
            self.guesses["pairs"] = pair.guess
            x, y, missing = pair.lon, pair.lat, pair.missing
        else:
            (x, no_x), (y, no_y) = (
                _numbers(columns[role], self._forms[role], role) for role in ("lon", "lat")
            )
            missing = no_x | no_y
            x, no_x = _sided(x, columns.get("lon_side"), "W")
            y, no_y = _sided(y, columns.get("lat_side"), "S")
            missing = missing | no_x | no_y
        return (y, x, missing) if self._swap else (x, y, missing)

    def _check_degrees(self, x: FloatArray, y: FloatArray) -> None:
        """Settle the unit of the numbers, or say what they look like."""
        if (np.abs(y) > 90).all() and (np.abs(y) <= 180).all() and (np.abs(x) <= 90).all():
            raise InputError(
                f"Longitude and latitude look swapped (every latitude, such as {y[0]:g}, is "
                "beyond 90 degrees); swap the axes, or name the two columns the other way round.",
                "--swap-axes",
                code="coordinates-swapped",
            )
        size = np.maximum(np.abs(x), np.abs(y))
        beyond = (x > 180) & (x <= 360)
        if 2 * beyond.sum() > len(x) and (np.abs(y) <= 90).mean() > 0.5:
            self._wrap = True
            self.guesses["longitudes"] = Guess("0 to 360 degrees east")
        if np.median(size) <= 1000:
            return
        degrees_named = self._hints.degrees_named
        if _are_minutes(x, y):
            many = len(np.unique(np.concatenate([x, y]))) >= 2 * SURE_OF_MINUTES
            if self._sided or (degrees_named and many):
                self._take_unit(MINUTES)
                return
            raise InputError(
                f"The places, such as {x[0]:g}, {y[0]:g}, may be degrees and minutes as receivers "
                f"write them (so the first is at {_told(_of_minutes(x[:1]), _of_minutes(y[:1]))}) "
                "or metres of a map; say which.",
                f"--place-unit '{MINUTES}'",
                code="degrees-and-minutes",
            )
        if np.median(size) <= _WEB_MERCATOR_M:
            raise projected(x, y, self._hints)
        if (
            self._hints.semicircles
            and np.median(np.abs(y)) <= 2**30 and np.median(np.abs(x)) <= 2**31
        ):  # fmt: skip
            self._take_unit(SEMICIRCLES)
            return
        if np.median(np.abs(y)) <= 90 * _E7 and np.median(np.abs(x)) <= 180 * _E7:
            self._take_unit(TIMES_1E7)
            return
        raise InputError(
            f"The places, such as {x[0]:.0f}, {y[0]:.0f}, are no degrees; give decimal degrees, or "
            "state the reference system of the map.",
            "--crs EPSG:NUMBER",
            code="not-degrees",
        )

    def _take_unit(self, unit: str) -> None:
        """Read numbers as these, and say so."""
        self._scale = {TIMES_1E7: 1 / _E7, SEMICIRCLES: 180 / 2**31}.get(unit, 1.0)
        self.are_semicircles, self._minutes = unit == SEMICIRCLES, unit == MINUTES
        others = tuple(other for other in (TIMES_1E7, SEMICIRCLES) if other != unit)
        shown = others if unit in (TIMES_1E7, SEMICIRCLES) else ()
        self.guesses["degrees"] = Guess(unit, shown, option="place_unit")

    def _is_geohash(self, column: pa.ChunkedArray) -> bool:
        if self._geohash is None:
            self._geohash = looks_like_geohash(plain(column))
            if self._geohash:
                self.guesses["place"] = Guess("geohashes", (), "the middle of each cell is taken")
        return self._geohash


def _all_good(x: FloatArray, y: FloatArray) -> bool:
    """Whether every place is one, by four looks at all; NaN fails each of them."""
    if len(x) == 0:
        return True
    west, east, south, north = x.min(), x.max(), y.min(), y.max()
    inside = west >= -180 and east <= 180 and south >= -90 and north <= 90
    return bool(inside and (west > 0 or east < 0 or south > 0 or north < 0))


SURE_OF_MINUTES = 8
_SPOKEN = {"lon": "longitude", "lat": "latitude", "geometry": "geometry", "place": "position"}


def _projection(crs: str | None) -> Any:
    """What turns metres of a map into degrees; None for degrees of WGS84 and their like."""
    code = None if crs is None else epsg_of(crs.strip())
    if crs is None or code in _DEGREES:
        return None
    from pyproj.exceptions import ProjError  # noqa: PLC0415

    try:
        if code is not None:
            return to_degrees(code)
    except ProjError:
        pass
    raise InputError(
        f"No reference system is called {printable(crs)!r}; use a code such as EPSG:6677.",
        code="unknown-crs",
    )


def _sided(
    axis: FloatArray, sides: pa.ChunkedArray | None, negative: str
) -> tuple[FloatArray, BoolArray]:
    """Degrees (n,) with the sign that a column of sides gives them, and which have no side."""
    if sides is None:
        return axis, np.zeros(len(axis), dtype=bool)
    first = pc.utf8_slice_codeunits(pc.utf8_upper(as_text(sides)), 0, 1)
    is_negative = as_mask(pc.equal(first, negative))
    blank = as_mask(pc.equal(first, ""))
    return np.where(is_negative, -np.abs(axis), axis), blank


def _are_minutes(x: FloatArray, y: FloatArray) -> bool:
    """Whether numbers may be degrees times a hundred and minutes: 3540.87, 13946.03."""
    within = (np.abs(y) <= 9000) & (np.abs(x) <= 18000)
    whole = (np.abs(x) % 100 < 60) & (np.abs(y) % 100 < 60)
    return bool(within.all() and whole.all())


def _of_minutes(axis: FloatArray) -> FloatArray:
    size = np.abs(axis)
    degrees: FloatArray = np.sign(axis) * (size // 100 + size % 100 / 60)
    return degrees


def _told(x: FloatArray, y: FloatArray) -> str:
    return f"longitude {float(x[0]):.4f}, latitude {float(y[0]):.4f}"


def _numbers(column: pa.ChunkedArray, form: str, role: str) -> tuple[FloatArray, BoolArray]:
    """Numbers (n,), NaN where none can be read, and which rows are empty."""
    kind = column.type
    if form == "number":
        if not (
            pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind)
        ):
            raise InputError(
                f"The {_SPOKEN[role]} column holds {kind}; give decimal degrees.",
                code="unusable-column-type",
            )
        numbers = to_float(column)
        missing = np.isnan(numbers)
        return np.where(np.isfinite(numbers), numbers, np.nan), missing
    if form == "point" and not column.null_count:
        fast = to_float(column)
        if np.isfinite(fast).all():
            return fast, np.zeros(len(fast), dtype=bool)
    text = trimmed(column)
    missing = as_mask(is_missing(text))
    if form == "dms":
        return dms_to_degrees(text), missing
    numbers = to_float(pc.replace_substring(text, ",", ".") if form == "comma" else text)
    return np.where(np.isfinite(numbers), numbers, np.nan), missing


def _count(text: pa.ChunkedArray, pattern: str) -> int:
    return int(pc.sum(pc.match_substring_regex(text, pattern)).as_py() or 0)
