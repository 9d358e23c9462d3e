"""Points of vector files as trajectories: their attributes beside longitude and latitude."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from agg_core.base.errors import InputError
from agg_core.io.archives import ZIP_MAGIC, names_in_head
from agg_core.io.contents import Data
from agg_core.io.formats.parquet import column_of
from agg_core.io.formats.vector import (
    FLATGEOBUF,
    GEOPACKAGE,
    VectorFile,
    read_vector,
    vector_format,
)
from agg_core.io.geometry import single_points
from agg_core.io.points import LeftOut, as_source
from agg_core.io.source import RawSource

__all__ = ["is_geoparquet", "open_features", "recognises_features"]

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
    import shapely  # noqa: PLC0415

    read = read_vector(bytes(data), name, crs, layer)
    shapes = single_points(np.array(read.frame.geometry.values, dtype=object))
    kept, left_out = _points_only(shapes, read, name)
    axes = (shapely.get_x(shapes[kept]), shapely.get_y(shapes[kept]))
    lon, lat = (pa.chunked_array([pa.array(axis, from_pandas=True)]) for axis in axes)
    attributes = read.frame.drop(columns=read.frame.geometry.name).iloc[kept]
    columns = [lon, lat, *(column_of(attributes.iloc[:, i]) for i in range(attributes.shape[1]))]
    names = ("lon", "lat", *(str(column) for column in attributes.columns))
    return as_source(
        names, lambda at, n: columns[at].slice(0, n), (kept + 1).tolist(), left_out,
        dict(read.guesses), in_degrees=True,
    )  # fmt: skip


def _points_only(shapes: Shapes, read: VectorFile, name: str) -> tuple[IntArray, LeftOut]:
    """Indices of features that are a point or nothing, and an account of the others."""
    kinds = np.array(["" if shape is None else shape.geom_type for shape in shapes])
    if not (kinds == "Point").any():
        raise _no_points(kinds, read, name)
    left_out = LeftOut()
    for kind, cause in _SPOKEN.items():
        others = np.flatnonzero(kinds == kind)
        if len(others):
            left_out.note(cause, (others + 1).tolist(), str(shapes[others[0]]))
    return np.flatnonzero((kinds == "Point") | (kinds == "")), left_out


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
