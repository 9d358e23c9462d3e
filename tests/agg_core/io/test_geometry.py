"""Places in one column: hand-worked values of each writing."""

import math

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from agg_core.base.errors import InputError
from agg_core.io.formats.delimited import open_delimited
from agg_core.io.geometry import (
    dms_to_degrees,
    geometry_to_lonlat,
    looks_like_dms,
    pair_to_columns,
)

TOKYO_LAT = 35 + 40 / 60 + 52.3 / 3600
TOKYO_LON = 139 + 46 / 60 + 1.6 / 3600


def column(*values, kind=None):
    return pa.chunked_array([pa.array(list(values), kind or pa.string())])


def degrees(*texts):
    return dms_to_degrees(column(*texts)).tolist()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("35°40'52.3\"N", TOKYO_LAT),
        ("35°40'52.3\"S", -TOKYO_LAT),
        ("N35°40’52.3’’", TOKYO_LAT),
        ("35º40’52.3”", TOKYO_LAT),
        ("35° 40′ 52.3″ N", TOKYO_LAT),
        ("35˚40´52.3´´", TOKYO_LAT),
        ("35 40 52.3 n", TOKYO_LAT),
        ("S 35 40 52.3", -TOKYO_LAT),
        ("+35:40:52.3", TOKYO_LAT),
        ("-35:40:52.3", -TOKYO_LAT),
        ("−35 40 52.3", -TOKYO_LAT),
        ("35-40-52.3N", TOKYO_LAT),
        ("35d40m52.3s N", TOKYO_LAT),
        ("35d40m52.3s S", -TOKYO_LAT),
        ("35 deg 40 min 52.3 sec North", TOKYO_LAT),
        ("35o40'52.3''", TOKYO_LAT),
        ("３５°４０′５２．３″Ｎ", TOKYO_LAT),
        ("北緯35度40分52.3秒", TOKYO_LAT),
        ("南緯35度40分52.3秒", -TOKYO_LAT),
        ("35度40分52.3秒", TOKYO_LAT),
        ("35°40'52,3\"", TOKYO_LAT),
        ("139°46'01.6\"E", TOKYO_LON),
        ("東経139度46分1.6秒", TOKYO_LON),
        ("西経139度46分1.6秒", -TOKYO_LON),
        ("139°46'01.6\" W", -TOKYO_LON),
        ("lon: 139°46'1.6\"", TOKYO_LON),
        ("35°40.872'", 35.6812),
        ("35 40.872 S", -35.6812),
        ("35.6812°N", 35.6812),
        ("35.6812 S", -35.6812),
        ("-0 30 0", -0.5),
        ("0°30'", 0.5),
        ("179°59'60\"", 180.0),
        ("35.6812", 35.6812),
    ],
)
def test_degrees_minutes_seconds(text, expected):
    assert degrees(text) == pytest.approx([expected], abs=1e-12)


@pytest.mark.parametrize(
    "text",
    ["", None, "soon", "35°60'", "35 40 61", "35.5 30 N", "35 40.5 10", "-35 N", "N35S", "1234 5",
     "2024-05-18", "35°40'52.3\"N 139°46'01.6\"E", "°", "N", "35°40'52.3\"NN"],
)  # fmt: skip
def test_what_is_no_degree(text):
    assert math.isnan(degrees(text)[0])


def test_the_writings_of_the_messy_file(shared_data):
    data = (shared_data / "messy" / "34_dms_strings.csv").read_bytes()
    rows = open_delimited(data, "34")
    loaded = next(iter(rows.batches([2, 3])))
    assert dms_to_degrees(loaded.columns[2]) == pytest.approx(
        [35.68119, 35.68450, 35.68611, -23.53599], abs=1e-5
    )
    assert dms_to_degrees(loaded.columns[3]) == pytest.approx(
        [139.76711, 139.77, 139.77236, 149.38834], abs=1e-5
    )


def test_what_looks_like_degrees():
    assert looks_like_dms(["35°40'52.3\"N", "", "35 40 52"])
    assert not looks_like_dms(["35.68", "35.69"])
    assert not looks_like_dms(["", "nan"])
    assert not looks_like_dms(["Tokyo", "Osaka", "35°40'"])


@given(
    st.integers(0, 179), st.integers(0, 59), st.integers(0, 59_999), st.sampled_from("NSEW"),
    st.sampled_from(["{h}{d}°{m}'{s}\"", "{d} {m} {s} {h}", "{d}:{m}:{s}{h}", "{d}º{m}’{s}’’{h}",
                     "{d}度{m}分{s}秒{h}", "{d}d{m}m{s}s {h}"]),
)  # fmt: skip
def test_degrees_come_back_from_every_writing(d, m, thousandths, h, form):
    text = form.format(d=d, m=m, s=thousandths / 1000, h=h)
    size = d + m / 60 + thousandths / 3_600_000
    assert degrees(text) == pytest.approx([-size if h in "SW" else size], abs=1e-10)


@given(st.lists(st.one_of(st.none(), st.text(max_size=30))))
def test_no_text_is_too_odd(texts):
    values = column(*texts)
    assert len(dms_to_degrees(values)) == len(texts)
    assert len(pair_to_columns(values).lon) == len(texts)
    assert len(geometry_to_lonlat(values).lon) == len(texts)
    assert looks_like_dms([text or "" for text in texts]) in (True, False)


def test_the_geometries_of_the_messy_file(shared_data):
    data = (shared_data / "messy" / "32_wkt_column.csv").read_bytes()
    loaded = next(iter(open_delimited(data, "32").batches([2])))
    places = geometry_to_lonlat(loaded.columns[2])
    assert places.missing.tolist() == [False, False, True, True, False, True]
    kept = ~places.missing
    assert places.lon[kept].tolist() == [139.7671, 139.77, 139.773]
    assert places.lat[kept].tolist() == [35.6812, 35.6845, 35.685]
    assert np.isnan(places.lon[~kept]).all()
    assert (places.srid, places.others) == (4326, ())


@pytest.mark.parametrize(
    "text",
    [
        "POINT(139.5 35.5)",
        " point z (139.5 35.5 10) ",
        "POINT ZM (139.5 35.5 10 1)",
        "POINT (139.5 35.5 10)",
        "SRID=4326;POINT(139.5 35.5)",
        "MULTIPOINT ((139.5 35.5))",
        shapely.Point(139.5, 35.5).wkb_hex,
        shapely.Point(139.5, 35.5, 7).wkb_hex.lower(),
        shapely.to_wkb(shapely.set_srid(shapely.Point(139.5, 35.5), 4326), True, include_srid=True),
        shapely.to_wkb(shapely.Point(139.5, 35.5), True, byte_order=0),
    ],
)
def test_a_point_in_each_writing(text):
    places = geometry_to_lonlat(column(text))
    assert (places.lon.tolist(), places.lat.tolist()) == ([139.5], [35.5])
    assert places.missing.tolist() == [False]


def test_other_geometries_are_unreadable_and_named():
    nested = "GEOMETRYCOLLECTION(" * 100_000
    places = geometry_to_lonlat(
        column("POINT(1 2)", "LINESTRING(0 0, 1 1)", "POLYGON((0 0, 1 0, 1 1, 0 0))",
               "MULTIPOINT((1 2), (3 4))", "POINT(1", "rubbish", "00ff", nested)
    )  # fmt: skip
    assert places.lon[0] == 1
    assert np.isnan(places.lon[1:]).all()
    assert not places.missing.any()
    assert places.others == ("linestring", "multipoint", "polygon")


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view()])
def test_binary_geometries(kind):
    shapes = [shapely.Point(139.5, 35.5), shapely.Point(), shapely.LineString([(0, 0), (1, 1)])]
    values = [*(shape.wkb for shape in shapes), None, b"", b"\x01\x01", bytes(1 << 20)]
    places = geometry_to_lonlat(column(*values, kind=kind))
    assert places.lon[0] == 139.5
    assert np.isnan(places.lat[1:]).all()
    assert places.missing.tolist() == [False, True, False, True, True, False, False]
    assert places.srid is None


def test_geometries_as_structures_and_in_dictionaries():
    kind = pa.struct([("x", pa.float64()), ("y", pa.float64())])
    places = geometry_to_lonlat(column({"x": 1.0, "y": 2.0}, None, kind=kind))
    assert (places.lon[0], places.lat[0], places.missing.tolist()) == (1.0, 2.0, [False, True])
    encoded = pa.chunked_array([pa.array(["POINT(1 2)", None]).dictionary_encode()])
    assert geometry_to_lonlat(encoded).lat[0] == 2.0


def test_no_rows_and_what_holds_no_geometry():
    assert len(geometry_to_lonlat(pa.chunked_array([], pa.string())).lon) == 0
    other = pa.struct([("a", pa.int64())])
    for values in (column(1.5, kind=pa.float64()), column({"a": 1}, kind=other)):
        with pytest.raises(InputError) as told:
            geometry_to_lonlat(values)
        assert told.value.code == "unusable-column-type"
    with pytest.raises(InputError) as told:
        geometry_to_lonlat(column("SRID=4326;POINT(1 2)", "SRID=6677;POINT(1 2)"))
    assert told.value.code == "mixed-crs"
    assert "4326 and 6677" in str(told.value)


@pytest.mark.parametrize(
    ("text", "lon", "lat"),
    [
        ("35.68, 139.76", 139.76, 35.68),
        ("35.1°, 139.7°", 139.7, 35.1),
        ("(35.68 139.76)", 139.76, 35.68),
        ("[35.68;139.76]", 139.76, 35.68),
        ("geo:35.68,139.76", 139.76, 35.68),
        ("35.68/-139.76", -139.76, 35.68),
        ("35,68; 139,76", 139.76, 35.68),
        ("３５．６８，１３９．７６", 139.76, 35.68),
        ("N35.68 E139.76", 139.76, 35.68),
        ("139.76W, 35.68S", -139.76, -35.68),
        ("35°40'52.3\"N 139°46'01.6\"E", TOKYO_LON, TOKYO_LAT),
        ("35°40'52.3\"N,139°46'01.6\"E", TOKYO_LON, TOKYO_LAT),
        ("E139°46'01.6\"N35°40'52.3\"", TOKYO_LON, TOKYO_LAT),
        ("北緯35度40分52.3秒、東経139度46分1.6秒", TOKYO_LON, TOKYO_LAT),
        ("10, 20", 20, 10),
    ],
)
def test_pairs_in_one_column(text, lon, lat):
    pair = pair_to_columns(column(text))
    assert (pair.lon[0], pair.lat[0]) == pytest.approx((lon, lat), abs=1e-9)


def test_the_order_of_pairs_is_one_for_the_column():
    open_order = pair_to_columns(column("10, 20", "30 40"))
    assert (open_order.guess.value, open_order.guess.alternatives) == (
        "latitude, longitude",
        ("longitude, latitude",),
    )
    settled = pair_to_columns(column("10, 20", "139.7, 35.6"))
    assert (settled.lon.tolist(), settled.lat.tolist()) == ([10, 139.7], [20, 35.6])
    assert (settled.lat_first, settled.guess.alternatives) == (False, ())
    next_batch = pair_to_columns(column("10, 20"), lat_first=settled.lat_first)
    assert (next_batch.lon[0], next_batch.lat[0]) == (10, 20)


def test_pairs_that_are_none():
    pair = pair_to_columns(column("", None, "35.68", "1,2,3", "here, there", "35°61', 139°"))
    assert np.isnan(pair.lon).all()
    assert np.isnan(pair.lat).all()
    assert pair.missing.tolist() == [True, True, False, False, False, False]
    with pytest.raises(InputError) as told:
        pair_to_columns(column(1.0, kind=pa.float64()))
    assert told.value.code == "unusable-column-type"
