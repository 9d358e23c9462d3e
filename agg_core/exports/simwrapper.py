"""A folder that SimWrapper opens as a dashboard: flows on a map, all times, the table, the words.

Panels and their keys are those that its source reads (github.com/simwrapper/simwrapper,
src/plugins/flowmap and src/plugins/aggregate-od): ``flowmap`` takes boundaries as GeoJSON and a
table with the columns origin, destination and count, ``aggregate`` takes a shapefile and a table
with a column for each time. Its zones count from 1, since it overlooks one that is number 0.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from agg_core.exports.geo import cells_frame
from agg_core.exports.tables import csv_bytes, is_drawable, left_out, zip_bytes
from agg_core.study.result import ESTIMATE, FlowResult

if TYPE_CHECKING:
    import geopandas as gpd

__all__ = ["simwrapper"]

SHAPE_PARTS = (".shp", ".shx", ".dbf", ".prj", ".cpg")

WIDEST = 50.0
"""What SimWrapper's widest line is to be: its lines are as wide as people times a factor."""


def simwrapper(result: FlowResult, time: str, source: str = ESTIMATE, title: str = "") -> bytes:
    """A zip to unpack into a folder that SimWrapper serves or is given by the browser.

    dashboard-flows.yaml, cells.geojson and the shapefile cells (zone from 1, cell from 0, name),
    flows.csv (origin, destination, count of the moment, in zones), times.csv (origin, destination
    and a column for each time of day) and about.md. Flows are people per step of one source between
    two different cells; who stays, and who comes from or goes to the outside, is told in about.md.

    Raises
    ------
    InputError
        If the result has no such time or source, or cells have no place.
    """
    n_cells = result.states.placed_grid.n_cells
    cells = cells_frame(result, time)[["cell", "name", "geometry"]]
    cells.insert(0, "zone", np.arange(1, n_cells + 1))
    rows = result.rows(time, source)
    flows = _zoned(rows, n_cells)
    times = pd.DataFrame({"origin": [], "destination": []}, dtype=np.int64)
    for label in result.times_of_day:
        column = _zoned(result.rows(label, source), n_cells).rename(columns={"count": label})
        times = times.merge(column, how="outer", on=["origin", "destination"])
    times = times.sort_values(["origin", "destination"])
    # Withheld flows are no rows: an empty field is nobody, or fewer people than are shown.
    if result.least_people is None:
        times = times.fillna(0.0)
    most = float(times.drop(columns=["origin", "destination"]).sum(axis=1).max())
    files = {
        "dashboard-flows.yaml": _dashboard(result, time, source, title, most),
        "cells.geojson": cells.to_json(drop_id=True, ensure_ascii=False).encode(),
        **_shapefile(cells),
        "flows.csv": csv_bytes(flows),
        "times.csv": csv_bytes(times),
        "about.md": _about(result, time, source, left_out(rows, n_cells)).encode(),
    }
    return zip_bytes(files)


def _zoned(rows: pd.DataFrame, n_cells: int) -> pd.DataFrame:
    """Flows between two cells as zones: origin, destination, count."""
    drawn = rows.loc[is_drawable(rows, n_cells) & (rows["count"] > 0)]
    return pd.DataFrame(
        {
            "origin": drawn["origin"].to_numpy() + 1,
            "destination": drawn["dest"].to_numpy() + 1,
            "count": drawn["count"].to_numpy(),
        }
    )


def _dashboard(result: FlowResult, time: str, source: str, title: str, most: float) -> bytes:
    """The dashboard as JSON, which is YAML, too, and quotes whatever a title holds."""
    whence = result.source_words(source)
    flows = {
        "type": "flowmap", "title": f"People per {result.step_name}, {time}", "height": 12,
        "boundaries": "cells.geojson", "boundariesJoinCol": "zone", "boundariesLabels": "name",
        "dataset": "flows.csv", "origin": "origin", "destination": "destination", "flow": "count",
    }  # fmt: skip
    of_times = {
        "type": "aggregate", "title": "All times of day", "height": 12, "csvFile": "times.csv",
        "shpFile": "cells.shp", "dbfFile": "cells.dbf", "projection": "EPSG:4326",
        "idColumn": "zone", "scaleFactor": 1, "lineWidth": round(WIDEST / most, 6) if most else 1,
    }  # fmt: skip
    layout = {
        "words": [{"type": "text", "title": "What this is", "file": "about.md"}],
        "map": [flows],
        "times": [of_times],
        "table": [{"type": "csv", "title": "Flows", "dataset": "flows.csv"}],
    }
    page = {
        "header": {"title": title or "Population flows", "description": f"{whence}, {time}"},
        "layout": layout,
    }
    return (json.dumps(page, indent=2, ensure_ascii=False) + "\n").encode()


def _shapefile(cells: gpd.GeoDataFrame) -> dict[str, bytes]:
    """The files of a shapefile of the cells."""
    with tempfile.TemporaryDirectory() as folder:
        cells.to_file(Path(folder) / "cells.shp", engine="pyogrio", encoding="utf-8")
        return {
            path.name: path.read_bytes()
            for path in sorted(Path(folder).iterdir())
            if path.suffix in SHAPE_PARTS
        }


def _about(result: FlowResult, time: str, source: str, missing: str) -> str:
    """What the numbers are, in Markdown; nothing in it was written by those who made the data."""
    lines = [
        f"People per {result.step_name}, {result.source_words(source)}. The flow map is of {time}; "
        "the other map has all times of day.",
        f"Not on the maps: {missing}, at {time}.",
        "Zones are numbers of cells from 1.",
        result.limit_words,
    ]
    return "\n\n".join(filter(None, lines)) + "\n"
