"""Volumes across screenlines as counts for MATSim, which holds them against links of its network.

There is no such file of flows alone: MATSim counts who passes a link, and a flow between two cells
passes many. A line that was drawn across one link, or across several that are told one by one, is
what both have in common, so that whoever asks for the file says which link each direction is.
"""

from __future__ import annotations

from collections.abc import Mapping
from xml.etree import ElementTree as ET  # it writes here, and reads nothing

from agg_core.base.errors import InputError
from agg_core.evidence.examine import Evidence

__all__ = ["matsim_counts"]

SCHEMAS = "http://www.w3.org/2001/XMLSchema-instance"
COUNTS_SCHEMA = "http://matsim.org/files/dtd/counts_v1.xsd"
"""By which MATSim knows what kind of file it is."""


def matsim_counts(
    evidence: Evidence, links: Mapping[tuple[str, str], str], *, name: str = "", year: int = 2000
) -> bytes:
    """Counts (counts.xml) by hour of the day, of each screenline and direction that has a link.

    ``links`` have the id of a link of the network by name of the line and direction. Volumes are
    people per hour, in the mean of the times that begin within the hour; hour 1 is that from
    midnight. ``name`` and ``year`` stand in the file. People are no vehicles: MATSim's scale factor
    of counts is how many of its agents stand for one.

    Raises
    ------
    InputError
        If there is no link, one has no such volume, or volumes are not those of hours of a day.
    """
    volumes = evidence.volumes
    times = [time for time in evidence.times if time[:2].isdigit() and time[2:3] == ":"]
    if evidence.unit != "people per hour" or not times:
        raise InputError(
            "Counts for MATSim are people per hour at hours of the day, which these are not; "
            "examine flows by time of day, of which the length of a step is known.",
            code="no-clock",
        )
    known = set(zip(volumes["line"], volumes["direction"], strict=True))
    missing = next((pair for pair in links if pair not in known), None)
    if missing is not None or not links:
        raise InputError(
            "There is no link to count at; give links by name of a screenline and direction."
            if missing is None
            else f"No volume is that across {missing[0]} {missing[1]}; give links of lines and "
            "directions that were examined.",
            code="unknown-line",
        )
    root = ET.Element(
        "counts",
        {f"{{{SCHEMAS}}}noNamespaceSchemaLocation": COUNTS_SCHEMA, "name": _text(name),
         "desc": evidence.unit, "year": str(year), "layer": "0"},
    )  # fmt: skip
    for (line, direction), link in links.items():
        mine = (volumes["line"] == line) & (volumes["direction"] == direction)
        rows = volumes.loc[mine & volumes["time"].isin(times)]
        hours = rows.groupby(rows["time"].str[:2].astype(int))["count"].mean()
        count = ET.SubElement(root, "count", loc_id=_text(link), cs_id=_text(f"{line} {direction}"))
        for hour, people in hours.items():
            ET.SubElement(count, "volume", h=str(int(str(hour)) + 1), val=f"{people:.6g}")
    ET.register_namespace("xsi", SCHEMAS)
    ET.indent(root)
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _text(text: str) -> str:
    """Text without what XML has no place for."""
    return "".join(c if c.isprintable() else " " for c in text)
