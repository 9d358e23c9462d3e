"""Points of vector files as trajectories: their attributes beside longitude and latitude."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from agg_core.base.errors import InputError
from agg_core.base.report import SetAside, printable
from agg_core.io.archives import ZIP_MAGIC, names_in_head
from agg_core.io.contents import Data
from agg_core.io.formats.vector import (
    FLATGEOBUF,
    GEOPACKAGE,
    VectorFile,
    read_vector,
    vector_format,
)
from agg_core.io.source import RawRows, RawSource

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["is_geoparquet", "open_features", "recognises_features"]

SAMPLE_ROWS = 50
SHOWN = 5
_SHAPEFILE_PARTS = (".shp", ".shx", ".dbf", ".prj", ".cpg", ".gpkg", ".fgb")
_SPOKEN = {
    "MultiPoint": "several points in one feature",
    "LineString": "a line in place of a point",
    "MultiLineString": "lines in place of a point",
    "LinearRing": "a line in place of a point",
    "Polygon": "an area in place of a point",
    "MultiPolygon": "areas in place of a point",
    "GeometryCollection": "a collection in place of a point",
}

IntArray = npt.NDArray[np.int64]
Shapes = npt.NDArray[np.object_]


def recognises_features(head: bytes) -> bool:
    """Whether a file is a GeoPackage, FlatGeobuf or zipped Shapefile (GeoParquet: see below)."""
    if vector_format(head) in (GEOPACKAGE, FLATGEOBUF):
        return True
    return head.startswith(ZIP_MAGIC) and any(
        name.lower().endswith(_SHAPEFILE_PARTS) for name in names_in_head(head)
    )


def is_geoparquet(data: Data) -> bool:
    """Whether a Parquet file describes its geometry, which only its end tells."""
    try:
        schema = pq.read_schema(pa.BufferReader(data))
    except (pa.ArrowException, OSError, ValueError):
        return False
    return b"geo" in (schema.metadata or {})


def open_features(
    data: Data, name: str, *, crs: str | None = None, layer: str | None = None
) -> RawSource:
    """Open the points of a vector file: columns lon and lat in degrees, then the attributes.

    Rows are features, numbered from 1; those without geometry have no place. What is no single
    point is set aside. ``crs`` (an EPSG code) and ``layer`` go to `vector.read_vector`.

    Raises
    ------
    InputError
        If the file cannot be read, or holds areas or lines and no point.
    """
    read = read_vector(bytes(data), name, crs, layer)
    shapes = _single(np.array(read.frame.geometry.values, dtype=object))
    kept, set_aside = _points_only(shapes, read, name)
    lon, lat = _axes(shapes[kept])
    attributes = read.frame.drop(columns=read.frame.geometry.name).iloc[kept]
    columns = [lon, lat, *(_column(attributes.iloc[:, i]) for i in range(attributes.shape[1]))]
    names = ("lon", "lat", *(str(column) for column in attributes.columns))

    def load(positions: Sequence[int]) -> RawRows:
        wanted = {position: columns[position] for position in dict.fromkeys(positions)}
        return RawRows(wanted, len(kept), lambda rows: kept[rows] + 1, set_aside)

    heads = ([_shown(value) for value in column.slice(0, SAMPLE_ROWS)] for column in columns)
    sample = [list(row) for row in zip(*heads, strict=True)]
    return RawSource(names, True, sample, load, dict(read.guesses), in_degrees=True)


def _single(shapes: Shapes) -> Shapes:
    """Shapes with each collection of one point as that point."""
    import shapely  # noqa: PLC0415

    alone = (shapely.get_type_id(shapes) == shapely.GeometryType.MULTIPOINT) & (
        shapely.get_num_geometries(shapes) == 1
    )
    return np.where(alone, shapely.get_geometry(shapes, 0), shapes)


def _points_only(
    shapes: Shapes, read: VectorFile, name: str
) -> tuple[IntArray, dict[str, SetAside]]:
    """Indices of features that are a point or nothing, and an account of the others."""
    kinds = np.array(["" if shape is None else shape.geom_type for shape in shapes])
    if not (kinds == "Point").any():
        raise _no_points(kinds, read, name)
    set_aside: dict[str, SetAside] = {}
    for kind, cause in _SPOKEN.items():
        others = np.flatnonzero(kinds == kind)
        if len(others):
            numbers = tuple(int(i) + 1 for i in others[:SHOWN])
            before = set_aside.get(cause, SetAside(0))
            set_aside[cause] = SetAside(
                before.count + len(others), before.lines or numbers, printable(shapes[others[0]])
            )
    return np.flatnonzero((kinds == "Point") | (kinds == "")), set_aside


def _no_points(kinds: npt.NDArray[np.str_], read: VectorFile, name: str) -> InputError:
    if np.isin(kinds, ("Polygon", "MultiPolygon")).any():
        return InputError(
            f"{name} holds areas, which are no trajectories; use them as a grid on the page Grid.",
            code="areas-not-trajectories",
        )
    if np.isin(kinds, ("LineString", "MultiLineString", "LinearRing")).any():
        return InputError(
            f"{name} holds lines, whose points have no times of their own; give points with a time "
            "each, or GPX.",
            code="lines-without-times",
        )
    if (kinds == "").all():
        return InputError(
            f"{name} has no geometry in any of its {len(kinds):,} features.", code="no-geometry"
        )
    return InputError(
        f"{name} ({read.format}) holds no feature that is a single point; give points with a time "
        "each.",
        code="no-points",
    )


def _axes(shapes: Shapes) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Longitude and latitude of points, null where there is none."""
    import shapely  # noqa: PLC0415

    missing = shapely.is_missing(shapes)
    axes = (shapely.get_x(shapes), shapely.get_y(shapes))
    lon, lat = (pa.chunked_array([pa.array(axis, mask=missing)]) for axis in axes)
    return lon, lat


def _column(values: pd.Series[Any]) -> pa.ChunkedArray:
    """An attribute as Arrow; what mixes kinds of values becomes text."""
    try:
        column = pa.array(values, from_pandas=True)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        texts = [
            None if lacks else _text(value)
            for value, lacks in zip(values, values.isna(), strict=True)
        ]
        column = pa.array(texts, pa.string())
    if isinstance(column, pa.Array):
        column = pa.chunked_array([column])
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.cast(pa.string()) if pa.types.is_null(column.type) else column


def _shown(value: pa.Scalar) -> str:
    try:
        return str(value.as_py()) if value.is_valid else ""
    except (OverflowError, ValueError):  # a stamp beyond what Python can write
        return "out of range"


def _text(value: object) -> str:
    written = value.isoformat() if hasattr(value, "isoformat") else str(value)
    return written.encode(errors="replace").decode()
