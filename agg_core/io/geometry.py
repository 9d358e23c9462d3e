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
from agg_core.io.texts import NUMBER, as_mask, as_text, is_missing, is_text, plain, to_float

__all__ = [
    "GeometryPlaces",
    "PairPlaces",
    "dms_to_degrees",
    "geometry_to_lonlat",
    "looks_like_dms",
    "pair_to_columns",
    "single_points",
]

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

MAX_TEXT = 256
MAX_BINARY = 128
"""A point needs less; longer ones could nest collections deeper than a parser's stack."""
ROWS_AT_ONCE = 1 << 18

_WKT = (
    r"(?i)^(?:SRID=\d+;)?\s*(?:POINT|MULTIPOINT|LINESTRING|POLYGON|MULTILINESTRING|MULTIPOLYGON"
    r"|GEOMETRYCOLLECTION)\s*(?:Z|M|ZM)?\s*(?:\(|EMPTY)"
)
_EWKT = r"(?i)^SRID=(?P<srid>\d{1,9});(?P<wkt>.*)$"
_HEX = r"^(?:[0-9A-Fa-f]{2}){9,64}$"

_POINT = b"\x01\x01\x00\x00\x00"
"""How WKB of a point of two numbers begins, the least byte of a number first."""

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
_NUMBERS = rf"^(?P<a>{NUMBER})\s*°?(?:\s*[,;/、]\s*|\s+)(?P<b>{NUMBER})\s*°?$"
_COMMA_NUMBERS = r"^(?P<a>[+-]?\d+,\d+)\s*°?(?:\s*[;/]\s*|\s+)(?P<b>[+-]?\d+,\d+)\s*°?$"
_HALVES = (
    r"^(?P<a>[^,;/、]+?)\s*[,;/、]\s*(?P<b>[^,;/、]+)$",
    r"^(?P<a>.*[NSEW])\s+(?P<b>[^NSEW]+[NSEW])$",
    r"^(?P<a>[^NSEW]+[NSEW])(?P<b>[^NSEW]+[NSEW])$",
    r"^(?P<a>[NSEW][^NSEW]+)(?P<b>[NSEW][^NSEW]+)$",
)
"""Where a pair of written degrees is cut: at a separator, or by the hemispheres."""


@dataclass(frozen=True)
class ReadPlaces:
    """First and second axis of each row (n,), NaN where there is no place to be read.

    ``missing`` (n,) marks rows without a place: null, blank, EMPTY, NaN.
    """

    lon: FloatArray
    lat: FloatArray
    missing: BoolArray


@dataclass(frozen=True)
class GeometryPlaces(ReadPlaces):
    """Points; ``others`` names the kinds of geometry that are none.

    ``srid`` is the reference system that the geometries state.
    """

    srid: int | None = None
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class PairPlaces(ReadPlaces):
    """Degrees of pairs; ``lat_first`` is the order of both; give it to the next batch."""

    lat_first: bool
    guess: Guess


def looks_like_dms(texts: Sequence[str]) -> bool:
    """Whether most of these texts that are not blank are degrees, and not plain numbers."""
    text = pa.chunked_array([pa.array(texts, pa.large_string())])
    read = ~np.isnan(dms_to_degrees(text)) & np.isnan(to_float(text))
    return bool(2 * read.sum() > (~as_mask(is_missing(as_text(text)))).sum())


def geometry_to_lonlat(column: pa.ChunkedArray) -> GeometryPlaces:
    """Points (n,) of a column of WKT, EWKT, hexadecimal WKB, WKB, or GeoArrow x and y.

    Heights and measures are left out; a multipoint of one point is a point.

    Raises
    ------
    InputError
        If the column holds something else, or geometries of several reference systems.
    """
    column = plain(column)
    kind = column.type
    if pa.types.is_struct(kind) and {"x", "y"} <= {field.name for field in kind}:
        return _separated(column)
    if is_text(column):
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
        missing=np.concatenate([piece[2] for piece in pieces]),
        srid=systems[0] if systems else None,
        others=tuple(sorted({other for piece in pieces for other in piece[4]})),
    )


def dms_to_degrees(column: pa.ChunkedArray) -> FloatArray:
    """Decimal degrees (n,) of degrees, minutes and seconds in any common writing; else NaN.

    Hemispheres before or after, also in Japanese; signs; any quotes; blanks, colons or hyphens
    between the parts; decimal minutes or degrees. South and west are negative.
    """
    fields = pc.extract_regex(_same_signs(column), _DMS)
    degrees, minutes, seconds = (to_float(pc.struct_field(fields, name)) for name in "dms")
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
    column = plain(column)
    if not is_text(column):
        raise InputError(
            f"The position column holds {column.type}; give text or two columns.",
            code="unusable-column-type",
        )
    blank = as_mask(is_missing(as_text(column)))
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

    text = as_text(column)
    blank = as_mask(is_missing(text))
    stated = pc.extract_regex(text, _EWKT)
    srid, bare = (pc.struct_field(stated, name) for name in ("srid", "wkt"))
    srids = set(srid.drop_null().unique().cast(pa.int64()).to_pylist())
    wkt = pc.coalesce(bare, text)
    shapes = np.full(len(text), None, dtype=object)
    short = pc.less_equal(pc.utf8_length(wkt), MAX_TEXT)
    is_wkt = as_mask(pc.and_(short, pc.match_substring_regex(wkt, _WKT)))
    is_hex = as_mask(pc.match_substring_regex(wkt, _HEX))
    for mask, read in ((is_wkt, shapely.from_wkt), (is_hex, shapely.from_wkb)):
        if mask.any():
            chosen = wkt.filter(pa.array(mask)).to_numpy()
            shapes[mask] = read(chosen, on_invalid="ignore")
    return _points(shapes, blank, srids - {0})


def _parse_binary(column: pa.ChunkedArray) -> _Parsed:
    import shapely  # noqa: PLC0415

    column = column.cast(pa.large_binary())
    alike = _plain_points(column)
    if alike is not None:
        return alike
    blank = as_mask(pc.fill_null(pc.equal(pc.binary_length(column), 0), True))
    short = as_mask(pc.less_equal(pc.binary_length(column), MAX_BINARY))
    shapes = np.full(len(column), None, dtype=object)
    if short.any():
        chosen = column.filter(pa.array(short)).to_numpy()
        shapes[short] = shapely.from_wkb(chosen, on_invalid="ignore")
    return _points(shapes, blank, set())


def _plain_points(column: pa.ChunkedArray) -> _Parsed | None:
    """A column of nothing but points of two numbers, as most files hold them; None for others.

    Each is a mark of the order of bytes, the kind of geometry in four, and two numbers in eight:
    they are taken as they lie there, without an object for each.
    """
    if column.null_count or not len(column):
        return None
    if not pc.all(pc.equal(pc.binary_length(column), len(_POINT) + 16)).as_py():
        return None
    array = column.combine_chunks()
    array = array.chunk(0) if isinstance(array, pa.ChunkedArray) else array
    _, offsets, values = array.buffers()
    begin = int(np.frombuffer(offsets, np.int64, 1, 8 * array.offset)[0])
    width = len(_POINT) + 16
    rows = np.frombuffer(values, np.uint8, width * len(array), begin).reshape(-1, width)
    if not (rows[:, : len(_POINT)] == np.frombuffer(_POINT, np.uint8)).all():
        return None
    x, y = np.ascontiguousarray(rows[:, len(_POINT) :]).view("<f8").T
    finite = np.isfinite(x) & np.isfinite(y)
    return np.where(finite, x, np.nan), np.where(finite, y, np.nan), ~finite, set(), set()


def _points(shapes: npt.NDArray[np.object_], blank: BoolArray, srids: set[int]) -> _Parsed:
    """Axes of the shapes that are one point, with what was found of the rest."""
    import shapely  # noqa: PLC0415

    srids |= {int(srid) for srid in np.unique(shapely.get_srid(shapes)) if srid > 0}
    blank = blank | shapely.is_empty(shapes)
    shapes = single_points(shapes)
    kinds = shapely.get_type_id(shapes)
    is_point = kinds == shapely.GeometryType.POINT
    x, y = shapely.get_x(shapes), shapely.get_y(shapes)
    finite = np.isfinite(x) & np.isfinite(y)
    x, y = np.where(finite, x, np.nan), np.where(finite, y, np.nan)
    empty = blank | (is_point & ~finite)
    rest = np.unique(kinds[(kinds >= 0) & ~is_point & ~empty])
    return x, y, empty, srids, {shapely.GeometryType(kind).name.lower() for kind in rest}


def single_points(shapes: npt.NDArray[np.object_]) -> npt.NDArray[np.object_]:
    """Shapes (n,) with each collection of one point as that point, and none that is empty."""
    import shapely  # noqa: PLC0415

    alone = (shapely.get_type_id(shapes) == shapely.GeometryType.MULTIPOINT) & (
        shapely.get_num_geometries(shapes) == 1
    )
    found = np.where(alone, shapely.get_geometry(shapes, 0), shapes)
    found[shapely.is_empty(found)] = None
    return found


def _separated(column: pa.ChunkedArray) -> GeometryPlaces:
    """Points as a structure of x and y (GeoArrow)."""
    x, y = (to_float(pc.struct_field(column, axis)) for axis in "xy")
    finite = np.isfinite(x) & np.isfinite(y)
    return GeometryPlaces(np.where(finite, x, np.nan), np.where(finite, y, np.nan), ~finite)


def _two_numbers(text: pa.ChunkedArray) -> tuple[FloatArray, FloatArray]:
    """Both numbers of pairs of plain decimal degrees."""
    points, commas = pc.extract_regex(text, _NUMBERS), pc.extract_regex(text, _COMMA_NUMBERS)

    def numbers(name: str) -> FloatArray:
        with_comma = pc.replace_substring(pc.struct_field(commas, name), ",", ".")
        return to_float(pc.coalesce(with_comma, pc.struct_field(points, name))).copy()

    return numbers("a"), numbers("b")


def _two_writings(
    text: pa.ChunkedArray,
) -> tuple[FloatArray, FloatArray, BoolArray, BoolArray]:
    """Both halves as degrees, whether the longitude leads, and whether hemispheres say so."""
    halves = [pc.extract_regex(text, pattern) for pattern in _HALVES]
    first, second = (
        pc.coalesce(*(pc.struct_field(half, name) for half in halves)) for name in "ab"
    )
    east_leads, north_leads = (
        as_mask(
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


def _letters(fields: Any, name: str) -> npt.NDArray[np.str_]:
    return np.asarray(pc.fill_null(pc.struct_field(fields, name), "").to_numpy(), dtype=np.str_)
