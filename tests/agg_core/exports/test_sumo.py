import io
import re
import zipfile
from dataclasses import replace

import pytest
import shapely
import sumolib

from agg_core.evidence.limited import limited
from agg_core.evidence.privacy import Limit
from agg_core.exports.sumo import has_clock, sumo
from tests.agg_core import counted, tiny
from tests.agg_core.exports import by_hand
from tests.agg_core.exports.by_hand import MORNING
from tests.faults import refused


def unpacked(content, folder):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        archive.extractall(folder)
        return archive.namelist()


@pytest.fixture
def files(tmp_path):
    names = unpacked(sumo(by_hand.result()), tmp_path)
    assert names == [
        "zones.taz.xml", "zones.poly.xml", "trips.od.xml", "trips-08-00.od", "trips-23-30.od",
        "README.txt",
    ]  # fmt: skip
    return tmp_path


@pytest.mark.parametrize("name", ["zones.taz.xml", "zones.poly.xml"])
def test_sumolib_reads_the_zones(files, name):
    zones = sumolib.shapes.polygon.read(str(files / name), includeTaz=True)
    assert [zone.id for zone in zones] == [str(cell) for cell in range(9)]
    for zone, polygon in zip(zones, by_hand.result().states.grid.polygons, strict=True):
        assert shapely.Polygon(zone.shape).symmetric_difference(polygon).area < 1e-9
    assert name == "zones.taz.xml" or {zone.geo for zone in zones} == {"true"}


def test_sumolib_reads_the_trips_of_every_time(files):
    intervals = list(sumolib.xml.parse(str(files / "trips.od.xml"), "interval"))
    assert [(i.begin, i.end) for i in intervals] == [("28800", "32400"), ("84600", "88200")]
    found = {
        (int(relation.attr_from), int(relation.to)): float(relation.count)
        for relation in intervals[0].tazRelation
    }
    # No stays, nobody from or to the outside.
    assert found == {(0, 1): 2.5, (1, 0): 0.5}
    names = sumolib.xml.parse(str(files / "zones.taz.xml"), "taz")
    assert next(iter(names)).attr_name == "row 0, column 0"


def test_the_matrix_of_a_time_is_in_the_o_format(files):
    lines = (files / "trips-23-30.od").read_text().splitlines()
    assert lines[0] == "$OR;D2"
    told = [line for line in lines[1:] if not line.startswith("*")]
    assert told == ["23.30 24.30", "1.00", "4 0 7.000000"]


def test_people_of_several_days_are_those_of_a_mean_day(tmp_path):
    _, result = tiny.run(
        tiny.people_of_two_days(),
        tiny.settings(window=replace(tiny.HOURLY, times=("08:00",)), iterations=1),
    )
    assert result.days_summed == 2
    unpacked(sumo(result, "counted"), tmp_path)
    relations = sumolib.xml.parse(str(tmp_path / "trips.od.xml"), "tazRelation")
    day = tiny.counted_by_hand(tiny.day_states()[:, 8:11])
    moves = sum(count for (origin, dest), count in day.items() if origin != dest)
    assert sum(float(relation.count) for relation in relations) == pytest.approx(moves, rel=1e-4)


def test_the_words_tell_who_makes_no_trip_and_what_is_withheld(files):
    text = (files / "README.txt").read_text()
    assert re.search(r"08:00: 4\.0 people .* 1\.8 who", text)
    with zipfile.ZipFile(io.BytesIO(sumo(limited(by_hand.of_means(), Limit(2))))) as archive:
        assert Limit(2).words in archive.read("README.txt").decode()
        assert b'"1" to="0"' not in archive.read("trips.od.xml")


def test_a_hostile_name_is_text(tmp_path):
    cells = ('<taz id="x"/>', "a\x00b\ud800", *(f"cell {i}" for i in range(2, 9)))
    unpacked(sumo(replace(counted.study(), cells=cells, step_minutes=60)), tmp_path)
    zones = list(sumolib.xml.parse(str(tmp_path / "zones.taz.xml"), "taz"))
    assert zones[0].attr_name == '<taz id="x"/>'
    assert zones[1].attr_name == "a b "
    assert len(zones) == 9


def test_periods_that_are_no_clock_times_are_no_demand():
    study = replace(
        counted.study(), slots=("weekday, day", "noon", "holiday, day"), step_minutes=60
    )
    assert not has_clock(study)
    assert not has_clock(replace(counted.placeless(), step_minutes=60))
    assert not has_clock(counted.study())  # how long a step is was not kept
    with refused("no-clock"):
        sumo(study)
    with refused("cells-without-place"):
        sumo(counted.placeless())
    assert MORNING in by_hand.result().times
