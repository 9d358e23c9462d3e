"""Flows as lines and cells as polygons, for geographic information systems."""

from __future__ import annotations

import io
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from agg_core.exports.tables import (
    is_drawable,
    left_out,
    wide_flows,
)
from agg_core.study.result import FlowResult
from agg_core.tables.flows import cell_totals

if TYPE_CHECKING:
    import geopandas as gpd

__all__ = [
    "cells_frame",
    "flows_frame",
    "geojson_cells",
    "geojson_flows",
    "geopackage",
    "geoparquet_cells",
    "geoparquet_flows",
]

DECIMALS = 6
"""Digits of a coordinate in degrees: a tenth of a metre."""


def flows_frame(result: FlowResult, time: str) -> gpd.GeoDataFrame:
    """Lines (EPSG:4326) from cell to cell for every flow of which any value is above 0.

    Columns are those of `wide_flows` without places: of a study estimate, single, counted,
    difference and, with intervals, low, high and resolved of the estimate, of counts count, low,
    high and resolved of what happened, and usual, usual_low, usual_high and usual_resolved of what
    usually happens. Stays and flows from or to the outside are no lines; `cells_frame` has the
    stays.

    Raises
    ------
    InputError
        If the cells have no place.
    """
    import geopandas as gpd  # noqa: PLC0415
    import shapely  # noqa: PLC0415

    grid, flows = result.states.placed_grid, wide_flows(result, time)
    above = (flows[list(result.value_columns)] > 0).any(axis=1)
    drawn = flows.loc[is_drawable(flows, grid.n_cells) & above]
    places = ["origin_lon", "origin_lat", "dest_lon", "dest_lat"]
    ends = [drawn[places[:2]], drawn[places[2:]]]
    lines = shapely.linestrings(np.stack([end.to_numpy().round(DECIMALS) for end in ends], axis=1))
    about = drawn.drop(columns=places).reset_index(drop=True)
    return gpd.GeoDataFrame(about, geometry=lines, crs="EPSG:4326")


def cells_frame(result: FlowResult, time: str) -> gpd.GeoDataFrame:
    """The cells (EPSG:4326) with people per step who come in, go out and stay, per source.

    Columns cell, name, what names a cell in its kind of grid (row and col, mesh, h3, area) and,
    for each source of the result, ``_in``, ``_out`` and ``_stay``; where intervals of nine in ten
    around these sums are known also ``_in_low``, ``_in_high``, ``_out_low`` and ``_out_high``.
    People from and to the outside come in and go out like others. Of a limited result they are sums
    of the flows that are shown, and ``least_people`` says below how many people these are not.

    Raises
    ------
    InputError
        If the cells have no place.
    """
    grid = result.states.placed_grid
    cells = grid.to_geodataframe()
    cells.geometry = cells.geometry.set_precision(10.0**-DECIMALS, mode="pointwise")
    cells.insert(1, "name", result.states.cells)
    for source in result.sources:
        totals = cell_totals(result.rows(time, source), grid.n_cells)
        for column, suffix in (("incoming", "in"), ("outgoing", "out"), ("stays", "stay")):
            cells[f"{source}_{suffix}"] = totals[column].to_numpy()
        known = result.cell_intervals(time, source)
        if known is None:
            continue
        for column, suffix in (("incoming", "in"), ("outgoing", "out")):
            for end, values in zip(("low", "high"), known[column], strict=True):
                cells[f"{source}_{suffix}_{end}"] = values[: grid.n_cells]
    if result.least_people is not None:
        cells["least_people"] = result.least_people
    return cells


def geojson_flows(result: FlowResult, time: str) -> bytes:
    """`flows_frame` as a GeoJSON FeatureCollection, which says how many people no line shows."""
    flows, n_cells = result.rows(time), result.states.placed_grid.n_cells
    missing = left_out(flows, n_cells)
    return _geojson(
        flows_frame(result, time), f"{_about(result, time)} Not in the estimate: {missing}."
    )


def geojson_cells(result: FlowResult, time: str) -> bytes:
    """`cells_frame` as a GeoJSON FeatureCollection."""
    return _geojson(cells_frame(result, time), _about(result, time))


def geoparquet_flows(result: FlowResult, time: str) -> bytes:
    """`flows_frame` as GeoParquet."""
    return _geoparquet(flows_frame(result, time))


def geoparquet_cells(result: FlowResult, time: str) -> bytes:
    """`cells_frame` as GeoParquet."""
    return _geoparquet(cells_frame(result, time))


def geopackage(result: FlowResult, time: str) -> bytes:
    """`flows_frame` and `cells_frame` as the layers flows and cells of one GeoPackage.

    It keeps the time of writing, so equal results give equal contents, not equal bytes.
    """
    layers = {
        "cells": (cells_frame(result, time), "Unknown"),
        "flows": (flows_frame(result, time), "LineString"),
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "flows.gpkg"
        for name, (frame, shape) in layers.items():
            frame.to_file(path, layer=name, driver="GPKG", geometry_type=shape, engine="pyogrio")
        return path.read_bytes()


def _about(result: FlowResult, time: str) -> str:
    return " ".join(filter(None, [f"People per {result.step_name}, {time}.", result.limit_words]))


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
