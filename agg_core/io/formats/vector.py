"""Points, lines and areas of vector files: read within limits, brought to degrees, counted."""

from __future__ import annotations

import json
import math
import sqlite3
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from agg_core.base.errors import InputError
from agg_core.base.processes import Limits
from agg_core.base.report import Guess, printable
from agg_core.io.apart import CONTENT, guess_of, reading_apart
from agg_core.io.archives import GZIP_MAGIC, ZIP_MAGIC, check_archive
from agg_core.space.areas import NO_GEOMETRY
from agg_core.space.degrees import DEGREES, are_degrees, check_degrees, epsg_of, to_degrees

if TYPE_CHECKING:
    import geopandas as gpd

__all__ = [
    "BROKEN",
    "FILE_ENDINGS",
    "FLATGEOBUF",
    "GEOPACKAGE",
    "MOST_MEGABYTES",
    "NO_GEOMETRY",
    "VectorFile",
    "epsg_of",
    "geojson_crs",
    "geojson_geometries",
    "leave",
    "parse_geojson",
    "places_in_degrees",
    "read_vector",
    "read_vector_apart",
    "shapes_in_degrees",
    "vector_format",
]

FloatArray = npt.NDArray[np.float64]
Shapes = npt.NDArray[np.object_]

READER, RESULT = "agg_core.io.formats.vector:leave", "result.parquet"

MOST_MEGABYTES = 50
"""The largest file that is read."""

FILE_ENDINGS = ("geojson", "json", "gpkg", "zip", "fgb", "parquet", "geoparquet")
"""What the names of files that are read end in; the content decides what they are."""

MOST_BRACKETS = 4_000_000
"""Lists and objects in GeoJSON: each costs far more memory than its two characters."""

MOST_UNPACKED_MEGABYTES = 500
"""What a zip archive or a Parquet file may unpack to."""

MOST_ENTRIES = 2_000
"""Files in a zip archive."""

MOST_FEATURES = 1_000_000
MOST_COLUMNS = 1_000
PARQUET_ROWS_AT_ONCE = 256

BROKEN = "with broken coordinates"
UNKNOWN = "of an unknown type"
DEEP = "nested too deep"
COLLECTION = "GeometryCollection"
MOST_NESTED = 8
"""Geometry collections within each other."""

LISTS_OF = {
    "Point": 0, "MultiPoint": 1, "LineString": 1, "MultiLineString": 2,
    "Polygon": 2, "MultiPolygon": 3,
}  # fmt: skip
"""How many lists are around the positions of each type of geometry in GeoJSON."""

GEOJSON, GEOPACKAGE, SHAPEFILE = "GeoJSON", "GeoPackage", "zipped Shapefile"
FLATGEOBUF, GEOPARQUET, ZIP = "FlatGeobuf", "GeoParquet", "zip"
SIGNATURES = {
    ZIP_MAGIC: ZIP,
    b"SQLite format 3\x00": GEOPACKAGE,
    b"fgb\x03": FLATGEOBUF,
    b"PAR1": GEOPARQUET,
}
SHAPEFILE_MAGIC = b"\x00\x00\x27\x0a"
IN_A_ZIP = tuple(f".{ending}" for ending in FILE_ENDINGS if ending != "zip")
SHAPEFILE_PARTS = (".shp", ".shx", ".dbf", ".prj", ".cpg")
ENCODINGS = ("utf-8", "cp932", "latin-1")
"""Of text in a shapefile that does not say its own, in the order they are tried."""

HOW_TO_CONVERT = (
    "save it as GeoJSON, in QGIS by Export, Save Features As, "
    "or by ogr2ogr -t_srs EPSG:4326 out.geojson FILE"
)


@dataclass(frozen=True)
class VectorFile:
    """What a vector file holds, and how it was taken.

    ``frame`` has one row per feature in the order of the file (index 0, 1, …), its attributes,
    and ``geometry`` in degrees (EPSG:4326), without heights; None where the file has none or none
    that can be used. ``without_shape`` counts by cause what is missing, in collections too.
    ``crs`` is what the coordinates were taken as. ``guesses`` are choices that could have been
    others: crs, layer, encoding.
    """

    frame: gpd.GeoDataFrame
    name: str
    format: str
    crs: str
    without_shape: Mapping[str, int] = field(default_factory=dict)
    guesses: Mapping[str, Guess] = field(default_factory=dict)


@dataclass(frozen=True)
class _Read:
    """A file as it was read, before its coordinates are degrees; ``crs`` None if it says none.

    ``left_out`` counts what has no shape for another cause than that there is none.
    """

    frame: gpd.GeoDataFrame
    format: str
    crs: Any = None
    left_out: Mapping[str, int] = field(default_factory=dict)
    guesses: Mapping[str, Guess] = field(default_factory=dict)


def read_vector(
    content: bytes, filename: str, crs: str | None = None, layer: str | None = None
) -> VectorFile:
    """Read GeoJSON, a GeoPackage, a zipped Shapefile, FlatGeobuf or GeoParquet.

    The format is told by the content. The file's coordinate system is heeded; ``crs``, an EPSG
    code such as ``EPSG:6677``, is taken in its place where it is given. Without either, GeoJSON
    is in degrees of WGS84 (RFC 7946), and so is any other file whose coordinates could be.
    ``layer`` is one of several layers or shapefiles; the first, if left out.

    No name in the file becomes a path, and nothing but the file is opened.

    Raises
    ------
    InputError
        If it is too large, packed in another way, of another format, damaged, without features,
        has no such layer, or its coordinates do not fit the coordinate system.
    """
    name = printable(filename)
    stated = None if crs is None else _stated_code(crs)
    _check_size(content, name)
    with _no_fault_of_a_library(name):
        read = _read(content, name, layer)
    if not len(read.frame):
        raise InputError(
            f"{name} holds no feature, it is empty; choose a file with points, lines or areas.",
            code="no-features",
        )
    return _finished(read, name, stated)


def read_vector_apart(
    content: bytes, filename: str, crs: str | None = None, *, limits: Limits | None = None
) -> VectorFile:
    """Read a vector file as `read_vector` does, in a process with limits on memory and time.

    Attributes of several types in one column become text.

    Raises
    ------
    InputError
        That of `read_vector`, or that the file needs more than a file of its size may take.
    """
    import geopandas as gpd  # noqa: PLC0415

    with reading_apart(READER, content, filename, limits, crs=crs) as (folder, about):
        guesses = {what: guess_of(told) for what, told in about.pop("guesses").items()}
        return VectorFile(frame=gpd.read_parquet(folder / RESULT), guesses=guesses, **about)


def leave(folder: Path, filename: str, *, crs: str | None) -> dict[str, Any]:
    """What the process does: leave the features in the folder, and tell how they were taken."""
    found = read_vector((folder / CONTENT).read_bytes(), filename, crs)
    _of_one_type(found.frame).to_parquet(folder / RESULT)
    return {
        "name": found.name,
        "format": found.format,
        "crs": found.crs,
        "without_shape": dict(found.without_shape),
        "guesses": {what: asdict(guess) for what, guess in found.guesses.items()},
    }


def _of_one_type(frame: gpd.GeoDataFrame) -> gpd.GeoDataFrame:
    """A table whose columns Parquet can hold."""
    import pyarrow as pa  # noqa: PLC0415

    found = frame.copy()
    for name in found.columns.drop(found.geometry.name):
        try:
            pa.array(found[name], from_pandas=True)
        except (pa.ArrowException, OverflowError, ValueError):
            found[name] = found[name].map(lambda value: None if value is None else str(value))
    return found


def vector_format(content: bytes) -> str | None:
    """Name of the binary format by its first bytes ("zip" for any zip archive), or None."""
    return next((kind for start, kind in SIGNATURES.items() if content.startswith(start)), None)


def _stated_code(crs: str) -> str:
    code = epsg_of(crs.strip())
    if code is None:
        raise InputError(
            f"Give the coordinate system as an EPSG code, for example EPSG:6677, not "
            f"{printable(crs)!r}.",
            "--crs EPSG:CODE",
            code="unknown-crs",
        )
    return code


def _check_size(content: bytes, name: str) -> None:
    if not content:
        raise InputError(
            f"{name} is empty; choose a file with points, lines or areas.", code="empty-file"
        )
    if len(content) > MOST_MEGABYTES * 1_000_000:
        raise InputError(
            f"{name} holds {len(content) / 1e6:,.0f} MB and at most {MOST_MEGABYTES} are read; "
            "simplify it first, as by ogr2ogr -simplify or at mapshaper.org.",
            code="file-too-large",
        )


@contextmanager
def _no_fault_of_a_library(name: str) -> Iterator[None]:
    """Whatever GDAL, Arrow or GEOS raise on a damaged file is one sentence."""
    import pyarrow as pa  # noqa: PLC0415
    import pyogrio.errors as of_gdal  # noqa: PLC0415
    from pyproj.exceptions import ProjError  # noqa: PLC0415
    from shapely.errors import ShapelyError  # noqa: PLC0415

    faults = (
        of_gdal.DataSourceError, of_gdal.DataLayerError, of_gdal.CRSError, of_gdal.FeatureError,
        of_gdal.GeometryError, of_gdal.FieldError, pa.ArrowException, ShapelyError, ProjError,
        sqlite3.Error, OSError, EOFError, ValueError, KeyError,
        TypeError, IndexError, AttributeError, RuntimeError, OverflowError, NotImplementedError,
        MemoryError,
    )  # fmt: skip
    try:
        # GDAL warns of what it mends; what matters of it is counted by us.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except InputError:
        raise
    except faults as fault:
        raise InputError(
            f"{name} is damaged or not what its first bytes say; make or copy it again.",
            code="damaged-vector-file",
        ) from fault


def _read(content: bytes, name: str, layer: str | None) -> _Read:
    if content.startswith(GZIP_MAGIC):
        raise InputError(f"{name} is packed by gzip; unpack it first.", code="packed-by-gzip")
    if content.startswith(SHAPEFILE_MAGIC):
        raise InputError(
            f"{name} is one part of a shapefile; pack its .shp, .shx, .dbf and .prj into one zip "
            "archive.",
            code="shapefile-in-parts",
        )
    kind = vector_format(content)
    if kind == ZIP:
        return _read_zip(content, name, layer)
    if kind == GEOPARQUET:
        return _read_parquet(content, name)
    if kind in (GEOPACKAGE, FLATGEOBUF):
        return _read_binary(content, kind, name, layer)
    return _read_geojson(content, name)


# GeoJSON


def parse_geojson(content: bytes, name: str) -> dict[str, Any]:
    """The JSON object in UTF-8 text, its brackets counted before it is parsed.

    Raises
    ------
    InputError
        If it is of another format, too large or broken.
    """
    if content.lstrip()[:1] == b"<":
        raise InputError(
            f"{name} is XML, such as KML or GML; {HOW_TO_CONVERT}.", code="unsupported-xml"
        )
    if b"\0" in content:
        raise InputError(f"{name} is no text, so no GeoJSON; {HOW_TO_CONVERT}.", code="not-geojson")
    if content.count(b"[") + content.count(b"{") > MOST_BRACKETS:
        raise InputError(
            f"{name} holds more than {MOST_BRACKETS / 1e6:g} million places and objects; simplify "
            "it first, as by ogr2ogr -simplify or at mapshaper.org.",
            code="too-many-objects",
        )
    try:
        # NaN is found where it matters: in a position.
        document = json.loads(
            content.decode("utf-8-sig"), parse_int=_whole_number, parse_constant=float
        )
    except (ValueError, RecursionError) as fault:
        where = f" (line {fault.lineno})" if isinstance(fault, json.JSONDecodeError) else ""
        raise InputError(
            f"{name} cannot be read as JSON{where}; choose a GeoJSON file in UTF-8.",
            code="malformed-json",
        ) from None
    if not isinstance(document, dict):
        raise InputError(
            f"{name} is JSON but not GeoJSON: it has no type; {HOW_TO_CONVERT}.", code="not-geojson"
        )
    return document


def _whole_number(digits: str) -> int | float:
    """Integers of any length, also those that Python refuses."""
    return int(digits) if len(digits) < 19 else float(digits)


def geojson_crs(document: Mapping[str, Any], name: str) -> str | None:
    """``EPSG:n`` that the older member "crs" names; None if there is no such member.

    Raises
    ------
    InputError
        If it names something else than a code.
    """
    member = document.get("crs")
    if member is None:
        return None
    properties = member.get("properties") if isinstance(member, dict) else None
    stated = properties.get("name") if isinstance(properties, dict) else None
    code = epsg_of(stated) if isinstance(stated, str) else None
    if code is None:
        raise InputError(
            f"{name} states a coordinate system that is not understood "
            f"({printable(stated or member)}); state an EPSG code such as "
            "urn:ogc:def:crs:EPSG::6677, or convert by ogr2ogr -t_srs EPSG:4326 "
            "out.geojson FILE.",
            code="unknown-stated-crs",
        )
    return code


def geojson_geometries(document: Mapping[str, Any], name: str) -> Iterator[tuple[Any, Any]]:
    """Geometry and properties of every feature as they stand there, of any type.

    Raises
    ------
    InputError
        If the document is no GeoJSON.
    """
    kind = document.get("type")
    if kind == "FeatureCollection" and isinstance(document.get("features"), list):
        for feature in document["features"]:
            found = feature if isinstance(feature, dict) else {}
            yield found.get("geometry"), found.get("properties")
    elif kind == "Feature":
        yield document.get("geometry"), document.get("properties")
    elif isinstance(kind, str) and (kind in LISTS_OF or kind == COLLECTION):
        yield document, None
    else:
        raise InputError(
            f"{name} is JSON but not GeoJSON (its type is {printable(kind)!r}); {HOW_TO_CONVERT}.",
            code="not-geojson",
        )


def _read_geojson(content: bytes, name: str) -> _Read:
    import geopandas as gpd  # noqa: PLC0415
    import pandas as pd  # noqa: PLC0415

    document = parse_geojson(content, name)
    crs = geojson_crs(document, name)
    shapes, rows, left_out = [], [], Counter[str]()
    for geometry, properties in geojson_geometries(document, name):
        shapes.append(_geojson_shape(geometry, left_out))
        rows.append(_flat(properties))
    _check_counts(len(rows), len({key for row in rows for key in row}), name)
    table = pd.DataFrame(rows, index=pd.RangeIndex(len(rows)))
    frame = gpd.GeoDataFrame(table, geometry=_as_shapes(shapes))
    return _Read(frame, GEOJSON, crs or DEGREES, left_out)


def _flat(properties: Any) -> dict[str, Any]:
    """Attributes of a feature; lists and objects as JSON text."""
    if not isinstance(properties, dict):
        return {}
    return {
        key: json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value
        for key, value in properties.items()
        if key != "geometry"
    }


def _geojson_shape(geometry: Any, left_out: Counter[str], depth: int = 0) -> Any:
    """A shapely geometry; None, counted by cause, where there is none that can be used."""
    import shapely  # noqa: PLC0415
    from shapely.geometry import shape  # noqa: PLC0415

    known = isinstance(geometry, dict)
    found = geometry if known else {}
    kind, members = found.get("type"), found.get("geometries")
    if kind == COLLECTION and isinstance(members, list) and depth < MOST_NESTED:
        shapes = [_geojson_shape(member, left_out, depth + 1) for member in members]
        return shapely.GeometryCollection([shape for shape in shapes if shape is not None])
    coordinates = found.get("coordinates")
    if not known:
        cause = NO_GEOMETRY
    elif kind == COLLECTION and isinstance(members, list):
        cause = DEEP
    elif not isinstance(kind, str) or kind not in LISTS_OF:
        cause = UNKNOWN
    elif coordinates in (None, []):
        cause = NO_GEOMETRY
    else:
        try:
            return shape({"type": kind, "coordinates": _flat_places(coordinates, LISTS_OF[kind])})
        except (ValueError, shapely.errors.ShapelyError):
            cause = BROKEN
    left_out[cause] += 1
    return None


def _flat_places(coordinates: Any, depth: int) -> list[Any]:
    """Positions without heights; ValueError if they are not in so many lists, or no numbers."""
    if not isinstance(coordinates, list) or not coordinates:
        raise ValueError("no list")
    if depth:
        return [_flat_places(part, depth - 1) for part in coordinates]
    x, y = coordinates[:2]
    if {type(x), type(y)} - {int, float} or not (math.isfinite(x) and math.isfinite(y)):
        raise ValueError("no finite numbers")
    return [x, y]


# GeoPackage, FlatGeobuf, Shapefile: by GDAL, from a folder and a name of ours


def _read_binary(content: bytes, kind: str, name: str, layer: str | None) -> _Read:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("layers.gpkg" if kind == GEOPACKAGE else "layer.fgb")
        path.write_bytes(content)
        if kind == FLATGEOBUF:
            return _by_gdal(path, kind, name)
        chosen, guesses = _choose(_layers(path, name), layer, "layer", name)
        return replace(_by_gdal(path, kind, name, layer=chosen), guesses=guesses)


def _layers(path: Path, name: str) -> list[str]:
    """Layers with geometry that are tables: a view could compute without end."""
    index = "gpkg_geometry_columns"
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as database:
        found = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        tables = {row[0] for row in found}
        of_views = "SELECT 1 FROM sqlite_master WHERE type = 'view' AND name LIKE 'gpkg%'"
        if database.execute(of_views).fetchone():
            raise ValueError("what GDAL asks first is computed, perhaps without end")
        in_order = f"SELECT table_name FROM {index} ORDER BY rowid"  # noqa: S608
        listed = database.execute(in_order) if index in tables else ()
        layers = [str(row[0]) for row in listed if row[0] in tables]
    if not layers:
        raise InputError(
            f"{name} is a database without a table of points, lines or areas; {HOW_TO_CONVERT}.",
            code="no-geometry-table",
        )
    return layers


def _choose(
    found: list[str], asked: str | None, what: str, name: str
) -> tuple[str, dict[str, Guess]]:
    """The one asked for, or the first; a guess if there are others."""
    if asked is not None:
        if asked not in found:
            shown = ", ".join(printable(each, 40) for each in found[:20])
            raise InputError(
                f"{name} has no {what} {printable(asked)!r}; it has {shown}.", code="unknown-layer"
            )
        return asked, {}
    first, *others = found
    if not others:
        return first, {}
    return first, {what: Guess(printable(first), tuple(printable(each) for each in others[:20]))}


def _by_gdal(path: Path, kind: str, name: str, **choices: Any) -> _Read:
    """Features of one layer, without heights."""
    import pyogrio  # noqa: PLC0415

    about = pyogrio.read_info(path, **choices)
    _check_counts(about["features"], len(about["fields"]), name)
    frame = pyogrio.read_dataframe(
        path, force_2d=True, on_invalid="fix", max_features=MOST_FEATURES + 1, **choices
    )
    if "geometry" not in frame:
        raise InputError(
            f"{name} is a table without geometry; {HOW_TO_CONVERT}.", code="no-geometry"
        )
    _check_counts(len(frame), len(about["fields"]), name)
    return _Read(frame, kind, frame.crs)


def _check_counts(n_features: int, n_columns: int, name: str) -> None:
    if n_features > MOST_FEATURES:
        raise InputError(
            f"{name} holds {n_features:,} features and at most {MOST_FEATURES:,} are read; "
            "split it.",
            code="too-many-features",
        )
    if n_columns > MOST_COLUMNS:
        raise InputError(
            f"{name} has {n_columns:,} columns and at most {MOST_COLUMNS:,} are read; "
            "leave some out.",
            code="too-many-columns",
        )


def _read_zip(content: bytes, name: str, layer: str | None) -> _Read:
    """One shapefile of an archive, or its one other vector file."""
    archive = check_archive(
        content, name, nested=True, any_names=True, max_entries=MOST_ENTRIES,
        max_bytes=int(MOST_UNPACKED_MEGABYTES * 1_000_000),
    )  # fmt: skip
    entries = {entry.name: entry for entry in archive.entries}
    shapefiles = sorted(entry for entry in entries if _suffix(entry) == ".shp")
    if shapefiles:
        stems = {entry[:-4]: entry for entry in shapefiles}
        chosen, guesses = _choose(list(stems), layer, "layer", name)
        parts = {
            _suffix(entry): archive.read(found)[:]
            for entry, found in entries.items()
            if entry[: -len(_suffix(entry))].lower() == chosen.lower()
            and _suffix(entry) in SHAPEFILE_PARTS
        }
        return _read_shapefile(parts, name, guesses)
    others = sorted(entry for entry in entries if _suffix(entry) in IN_A_ZIP)
    if not others:
        raise InputError(
            f"{name} is a zip archive without a shapefile (.shp) or another vector file at "
            "its first level; pack the parts of the shapefile, not an archive of it.",
            code="no-shapefile-in-zip",
        )
    chosen, guesses = _choose(others, layer, "layer", name)
    inner = archive.read(entries[chosen])[:]
    if inner.startswith(ZIP_MAGIC):
        raise InputError(
            f"{name} is a zip within a zip; unpack it once.", code="archive-in-archive"
        )
    read = _read(inner, name, None)
    return replace(read, guesses={**guesses, **read.guesses})


def _suffix(entry: str) -> str:
    """How a name ends; none of a hidden file, such as those that macOS leaves beside others."""
    path = PurePosixPath(entry)
    return "" if path.name.startswith(".") else path.suffix.lower()


def _read_shapefile(parts: Mapping[str, bytes], name: str, guesses: Mapping[str, Guess]) -> _Read:
    missing = [part for part in (".shx", ".dbf") if part not in parts]
    if missing:
        raise InputError(
            f"{name} lacks the {' and '.join(missing)} of its shapefile; pack .shp, .shx, .dbf and "
            ".prj together.",
            code="shapefile-parts-missing",
        )
    with tempfile.TemporaryDirectory() as folder:
        for suffix, content in parts.items():
            (Path(folder) / f"layer{suffix}").write_bytes(content)
        path = Path(folder) / "layer.shp"
        if ".cpg" in parts:
            return replace(_by_gdal(path, SHAPEFILE, name), guesses=guesses)
        for encoding in ENCODINGS:
            try:
                read = _by_gdal(path, SHAPEFILE, name, encoding=encoding)
            except UnicodeDecodeError:
                continue
            others = tuple(each for each in ENCODINGS if each != encoding)
            said = {} if parts[".dbf"][32:].isascii() else {"encoding": Guess(encoding, others)}
            return replace(read, guesses={**guesses, **said})
    raise AssertionError("latin-1 decodes any text")


# GeoParquet


def _read_parquet(content: bytes, name: str) -> _Read:
    import geopandas as gpd  # noqa: PLC0415
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415
    import shapely  # noqa: PLC0415

    file = pq.ParquetFile(pa.BufferReader(content))
    _check_counts(file.metadata.num_rows, len(file.schema_arrow.names), name)
    column, crs = _geoparquet_column(file.schema_arrow.metadata or {}, name)
    rows, unpacked = [], 0
    for batch in file.iter_batches(batch_size=PARQUET_ROWS_AT_ONCE):
        unpacked += batch.nbytes
        if unpacked > MOST_UNPACKED_MEGABYTES * 1_000_000:
            raise InputError(
                f"{name} unpacks to more than {MOST_UNPACKED_MEGABYTES} MB; simplify it first.",
                code="unpacks-too-large",
            )
        rows.append(batch)
    table = pa.Table.from_batches(rows, schema=file.schema_arrow)
    bytes_of_shapes = table.column(column).to_numpy(zero_copy_only=False)
    shapes = shapely.force_2d(shapely.from_wkb(bytes_of_shapes, on_invalid="ignore"))
    broken = int(
        (shapely.is_missing(shapes) & np.array([b is not None for b in bytes_of_shapes])).sum()
    )
    flat = [
        field.name
        for field in table.schema
        if field.name != column and not pa.types.is_nested(field.type)
    ]
    frame = gpd.GeoDataFrame(table.select(flat).to_pandas(ignore_metadata=True), geometry=shapes)
    return _Read(frame, GEOPARQUET, crs, {BROKEN: broken})


def _geoparquet_column(metadata: Mapping[bytes, bytes], name: str) -> tuple[str, Any]:
    """Name of the geometry column, and its CRS: CRS84 where none is stated (GeoParquet 1.1)."""
    from pyproj import CRS  # noqa: PLC0415

    if b"geo" not in metadata:
        raise InputError(
            f"{name} is Parquet without the geometry that GeoParquet describes; save it by "
            "geopandas' to_parquet.",
            code="no-geometry",
        )
    geo = json.loads(metadata[b"geo"])
    column = str(geo["primary_column"])
    about = geo["columns"][column]
    if about.get("encoding") != "WKB":
        raise InputError(
            f"{name} encodes its geometry as {printable(about.get('encoding'))}; save it as WKB, "
            "as geopandas' to_parquet does.",
            code="unknown-geometry-encoding",
        )
    if "crs" not in about:
        return column, DEGREES
    return column, None if about["crs"] is None else CRS.from_json_dict(about["crs"])


# Coordinates


def _finished(read: _Read, name: str, stated: str | None) -> VectorFile:
    """The frame in degrees, with counts of what has no shape."""
    import geopandas as gpd  # noqa: PLC0415
    import shapely  # noqa: PLC0415

    shapes: Shapes = np.array(read.frame.geometry.values, dtype=object)
    shapes[shapely.is_empty(shapes)] = None
    places, owner = shapely.get_coordinates(shapes, return_index=True)
    no_number = np.unique(owner[~np.isfinite(places).all(axis=1)])
    left_out = Counter(read.left_out) + Counter({BROKEN: len(no_number)})
    if read.format != GEOJSON:
        n_missing = int(shapely.is_missing(shapes).sum())
        left_out += Counter({NO_GEOMETRY: n_missing - read.left_out.get(BROKEN, 0)})
    shapes[no_number] = None
    crs, guesses = _system(read, shapes, name, stated)
    present = ~shapely.is_missing(shapes)
    moved = shapes.copy()
    if present.any():
        moved[present] = shapes_in_degrees(shapes[present], crs, name)
    attributes = read.frame.drop(columns=read.frame.geometry.name).reset_index(drop=True)
    attributes.columns = attributes.columns.astype(str)
    return VectorFile(
        frame=gpd.GeoDataFrame(attributes, geometry=moved, crs=DEGREES),
        name=name,
        format=read.format,
        crs=_label(crs),
        without_shape=dict(+left_out),
        guesses={**read.guesses, **guesses},
    )


def _system(
    read: _Read, shapes: Shapes, name: str, stated: str | None
) -> tuple[Any, dict[str, Guess]]:
    """What the coordinates are taken as: what was stated, what the file says, or degrees."""
    import shapely  # noqa: PLC0415

    if stated is not None:
        own = stated if read.crs is None else _label(read.crs)
        differs = {"crs": Guess(stated, (own,), "the file states another")}
        return stated, {} if own == stated else differs
    if read.crs is not None:
        return read.crs, {}
    places = shapely.get_coordinates(shapes)
    outside = ~are_degrees(places)
    if outside.any():
        x, y = places[outside][0]
        raise InputError(
            f"{name} does not say its coordinate system, and its coordinates, such as {x:.9g}, "
            f"{y:.9g}, are no degrees; state it, for example EPSG:6677.",
            "--crs EPSG:CODE",
            code="not-degrees",
        )
    return DEGREES, {"crs": Guess(DEGREES, (), "the file does not say its coordinate system")}


def _label(crs: Any) -> str:
    """``EPSG:n``, or the name of a system that has no code."""
    if isinstance(crs, str):
        return crs
    code = crs.to_epsg()
    return printable(crs.name) if code is None else f"EPSG:{code}"


def shapes_in_degrees(shapes: Shapes, crs: Any, name: str) -> Shapes:
    """Shapes (n,) in longitude and latitude of WGS84, from ``EPSG:n`` or a pyproj CRS.

    Raises
    ------
    InputError
        If there is no way from that system to degrees, or coordinates lie outside of it.
    """
    import shapely  # noqa: PLC0415

    places = shapely.get_coordinates(shapes)
    if crs == DEGREES:
        check_degrees(places, name)
        return shapes
    moved = places_in_degrees(places, crs, name)
    outside = ~are_degrees(moved)
    if outside.any():
        x, y = places[outside][0]
        raise InputError(
            f"The coordinates of {name}, such as {x:.9g}, {y:.9g}, lie outside of "
            f"{_label(crs)}, in which they are said to be; state the right EPSG code.",
            "--crs EPSG:CODE",
            code="places-outside-crs",
        )
    in_degrees: Shapes = shapely.set_coordinates(shapes.copy(), moved)
    return in_degrees


def places_in_degrees(places: FloatArray, crs: Any, name: str) -> FloatArray:
    """Longitude and latitude (n, 2) of places in ``EPSG:n`` or a pyproj CRS, wherever they lie.

    Raises
    ------
    InputError
        If there is no way from that system to degrees.
    """
    from pyproj.exceptions import ProjError  # noqa: PLC0415

    try:
        return np.column_stack(to_degrees(crs).transform(places[:, 0], places[:, 1]))
    except ProjError:
        raise InputError(
            f"{name} is said to be in {_label(crs)}, from which no way leads to degrees; convert "
            "it by ogr2ogr -t_srs EPSG:4326 out.geojson FILE.",
            code="crs-not-convertible",
        ) from None


def _as_shapes(shapes: Iterable[Any]) -> Shapes:
    """An array of geometries, which numpy must not look into."""
    found = list(shapes)
    array = np.empty(len(found), dtype=object)
    array[:] = found
    return array
