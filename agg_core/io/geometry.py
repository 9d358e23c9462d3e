"""Places in one column: geometries (WKT, EWKT, WKB), degrees-minutes-seconds, pairs of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from agg_core.base.errors import InputError
from agg_core.base.report import Guess

__all__ = [
    "GeometryPlaces",
    "PairPlaces",
    "dms_to_degrees",
    "geometry_to_lonlat",
    "looks_like_dms",
    "looks_like_geometry",
    "looks_like_pair",
    "pair_to_columns",
]

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

MAX_TEXT = 256
MAX_BINARY = 128
"""A point needs less; longer ones could nest collections deeper than a parser's stack."""
ROWS_AT_ONCE = 1 << 18
_SAMPLE = 5000

_WKT = (
    r"(?i)^(?:SRID=\d+;)?\s*(?:POINT|MULTIPOINT|LINESTRING|POLYGON|MULTILINESTRING|MULTIPOLYGON"
    r"|GEOMETRYCOLLECTION)\s*(?:Z|M|ZM)?\s*(?:\(|EMPTY)"
)
_EWKT = r"(?i)^SRID=(?P<srid>\d{1,9});(?P<wkt>.*)$"
_HEX = r"^(?:[0-9A-Fa-f]{2}){9,64}$"
_HEX_START = r"^0[01][0-9A-Fa-f]{8}"
_MISSING = pa.array(["", "nan", "null", "none", "\\n", "<na>"])

_QUOTES = (
    (r"[º˚∘ᵒ]", "°"),
    (r"[´`ʹʼ‘’‛′‵]", "'"),
    (r"[“”„‟″‶ˮ〃״]", '"'),
)
_SAME_SIGNS = (
    (r"\s*\x{30A}", "°"),
    (r"\s*\x{301}", "'"),
    *_QUOTES,
    (r"[−–—‐‑‒]", "-"),
    (r"北緯|北", "N"),
    (r"南緯|南", "S"),
    (r"東経|東", "E"),
    (r"西経|西", "W"),
    (r"\bNORTH\b", "N"),
    (r"\bSOUTH\b", "S"),
    (r"\bEAST\b", "E"),
    (r"\bWEST\b", "W"),
    (r"\b(?:LATITUDE|LAT|LONGITUDE|LONG|LON|LNG)\b\s*[:=.]?|緯度|経度", ""),
    (r"度|DEGREES?|DEG\.?", "°"),
    (r"分|MINUTES?|MIN\.?", "'"),
    (r"秒|SECONDS?|SEC\.?", '"'),
    (r"(\d)\s*[DO]\s*(\d+(?:[.,]\d+)?)\s*M\s*(\d+(?:[.,]\d+)?)\s*S\b", "\\1°\\2'\\3\""),
    (r"(\d)\s*[DO]\s*(\d+(?:[.,]\d+)?)\s*M\b", "\\1°\\2'"),
    (r"(\d)\s*[DO](\s*(?:\d|[NSEW]|$))", r"\1°\2"),
    (r"''", '"'),
    (r"(\d),(\d)", r"\1.\2"),
)
"""Writings of one sign, in the order they are brought to it; after NFKC and upper case."""

_BETWEEN = r"(?:\s*[°:\-]\s*|\s+)"
_DMS = (
    r"^\s*(?P<before>[NSEW]?)\s*:?\s*(?P<sign>[+-]?)\s*(?P<d>\d{1,3}(?:\.\d*)?)"
    rf"(?:{_BETWEEN}(?P<m>\d{{1,2}}(?:\.\d*)?)"
    r"(?:(?:\s*[':\-]\s*|\s+)(?P<s>\d{1,2}(?:\.\d*)?)\s*\"?|\s*'?)|\s*°?)"
    r"\s*(?P<after>[NSEW]?)\s*$"
)
_PLAIN_NUMBER = r"^\s*[+-]?\d+(?:\.\d*)?\s*$"

_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_NUMBERS = rf"^(?P<a>{_NUMBER})\s*°?(?:\s*[,;/、]\s*|\s+)(?P<b>{_NUMBER})\s*°?$"
_COMMA_NUMBERS = r"^(?P<a>[+-]?\d+,\d+)\s*°?(?:\s*[;/]\s*|\s+)(?P<b>[+-]?\d+,\d+)\s*°?$"
_HALVES = (
    r"^(?P<a>[^,;/、]+?)\s*[,;/、]\s*(?P<b>[^,;/、]+)$",
    r"^(?P<a>.*[NSEW])\s+(?P<b>[^NSEW]+[NSEW])$",
    r"^(?P<a>[^NSEW]+[NSEW])(?P<b>[^NSEW]+[NSEW])$",
    r"^(?P<a>[NSEW][^NSEW]+)(?P<b>[NSEW][^NSEW]+)$",
)
"""Where a pair of written degrees is cut: at a separator, or by the hemispheres."""


@dataclass(frozen=True)
class GeometryPlaces:
    """First and second axis of each geometry (n,), NaN where there is none.

    ``empty`` (n,) marks rows without a place: null, blank, EMPTY, NaN. A row that is NaN and not
    empty holds something else than one point; ``others`` names the kinds of geometry among them.
    ``srid`` is the reference system that the geometries state.
    """

    lon: FloatArray
    lat: FloatArray
    empty: BoolArray
    srid: int | None = None
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class PairPlaces:
    """Degrees of each pair (n,), NaN where unreadable; ``missing`` (n,) marks blank rows.

    ``lat_first`` is the order of the two numbers; give it to the next batch.
    """

    lon: FloatArray
    lat: FloatArray
    missing: BoolArray
    lat_first: bool
    guess: Guess


def looks_like_geometry(texts: Sequence[str]) -> bool:
    """Whether most of these texts that are not blank are WKT, EWKT or WKB in hexadecimal."""
    text = _present(texts)
    found = pc.or_(
        pc.match_substring_regex(text, _WKT),
        pc.and_(pc.match_substring_regex(text, _HEX), pc.match_substring_regex(text, _HEX_START)),
    )
    return _mostly(found)


def looks_like_dms(texts: Sequence[str]) -> bool:
    """Whether most of these texts that are not blank are degrees, and not plain numbers."""
    text = _present(texts)
    plain = _mask(pc.match_substring_regex(text, _PLAIN_NUMBER))
    read = ~np.isnan(dms_to_degrees(pa.chunked_array([text])))
    return _mostly(pa.array(read & ~plain))


def looks_like_pair(texts: Sequence[str]) -> bool:
    """Whether most of these texts that are not blank hold two degrees."""
    text = _present(texts)
    if len(text) == 0:
        return False
    pair = pair_to_columns(pa.chunked_array([text]))
    return _mostly(pa.array(~np.isnan(pair.lon)))


def geometry_to_lonlat(column: pa.ChunkedArray) -> GeometryPlaces:
    """Points (n,) of a column of WKT, EWKT, hexadecimal WKB, WKB, or GeoArrow x and y.

    Heights and measures are left out; a multipoint of one point is a point.

    Raises
    ------
    InputError
        If the column holds something else, or geometries of several reference systems.
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if pa.types.is_struct(kind):
        return _separated(column)
    if _is_text(kind):
        parse = _parse_text
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or kind == pa.binary_view():
        parse = _parse_binary
    else:
        raise InputError(
            f"The geometry column holds {kind}; give WKT, WKB or two columns.",
            code="unusable-column-type",
        )
    # Some rows at once, because each geometry is an object of its own while it is read.
    pieces = [
        parse(column.slice(start, ROWS_AT_ONCE))
        for start in range(0, max(len(column), 1), ROWS_AT_ONCE)
    ]
    systems = sorted({srid for piece in pieces for srid in piece[3]})
    if len(systems) > 1:
        raise InputError(
            f"The geometry column mixes reference systems (SRID {systems[0]} and {systems[1]}); "
            "bring all to one.",
            code="mixed-crs",
        )
    return GeometryPlaces(
        lon=np.concatenate([piece[0] for piece in pieces]),
        lat=np.concatenate([piece[1] for piece in pieces]),
        empty=np.concatenate([piece[2] for piece in pieces]),
        srid=systems[0] if systems else None,
        others=tuple(sorted({other for piece in pieces for other in piece[4]})),
    )


def dms_to_degrees(column: pa.ChunkedArray) -> FloatArray:
    """Decimal degrees (n,) of degrees, minutes and seconds in any common writing; else NaN.

    Hemispheres before or after, also in Japanese; signs; any quotes; blanks, colons or hyphens
    between the parts; decimal minutes or degrees. South and west are negative.
    """
    fields = _extract(_same_signs(column), _DMS)
    degrees, minutes, seconds = (_number(fields, name) for name in "dms")
    has_minutes, has_seconds = ~np.isnan(minutes), ~np.isnan(seconds)
    before, after, sign = (_letters(fields, name) for name in ("before", "after", "sign"))
    hemisphere = np.where(before == "", after, before)
    negative = (sign == "-") | (hemisphere == "S") | (hemisphere == "W")
    wrong = (before != "") & (after != "") & (before != after)
    wrong |= (sign == "-") & ((hemisphere == "N") | (hemisphere == "E"))
    wrong |= has_minutes & (degrees != np.floor(degrees))
    wrong |= has_seconds & (minutes != np.floor(minutes))
    wrong |= (minutes >= 60) | (seconds > 60)
    parts = np.where(has_minutes, minutes, 0.0) / 60 + np.where(has_seconds, seconds, 0.0) / 3600
    size = degrees + parts
    return np.where(wrong, np.nan, np.where(negative, -size, size))


def pair_to_columns(column: pa.ChunkedArray, lat_first: bool | None = None) -> PairPlaces:
    """Two degrees (n,) of texts such as "35.68, 139.76", "(35.68 139.76)", "35.1°, 139.7°".

    Hemispheres settle the order of a row; otherwise one number beyond 90 settles that of the
    column, and without one the latitude is taken to come first.

    Raises
    ------
    InputError
        If the column holds no text.
    """
    if not _is_text(column.type):
        raise InputError(
            f"The position column holds {column.type}; give text or two columns.",
            code="unusable-column-type",
        )
    blank = _blank(column)
    text = _same_signs(column, keep_commas=True)
    text = pc.replace_substring_regex(text, r"^\s*(?:GEO:)?\s*[(\[{]?\s*|\s*[)\]}]?\s*$", "")
    first, second = _two_numbers(text)
    swapped, settled = np.zeros(len(text), bool), np.zeros(len(text), bool)
    left = np.flatnonzero(np.isnan(first) & ~blank)
    if len(left):
        written = _two_writings(text.take(pa.array(left)))
        first[left], second[left], swapped[left], settled[left] = written
    free = ~settled
    lon_leads = bool((np.abs(first[free]) > 90).any())
    lat_leads = bool((np.abs(second[free]) > 90).any())
    order = lat_first if lat_first is not None else not (lon_leads and not lat_leads)
    lon_first = np.where(settled, swapped, not order)
    words = ("latitude, longitude", "longitude, latitude")
    value, other = words if order else words[::-1]
    sure = bool(settled.all()) or lon_leads != lat_leads
    return PairPlaces(
        lon=np.where(lon_first, first, second),
        lat=np.where(lon_first, second, first),
        missing=blank,
        lat_first=order,
        guess=Guess(value, () if sure else (other,)),
    )


_Parsed = tuple[FloatArray, FloatArray, BoolArray, set[int], set[str]]


def _parse_text(column: pa.ChunkedArray) -> _Parsed:
    import shapely  # noqa: PLC0415

    text = pc.fill_null(pc.utf8_trim_whitespace(column.cast(pa.large_string())), "")
    blank = _mask(pc.is_in(pc.utf8_lower(text), _MISSING))
    stated = _extract(text, _EWKT)
    srids = set(_column(stated, "srid").drop_null().unique().cast(pa.int64()).to_pylist())
    wkt = pc.if_else(pc.is_valid(_column(stated, "wkt")), _column(stated, "wkt"), text)
    shapes = np.full(len(text), None, dtype=object)
    short = pc.less_equal(pc.utf8_length(wkt), MAX_TEXT)
    is_wkt = _mask(pc.and_(short, pc.match_substring_regex(wkt, _WKT)))
    is_hex = _mask(pc.match_substring_regex(wkt, _HEX))
    for mask, read in ((is_wkt, shapely.from_wkt), (is_hex, shapely.from_wkb)):
        if mask.any():
            chosen = wkt.filter(pa.array(mask)).to_numpy()
            shapes[mask] = read(chosen, on_invalid="ignore")
    return _points(shapes, blank, srids - {0})


def _parse_binary(column: pa.ChunkedArray) -> _Parsed:
    import shapely  # noqa: PLC0415

    column = column.cast(pa.large_binary())
    blank = _mask(pc.fill_null(pc.equal(pc.binary_length(column), 0), True))
    short = _mask(pc.less_equal(pc.binary_length(column), MAX_BINARY))
    shapes = np.full(len(column), None, dtype=object)
    if short.any():
        chosen = column.filter(pa.array(short)).to_numpy()
        shapes[short] = shapely.from_wkb(chosen, on_invalid="ignore")
    return _points(shapes, blank, set())


def _points(shapes: npt.NDArray[np.object_], blank: BoolArray, srids: set[int]) -> _Parsed:
    """Axes of the shapes that are one point, with what was found of the rest."""
    import shapely  # noqa: PLC0415

    srids |= {int(srid) for srid in np.unique(shapely.get_srid(shapes)) if srid > 0}
    kinds = shapely.get_type_id(shapes)
    single = (kinds == shapely.GeometryType.MULTIPOINT) & (shapely.get_num_geometries(shapes) == 1)
    shapes = np.where(single, shapely.get_geometry(shapes, 0), shapes)
    is_point = (kinds == shapely.GeometryType.POINT) | single
    x, y = np.full(len(shapes), np.nan), np.full(len(shapes), np.nan)
    filled = is_point & ~shapely.is_empty(shapes)
    x[filled], y[filled] = shapely.get_x(shapes[filled]), shapely.get_y(shapes[filled])
    finite = np.isfinite(x) & np.isfinite(y)
    x, y = np.where(finite, x, np.nan), np.where(finite, y, np.nan)
    empty = blank | shapely.is_empty(shapes) | (is_point & ~finite)
    rest = np.unique(kinds[(kinds >= 0) & ~is_point & ~empty])
    return x, y, empty, srids, {shapely.GeometryType(kind).name.lower() for kind in rest}


def _separated(column: pa.ChunkedArray) -> GeometryPlaces:
    """Points as a structure of x and y (GeoArrow)."""
    names = {field.name for field in column.type}
    if not {"x", "y"} <= names:
        raise InputError(
            f"The geometry column holds {column.type}; give WKT, WKB or two columns.",
            code="unusable-column-type",
        )
    x, y = (
        np.asarray(pc.fill_null(pc.struct_field(column, axis).cast(pa.float64()), np.nan))
        for axis in "xy"
    )
    finite = np.isfinite(x) & np.isfinite(y)
    return GeometryPlaces(np.where(finite, x, np.nan), np.where(finite, y, np.nan), ~finite)


def _two_numbers(text: pa.ChunkedArray) -> tuple[FloatArray, FloatArray]:
    """Both numbers of pairs of plain decimal degrees."""
    points, commas = _extract(text, _NUMBERS), _extract(text, _COMMA_NUMBERS)

    def numbers(name: str) -> FloatArray:
        with_comma = pc.replace_substring(_column(commas, name), ",", ".")
        either = pc.coalesce(with_comma, _column(points, name))
        numbers = pc.fill_null(either.cast(pa.float64()), np.nan).to_numpy(zero_copy_only=False)
        return np.array(numbers, dtype=np.float64)

    return numbers("a"), numbers("b")


def _two_writings(
    text: pa.ChunkedArray,
) -> tuple[FloatArray, FloatArray, BoolArray, BoolArray]:
    """Both halves as degrees, whether the longitude leads, and whether hemispheres say so."""
    halves = [_extract(text, pattern) for pattern in _HALVES]
    first, second = (pc.coalesce(*(_column(half, name) for half in halves)) for name in "ab")
    east_leads, north_leads = (
        _mask(
            pc.and_(
                pc.match_substring_regex(first, leading),
                pc.match_substring_regex(second, following),
            )
        )
        for leading, following in (("[EW]", "[NS]"), ("[NS]", "[EW]"))
    )
    degrees = dms_to_degrees(first), dms_to_degrees(second)
    both = ~np.isnan(degrees[0]) & ~np.isnan(degrees[1])
    a, b = (np.where(both, half, np.nan) for half in degrees)
    return a, b, east_leads, east_leads | north_leads


def _same_signs(column: pa.ChunkedArray, keep_commas: bool = False) -> pa.ChunkedArray:
    """Texts in upper case with one sign for each of degree, minute, second and hemisphere."""
    text = pc.fill_null(column.cast(pa.large_string()), "")
    # NFKC would make letters and accents of these.
    text = reduce(lambda found, rule: pc.replace_substring_regex(found, *rule), _QUOTES, text)
    text = pc.utf8_upper(pc.utf8_normalize(text, "NFKC"))
    rules = _SAME_SIGNS[:-1] if keep_commas else _SAME_SIGNS
    text = reduce(lambda found, rule: pc.replace_substring_regex(found, *rule), rules, text)
    return pc.utf8_trim_whitespace(text)


def _present(texts: Sequence[str]) -> pa.Array:
    text = pa.array([str(text) for text in texts[:_SAMPLE]], pa.large_string())
    return text.filter(pa.array(~_blank(pa.chunked_array([text]))))


def _blank(column: pa.ChunkedArray) -> BoolArray:
    text = pc.fill_null(column.cast(pa.large_string()), "")
    return _mask(pc.is_in(pc.utf8_lower(pc.utf8_trim_whitespace(text)), _MISSING))


def _mostly(found: pa.Array) -> bool:
    return len(found) > 0 and 2 * int(pc.sum(found).as_py() or 0) > len(found)


def _extract(text: Any, pattern: str) -> Any:
    """The named parts of each text, null where the pattern does not match."""
    return pc.extract_regex(text, pattern)


def _column(fields: Any, name: str) -> Any:
    return pc.struct_field(fields, name)


def _number(fields: Any, name: str) -> FloatArray:
    part = _column(fields, name)
    digits = pc.if_else(pc.equal(part, ""), None, part)
    return np.asarray(pc.fill_null(digits.cast(pa.float64()), np.nan), dtype=np.float64)


def _letters(fields: Any, name: str) -> npt.NDArray[np.str_]:
    return np.asarray(pc.fill_null(_column(fields, name), "").to_numpy(), dtype=np.str_)


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view()
    )


def _mask(values: Any) -> BoolArray:
    return np.asarray(pc.fill_null(values, False), dtype=bool)
