"""Flows as lines and cells as polygons, for geographic information systems."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import numpy as np

from agg_core.exports.tables import cell_names, is_drawable, left_out, wide_flows
from agg_core.flows import cell_totals
from agg_core.study import SOURCES, StudyResult

if TYPE_CHECKING:
    import geopandas as gpd

__all__ = [
    "cells_frame",
    "flows_frame",
    "geojson_cells",
    "geojson_flows",
    "geoparquet_cells",
    "geoparquet_flows",
]

DECIMALS = 6
"""Digits of a coordinate in degrees: a tenth of a metre."""


def flows_frame(result: StudyResult, anchor: str) -> gpd.GeoDataFrame:
    """Lines (EPSG:4326) from cell to cell for every flow that any source has above 0.

    Columns origin, dest, origin_name, dest_name, estimate, single, counted and difference
    (estimate minus single) in people per step. Stays and flows from or to the outside are no
    lines; `cells_frame` has the stays.
    """
    import geopandas as gpd  # noqa: PLC0415
    import shapely  # noqa: PLC0415

    flows = wide_flows(result, anchor)
    above = (flows[list(SOURCES)] > 0).any(axis=1)
    drawn = flows.loc[is_drawable(flows, result.settings.grid.make().n_cells) & above]
    ends = [drawn[["origin_lon", "origin_lat"]], drawn[["dest_lon", "dest_lat"]]]
    lines = shapely.linestrings(np.stack([end.to_numpy().round(DECIMALS) for end in ends], axis=1))
    columns = ["origin", "dest", "origin_name", "dest_name", *SOURCES, "difference"]
    return gpd.GeoDataFrame(drawn[columns].reset_index(drop=True), geometry=lines, crs="EPSG:4326")


def cells_frame(result: StudyResult, anchor: str) -> gpd.GeoDataFrame:
    """The cells (EPSG:4326) with people per step who come in, go out and stay, per source.

    Columns cell, name, what names a cell in its kind of grid (row and col, mesh, h3, area) and,
    for each of `SOURCES`, ``_in``, ``_out`` and ``_stay``.
    People from and to the outside come in and go out like others.
    """
    grid = result.settings.grid.make()
    cells = grid.to_geodataframe()
    cells.geometry = cells.geometry.set_precision(10.0**-DECIMALS, mode="pointwise")
    cells.insert(1, "name", cell_names(result)[: grid.n_cells])
    for source in SOURCES:
        totals = cell_totals(result.table(anchor, source), grid.n_cells)
        for column, suffix in (("incoming", "in"), ("outgoing", "out"), ("stays", "stay")):
            cells[f"{source}_{suffix}"] = totals[column].to_numpy()
    return cells


def geojson_flows(result: StudyResult, anchor: str) -> bytes:
    """`flows_frame` as a GeoJSON FeatureCollection, which says how many people no line shows."""
    missing = left_out(wide_flows(result, anchor), result.settings.grid.make().n_cells, "estimate")
    return _geojson(
        flows_frame(result, anchor), f"{_about(result, anchor)} Not in the estimate: {missing}."
    )


def geojson_cells(result: StudyResult, anchor: str) -> bytes:
    """`cells_frame` as a GeoJSON FeatureCollection."""
    return _geojson(cells_frame(result, anchor), _about(result, anchor))


def geoparquet_flows(result: StudyResult, anchor: str) -> bytes:
    """`flows_frame` as GeoParquet."""
    return _geoparquet(flows_frame(result, anchor))


def geoparquet_cells(result: StudyResult, anchor: str) -> bytes:
    """`cells_frame` as GeoParquet."""
    return _geoparquet(cells_frame(result, anchor))


def _about(result: StudyResult, anchor: str) -> str:
    return f"People per {result.settings.window.step_minutes}-minute step, {anchor}."


def _geojson(frame: gpd.GeoDataFrame, description: str) -> bytes:
    collection = frame.to_geo_dict(drop_id=True)
    text = json.dumps(
        {"type": "FeatureCollection", "description": description, **collection},
        separators=(",", ":"),
        allow_nan=False,
    )
    return text.encode("utf-8")


def _geoparquet(frame: gpd.GeoDataFrame) -> bytes:
    target = io.BytesIO()
    frame.to_parquet(target, index=False)
    return target.getvalue()
