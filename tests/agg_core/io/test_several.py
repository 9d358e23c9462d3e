"""Folders, archives and several files at once."""

import io
import zipfile

import pytest

from agg_core.base.errors import InputError
from agg_core.io import read_trajectories

PLT = (
    "Geolife trajectory\nWGS 84\nAltitude is in Feet\nReserved 3\n"
    "0,2,255,My Track,0,0,2,8421376\n0\n"
    "39.9,116.4,0,492,39750.125,2008-10-29,0{hour}:00:00\n"
    "39.8,116.3,0,492,39750.126,2008-10-29,0{hour}:10:00\n"
)
GPX = (
    "<gpx xmlns='http://www.topografix.com/GPX/1/1'><trk><trkseg>"
    "<trkpt lat='46.5' lon='6.6'><time>2024-02-15T06:00:00Z</time></trkpt>"
    "<trkpt lat='46.6' lon='6.7'><time>2024-02-15T06:10:00Z</time></trkpt>"
    "</trkseg></trk></gpx>"
)


def day(number, user="a"):
    return f"user_id,time,lon,lat\n{user},2024-02-0{number} 09:00,139.7,35.6\n"


def packed(files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return out.getvalue()


def users(trajectories):
    return trajectories.table["user_id"].tolist()


def test_a_file_a_day_is_one_table_of_the_same_people(tmp_path):
    files = {f"day{i}.csv": day(i) for i in (1, 2, 3)}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "README.txt").write_text("Three days.\nBy somebody.\n")
    for source in (tmp_path, packed(files), {name: text.encode() for name, text in files.items()}):
        trajectories = read_trajectories(source)
        assert users(trajectories) == ["a"] * 3
        assert trajectories.report.guesses["ids"].value == "shared"
    assert read_trajectories(tmp_path).report.guesses["files"].value == "3 of 4 read"
    own = read_trajectories(packed(files), ids="per file")
    assert users(own) == ["day1/a", "day2/a", "day3/a"]


def test_each_folder_of_tracks_is_a_person():
    files = {
        "Data/000/Trajectory/a.plt": PLT.format(hour=1),
        "Data/000/Trajectory/b.plt": PLT.format(hour=2),
        "Data/001/Trajectory/c.plt": PLT.format(hour=3),
        "Data/000/labels.txt": "Start Time\tEnd Time\tMode\n2008/10/29 01:00:00\tx\tbus\n",
    }
    trajectories = read_trajectories(packed(files))
    assert users(trajectories) == ["000"] * 4 + ["001"] * 2
    assert "labels.txt is not" in trajectories.report.guesses["files"].note


def test_tracks_without_folders_are_a_person_each():
    trajectories = read_trajectories(
        packed({"x.plt": PLT.format(hour=1), "y.plt": PLT.format(hour=2)})
    )
    assert users(trajectories) == ["x", "x", "y", "y"]


def test_tracks_of_a_device_are_a_person_a_file():
    trajectories = read_trajectories(packed({"ann.gpx": GPX, "bob.gpx": GPX}))
    assert trajectories.report.individuals == 2
    assert trajectories.report.guesses["ids"].value == "per file"
    assert all(user.startswith(("ann/", "bob/")) for user in users(trajectories))


def test_one_order_of_day_and_month_for_all_files():
    line = "user_id,time,lon,lat\na,{},139.7,35.6\n"
    files = {"1.csv": line.format("01/02/2024 09:00"), "2.csv": line.format("01/13/2024 09:00")}
    trajectories = read_trajectories(packed(files))
    assert trajectories.report.guesses["time format"].value == "month/day/year"
    assert str(trajectories.table["time"][0])[:10] == "2024-01-02"


def test_lines_are_those_of_each_file():
    files = {"1.csv": day(1), "2.csv": day(2) + "a,never,139.7,35.6\n"}
    assert read_trajectories(packed(files)).report.set_aside["unreadable time"].lines == (3,)


def test_an_archive_of_one_file_and_a_map_archive():
    assert users(read_trajectories(packed({"a.csv": day(1)}))) == ["a"]
    kml = (
        "<kml xmlns='http://www.opengis.net/kml/2.2' xmlns:gx='http://www.google.com/kml/ext/2.2'>"
        "<Placemark><name>bus</name><gx:Track><when>2024-02-15T06:00:00Z</when>"
        "<gx:coord>6.6 46.5 0</gx:coord></gx:Track></Placemark></kml>"
    )
    assert users(read_trajectories(packed({"doc.kml": kml, "icons/a.png": "x"}))) == ["bus"]


@pytest.mark.parametrize(
    ("files", "code"),
    [
        ({"inner.zip": packed({"a.csv": day(1)})}, "archive-in-archive"),
        ({"../a.csv": day(1)}, "path-leads-out"),
        ({"a.txt": "nothing\n", "b.txt": "either\n"}, "no-readable-file"),
    ],
)
def test_archives_that_are_refused(files, code):
    with pytest.raises(InputError) as told:
        read_trajectories(packed(files))
    assert told.value.code == code


def test_an_empty_folder(tmp_path):
    with pytest.raises(InputError) as told:
        read_trajectories(tmp_path)
    assert told.value.code == "no-files"


FLIGHTS = (
    "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,tailnum,"
    "origin,dest,air_time\n"
    # Two hours late across midnight: scheduled 23:00 in New York, 01:00 there is 05:00 UTC.
    "2013,7,1,100,2300,120,332,130,122,N1,JFK,ORD,120\n"
    "2013,7,1,,2300,,,130,,N2,JFK,ORD,\n"
    "2013,7,1,2301,2300,1,132,130,2,N3,JFK,XXX,120\n"
)
AIRPORTS = (
    "faa,name,lat,lon,tzone\nJFK,Kennedy,40.64,-73.78,America/New_York\n"
    "ORD,O'Hare,41.98,-87.90,America/Chicago\n"
)


def test_flights_and_their_airports(tmp_path):
    trajectories = read_trajectories(packed({"flights.csv": FLIGHTS, "airports.csv": AIRPORTS}))
    first = trajectories.table[trajectories.table["user_id"] == "N1"]
    assert first["time"].dt.strftime("%d %H:%M").tolist() == ["02 05:00", "02 08:32"]
    assert first["lon"].tolist() == [-73.78, -87.90]
    assert {cause: rows.count for cause, rows in trajectories.report.set_aside.items()} == {
        "missing time": 2,
        "missing position": 1,
    }
    (tmp_path / "flights.csv").write_text(FLIGHTS)
    with pytest.raises(InputError) as told:
        read_trajectories(tmp_path / "flights.csv")
    assert told.value.code == "no-place-table"
    (tmp_path / "airports.csv").write_text(AIRPORTS)
    beside = read_trajectories(tmp_path / "flights.csv").table
    assert beside.equals(trajectories.table)
