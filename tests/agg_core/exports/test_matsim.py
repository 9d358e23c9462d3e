"""Read back as MATSim's reader does: elements and attributes by their names."""

from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from shapely.geometry import LineString

from agg_core.evidence.examine import Asked, examine
from agg_core.evidence.lines import Screenline
from agg_core.exports.matsim import matsim_counts
from tests.agg_core import counted
from tests.faults import refused

RIVER = Screenline("river", LineString([(139.1, 34.9), (139.1, 35.4)]))
WEST, EAST = [0, 3, 6], [1, 2, 4, 5, 7, 8]
ASKED = Asked(lines=(RIVER,))


def half_hourly():
    """Two times within one hour, and one at night."""
    return replace(counted.drawn(), step_minutes=30.0, slots=("08:00", "08:30", "23:00"))


def test_volumes_are_people_per_hour_of_the_links_that_were_named():
    result = half_hourly()
    links = {("river", "eastbound"): "17", ("river", "westbound"): '18" x="'}
    root = ET.fromstring(matsim_counts(examine(result, ASKED), links, name="<city>", year=2024))
    assert (root.tag, root.get("name"), root.get("year")) == ("counts", "<city>", "2024")
    assert any(value.endswith("counts_v1.xsd") for value in root.attrib.values())
    east, west = root
    assert [count.get("loc_id") for count in root] == ["17", '18" x="']
    assert (east.tag, east.get("cs_id")) == ("count", "river eastbound")
    for count, ends in ((east, (WEST, EAST)), (west, (EAST, WEST))):
        found = {volume.get("h"): float(volume.get("val")) for volume in count}
        # Hour 9 is that from 8:00; the first hour of the day is hour 1.
        assert set(found) == {"9", "24"}
        for hour, time in (("9", "08:00"), ("24", "23:00")):
            moves = np.asarray(result.matrix(time))[np.ix_(*ends)].sum()
            assert found[hour] == pytest.approx(2 * moves)


def test_times_of_one_hour_are_their_mean():
    result = replace(half_hourly(), slots=("08:00", "08:15", "08:30"))
    assert result.times_of_day == ("08:00", "08:30")
    evidence = examine(result, ASKED)
    root = ET.fromstring(matsim_counts(evidence, {("river", "eastbound"): "17"}))
    rows = evidence.volumes.query("direction == 'eastbound' and time in ('08:00', '08:30')")
    (volume,) = root[0]
    assert float(volume.get("val")) == pytest.approx(rows["count"].mean())


def test_links_of_lines_that_were_not_examined_are_refused():
    evidence = examine(half_hourly(), ASKED)
    for links in ({}, {("bridge", "eastbound"): "17"}, {("river", "upwards"): "17"}):
        with refused("unknown-line"):
            matsim_counts(evidence, links)


def test_flows_of_no_hours_are_refused():
    links = {("river", "eastbound"): "17"}
    for result in (
        counted.drawn(),  # how long a step is was not kept
        replace(half_hourly(), slots=("noon", "day", "night")),
    ):
        with refused("no-clock"):
            matsim_counts(examine(result, ASKED), links)
