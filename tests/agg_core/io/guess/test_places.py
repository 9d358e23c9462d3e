"""Places in every writing, through the reader of a file's place columns."""

import pyarrow as pa
import pytest

from agg_core.base.errors import InputError
from agg_core.io.guess.places import PlaceReader

TOKYO = (139.767125, 35.681236)  # and by the plane rectangular system IX of JGD2011:
IN_SYSTEM_9 = (-5995.0, -35367.5)


def column(*values):
    return pa.chunked_array([pa.array(values)])


def read(columns, **how):
    reader = PlaceReader(columns, **how)
    places = reader.read(columns)
    return [*zip(places.lon.tolist(), places.lat.tolist(), strict=True)], reader, places


def test_degrees_by_point_comma_and_number():
    for lon, lat in ((139.5, 35.25), ("139.5", "35.25"), ("139,5", "35,25"), (" 139.5 ", "+35.25")):
        assert read({"lon": column(lon), "lat": column(lat)})[0] == [(139.5, 35.25)]


def test_why_a_row_has_no_place():
    lon = column("139.5", "", "east", "181", "0", "139.6")
    lat = column("35.5", "35.5", "35.5", "35.5", "0.0", "nan")
    _, _, places = read({"lon": lon, "lat": lat})
    assert {cause: mask.nonzero()[0].tolist() for cause, mask in places.causes.items()} == {
        "missing position": [1, 5],
        "unreadable position": [2],
        "position out of range": [3],
        "position at 0, 0": [4],
    }


def test_other_units_are_told_by_their_size():
    places, reader, _ = read({"lon": column(1397671000), "lat": column(356812000)})
    assert places == [(pytest.approx(139.7671), pytest.approx(35.6812))]
    assert reader.guesses["degrees"].value == "degrees times ten million"
    places, reader, _ = read({"lon": column(190.0, 200.0), "lat": column(-10.0, -20.0)})
    assert [lon for lon, _ in places] == [-170.0, -160.0]
    assert reader.guesses["longitudes"].value == "0 to 360 degrees east"


@pytest.mark.parametrize(
    ("x", "y", "code"),
    [
        (15558802.4, 4256843.2, "EPSG:3857"),
        (388_000.0, 3_949_000.0, "EPSG:NUMBER"),
        (-5995.0, -35367.5, "EPSG:NUMBER"),
    ],
)
def test_metres_are_asked_for_with_a_system_only_where_the_whole_world_has_it(x, y, code):
    with pytest.raises(InputError) as told:
        read({"lon": column(x), "lat": column(y)})
    assert told.value.code == "projected-places"
    assert told.value.option == f"--crs {code}"


def test_metres_of_a_stated_system():
    for crs in ("EPSG:6677", "6677", "epsg:6677"):
        (place,), _, _ = read(
            {"lon": column(IN_SYSTEM_9[0]), "lat": column(IN_SYSTEM_9[1])}, crs=crs
        )
        assert place == pytest.approx(TOKYO, abs=2e-3)


@pytest.mark.parametrize(
    "crs",
    ["EPSG:999999", "+init=epsg:6677", "+proj=utm +zone=54", "/etc/passwd", "ESRI:102100"],
)  # fmt: skip
def test_a_system_is_stated_by_its_code_alone(crs):
    """Other texts could make PROJ open files."""
    with pytest.raises(InputError) as told:
        read({"lon": column(1.0), "lat": column(1.0)}, crs=crs)
    assert told.value.code == "unknown-crs"


def test_a_geometry_may_name_its_system():
    text = f"SRID=6677;POINT ({IN_SYSTEM_9[0]} {IN_SYSTEM_9[1]})"
    (place,), reader, _ = read({"geometry": column(text)})
    assert place == pytest.approx(TOKYO, abs=2e-3)
    assert reader.guesses["coordinates"].value == "EPSG:6677"


def test_two_numbers_in_one_column():
    places, reader, _ = read({"place": column("35.68, 139.76", "(35.69 139.77)")})
    assert places == [(139.76, 35.68), (139.77, 35.69)]
    assert "pairs" in reader.guesses


def test_swapped_on_request():
    columns = {"lon": column(35.6), "lat": column(139.7)}
    with pytest.raises(InputError) as told:
        read(columns)
    assert told.value.code == "coordinates-swapped"
    assert read(columns, swap_axes=True)[0] == [(139.7, 35.6)]
