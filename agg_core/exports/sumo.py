"""Demand for SUMO: zones, and trips between them at every time of day."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree as ET  # it writes here, and reads nothing

import numpy as np
import pandas as pd

from agg_core.base.clock import clock_minutes
from agg_core.base.errors import InputError
from agg_core.exports.tables import is_drawable, left_out, zip_bytes
from agg_core.space.grid import BaseGrid
from agg_core.study.result import ESTIMATE, FlowResult

__all__ = ["has_clock", "sumo"]

DECIMALS = 6

VEHICLES = "DEFAULT_VEHTYPE"
"""The id of an interval, which od2trips takes for the type of the vehicles that it makes."""

CLOCK = re.compile(r"[0-2]\d:[0-5]\d")


def has_clock(result: FlowResult) -> bool:
    """Whether cells have places, steps a length, and times are those of a clock."""
    clock = all(CLOCK.fullmatch(time) for time in result.times_of_day)
    known = bool(result.times_of_day) and result.step_minutes is not None
    return clock and known and result.states.grid is not None


def sumo(result: FlowResult, source: str = ESTIMATE) -> bytes:
    """A zip for SUMO: zones.taz.xml, zones.poly.xml, trips.od.xml, trips-HH-MM.od and README.txt.

    Zones are the cells by number in degrees, each by the outer ring of its largest part: as traffic
    assignment zones without edges, and as polygons that ``polyconvert`` lays on a network. Trips
    are people of one source who move to another cell within the step that begins at each time of
    day, on a mean day, as relations of intervals (``od2trips --tazrelation-files``) and, time by
    time, as matrices in the O-format (``od2trips --od-matrix-files``). Who stays, and who comes
    from or goes to the outside, makes no trip between zones: README.txt says how many these are.

    Raises
    ------
    InputError
        If cells have no place, the length of a step is not known, or times are none of a clock.
    """
    grid = result.states.placed_grid
    if not has_clock(result):
        raise InputError(
            "Trips for SUMO need times of a clock and the length of a step, which these flows have "
            "not; take the flows as a table.",
            code="no-clock",
        )
    step_s = round(float(result.step_minutes or 0) * 60)
    of_times, notes = {}, []
    for time in result.times_of_day:
        rows = result.rows(time, source)
        rows["count"] /= result.days_summed
        notes.append(f"{time}: {left_out(rows, grid.n_cells)}")
        of_times[time] = rows.loc[is_drawable(rows, grid.n_cells) & (rows["count"] > 0)]
    files = {
        "zones.taz.xml": _zones(result, grid),
        "zones.poly.xml": _polygons(grid),
        "trips.od.xml": _relations(of_times, step_s),
        **{f"trips-{time.replace(':', '-')}.od": _matrix(rows, time, step_s)
           for time, rows in of_times.items()},
        "README.txt": _readme(result, source, notes),
    }  # fmt: skip
    return zip_bytes(files)


def _rings(grid: BaseGrid) -> list[str]:
    """The outer ring of the largest part of each cell as "lon,lat lon,lat ..."."""
    import shapely  # noqa: PLC0415

    rings = []
    for polygon in grid.polygons:
        parts = shapely.get_parts(polygon)
        largest = parts[int(np.argmax(shapely.area(parts)))]
        ring = shapely.get_coordinates(shapely.get_exterior_ring(largest)).round(DECIMALS)
        rings.append(" ".join(f"{lon:.{DECIMALS}f},{lat:.{DECIMALS}f}" for lon, lat in ring))
    return rings


def _zones(result: FlowResult, grid: BaseGrid) -> bytes:
    root = ET.Element("additional")
    zones = ET.SubElement(root, "tazs")
    for number, (name, ring) in enumerate(zip(result.states.cells, _rings(grid), strict=True)):
        # XML has no place for other control characters.
        text = "".join(c if c.isprintable() else " " for c in name)
        ET.SubElement(zones, "taz", id=str(number), name=text, shape=ring)
    return _xml(root)


def _polygons(grid: BaseGrid) -> bytes:
    root = ET.Element("additional")
    for number, ring in enumerate(_rings(grid)):
        ET.SubElement(
            root, "poly", id=str(number), type="zone", color="0,114,178", fill="false", geo="true",
            shape=ring,
        )  # fmt: skip
    return _xml(root)


def _relations(of_times: dict[str, pd.DataFrame], step_s: int) -> bytes:
    root = ET.Element("data")
    for time, rows in of_times.items():
        begin = round(clock_minutes(time) * 60)
        interval = ET.SubElement(
            root, "interval", id=VEHICLES, begin=str(begin), end=str(begin + step_s)
        )
        for origin, dest, count in zip(rows["origin"], rows["dest"], rows["count"], strict=True):
            ET.SubElement(
                interval, "tazRelation",
                {"from": str(origin), "to": str(dest), "count": f"{count:.6g}"},
            )  # fmt: skip
    return _xml(root)


def _matrix(rows: pd.DataFrame, time: str, step_s: int) -> bytes:
    """Trips of one step in the O-format: a line per pair of zones."""
    begin = clock_minutes(time)
    ends = " ".join(_hours(minutes) for minutes in (begin, begin + step_s / 60))
    pairs = zip(rows["origin"], rows["dest"], rows["count"], strict=True)
    lines = [f"{origin} {dest} {count:.6f}" for origin, dest, count in pairs]
    head = ["$OR;D2", "* From-Time To-Time", ends, "* Factor", "1.00", "* from to people"]
    return ("\n".join([*head, *lines]) + "\n").encode()


def _hours(minutes: float) -> str:
    whole, rest = divmod(round(minutes), 60)
    return f"{whole}.{rest:02d}"


def _readme(result: FlowResult, source: str, notes: Sequence[str]) -> bytes:
    lines = [
        f"People per {result.step_name} on a mean day, {result.source_words(source)}.",
        result.limit_words,
        "",
        "Zones are in degrees (WGS84). To give them the edges of a network net.xml:",
        "  polyconvert -n net.xml --xml-files zones.poly.xml -o zones.xml",
        "  edgesInDistricts.py -n net.xml -t zones.xml -o districts.taz.xml",
        "  od2trips -n districts.taz.xml --tazrelation-files trips.od.xml -o trips.xml",
        "People are no vehicles: --scale is how many vehicles a person makes.",
        "",
        "No trips between zones:",
        *notes,
    ]
    return ("\n".join(lines) + "\n").encode()


def _xml(root: ET.Element) -> bytes:
    ET.indent(root)
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"
