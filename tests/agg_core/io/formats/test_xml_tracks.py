import codecs
import time
import tracemalloc
from xml.sax.saxutils import escape

import numpy as np
import pytest
from hypothesis import given, settings

from agg_core.base.errors import InputError
from agg_core.io.formats.xml_tracks import open_xml_tracks, recognises_xml
from tests.agg_core.io.documents import JOURNEYS, as_rows, columns, left_out, outcomes

FIX = ("user_id", "time", "lon", "lat")


def opened(document):
    return open_xml_tracks(document.encode(), "day.gpx")


def point(lon, lat, when="", tag="trkpt"):
    inside = f"<time>{when}</time>" if when else ""
    return f'<{tag} lat="{lat}" lon="{lon}">{inside}</{tag}>'


def track(*points, name=""):
    named = f"<name>{escape(name)}</name>" if name else ""
    return f"<trk>{named}<trkseg>{''.join(points)}</trkseg></trk>"


def gpx(*content):
    return f'<gpx xmlns="http://www.topografix.com/GPX/1/1">{"".join(content)}</gpx>'


def kml(*content):
    spaces = 'xmlns="http://www.opengis.net/kml/2.2" xmlns:gx="http://www.google.com/kml/ext/2.2"'
    return f"<kml {spaces}><Document>{''.join(content)}</Document></kml>"


def placemark(*content, name=""):
    return f"<Placemark><name>{escape(name)}</name>{''.join(content)}</Placemark>"


def gx_track(whens, coords):
    return (
        "<gx:Track>"
        + "".join(f"<when>{when}</when>" for when in whens)
        + "".join(f"<gx:coord>{coord}</gx:coord>" for coord in coords)
        + "</gx:Track>"
    )


def at(hour, day=1):
    return f"2024-05-{day:02d}T{hour:02d}:00:00Z"


def test_gpx_gives_a_row_per_point_and_leaves_other_elements_alone():
    document = """<?xml version="1.0"?>
    <g:gpx xmlns:g="http://www.topografix.com/GPX/1/0"><g:metadata><g:name>file</g:name>
    <g:time>2000-01-01T00:00:00Z</g:time></g:metadata><g:trk><g:name> Ann </g:name>
    <g:trkseg><g:trkpt lat="35.5" lon="139.25"><g:ele>3</g:ele><g:time> 2024-05-01T08:00:00+09:00
    </g:time><g:extensions><x:trkpt xmlns:x="x" lat="1" lon="1"><x:time>1990</x:time></x:trkpt>
    </g:extensions></g:trkpt></g:trkseg><g:trkseg><g:trkpt lat="36" lon="140"/>
    <g:trkpt lat="north" lon="140"><g:time>2024-05-01T08:10:00</g:time></g:trkpt></g:trkseg>
    </g:trk></g:gpx>"""
    source = opened(document)
    assert columns(source, *FIX, "segment") == [
        ("Ann", "2024-05-01T08:00:00+09:00", 139.25, 35.5, "1"),
        ("Ann", None, 140.0, 36.0, "2"),
        ("Ann", "2024-05-01T08:10:00", 140.0, None, "2"),
    ]
    assert source.sample[1][:4] == ["Ann", "", "140.0", "36.0"]
    assert source.has_header


@pytest.mark.parametrize(
    ("tracks", "people"),
    [
        ([("", 8, 9)], ["1"]),
        ([("Ann", 8, 9)], ["Ann"]),
        ([("Ann", 8, 9), ("Bob", 10, 11)], ["Ann", "Bob"]),
        ([("Ann", 8, 9), ("Ann", 8, 11)], ["Ann", "Ann"]),
        ([("", 8, 9), ("", 10, 11)], ["1", "1"]),
        ([("", 8, 10), ("", 9, 11)], ["track 1", "track 2"]),
        ([("", 9, 8), ("", 11, 10)], ["1", "1"]),
        ([("2024-05-01 walk", 8, 9), ("2024-05-02 ride", 10, 11)], ["1", "1"]),
        ([("2024-05-01 A", 8, 10), ("2024-05-01 B", 9, 11)], ["2024-05-01 A", "2024-05-01 B"]),
        ([("Ann", 8, 9), ("", 10, 11)], ["Ann", "track 2"]),
    ],
)
def test_who_the_tracks_of_a_gpx_are(tracks, people):
    source = opened(
        gpx(*(track(*(point(1, 2, at(h)) for h in hours), name=name) for name, *hours in tracks))
    )
    assert columns(source, "user_id")[::2] == [(person,) for person in people]
    assert set(columns(source, "person")) == {("1",)}
    several = len(tracks) > 1 and {name for name, *_ in tracks} != {"Ann"}
    assert ("people" in source.guesses) == several


def test_the_guess_names_the_column_that_changes_it():
    dated = [track(point(1, 2, at(8, d)), point(1, 2, at(9, d)), name=at(8, d)) for d in (1, 2)]
    guess = opened(gpx(*dated)).guesses["people"]
    assert (guess.value, guess.alternatives) == ("one person", ("track",))
    assert columns(opened(gpx(*dated)), "track")[::2] == [(at(8, 1),), (at(8, 2),)]
    named = [track(point(1, 2, at(8)), point(1, 2, at(9)), name=name) for name in "ab"]
    guess = opened(gpx(*named)).guesses["people"]
    assert (guess.value, guess.alternatives) == ("one person per track", ("person",))


def test_waypoints_count_only_without_tracks():
    waypoint = point(5, 6, at(7), "wpt")
    beside = opened(gpx(waypoint, track(point(1, 2, at(8)))))
    assert columns(beside, *FIX) == [("1", at(8), 1.0, 2.0)]
    assert left_out(beside) == {"waypoints beside track points": (1, (1,))}
    assert beside.load([0]).line_numbers(np.array([0])).tolist() == [2]
    assert columns(opened(gpx(waypoint)), *FIX) == [("1", at(7), 5.0, 6.0)]
    route = f"<rte><number>7</number>{point(3, 4, at(9), 'rtept')}</rte>"
    assert columns(opened(gpx(route)), *FIX) == [("7", at(9), 3.0, 4.0)]


def test_points_out_of_order_and_at_one_time_are_handed_on(shared_data):
    twice = shared_data / "messy" / "23_duplicate_timestamps.gpx"
    rows = columns(open_xml_tracks(twice.read_bytes(), twice.name), *FIX)
    assert [row[1][-3:-1] for row in rows] == ["26", "27", "27", "27", "28"]
    assert rows[-1] == ("t", "2016-02-15T06:34:28Z", 6.5998, 46.50012)
    future = shared_data / "messy" / "25_reverse_and_future_time.gpx"
    rows = columns(open_xml_tracks(future.read_bytes(), future.name), *FIX)
    assert rows[1] == ("1", "2043-04-25T03:19:00Z", 138.732, 35.3603)
    assert [row[1][14:16] for row in rows] == ["20", "19", "18", "17"]


def test_tracks_without_times_are_explained(shared_data):
    path = shared_data / "messy" / "26_gpx_no_time.gpx"
    with pytest.raises(InputError) as refusal:
        open_xml_tracks(path.read_bytes(), path.name)
    assert str(refusal.value) == (
        "26_gpx_no_time.gpx has no timestamps (none of its 3 points has a <time>); "
        "flows need times: export the track with times."
    )


def test_kml_tracks_pair_times_and_places_in_order():
    whens = [at(8), "", at(10)]
    coords = ["139.7 35.6 4", "139.8 35.7", ""]
    source = opened(kml(placemark(gx_track(whens, coords), name="Ann")))
    assert columns(source, *FIX) == [
        ("Ann", at(8), 139.7, 35.6),
        ("Ann", None, 139.8, 35.7),
        ("Ann", at(10), None, None),
    ]


def test_a_kml_track_with_unequal_times_is_left_out_whole():
    good, bad = gx_track([at(8)], ["1 2"]), gx_track([at(9)], ["3 4", "5 6"])
    source = opened(kml(placemark(f"<gx:MultiTrack>{bad}{good}</gx:MultiTrack>", name="Ann")))
    assert columns(source, *FIX, "segment") == [("Ann", at(8), 1.0, 2.0, "2")]
    assert left_out(source) == {"fewer times than points": (2, (1, 2))}
    with pytest.raises(InputError) as told:
        opened(kml(placemark(gx_track([at(8), at(9)], ["1 2"]))))
    assert told.value.code == "no-times"
    assert "more times than points (1)" in str(told.value)


def test_kml_points_take_a_stamp_or_both_ends_of_a_span():
    stamp = f"<TimeStamp><when>{at(8)}</when></TimeStamp>"
    span = f"<TimeSpan><begin>{at(9)}</begin><end>{at(11)}</end></TimeSpan>"
    places = "<Point><coordinates> 1.5,2.5,0 </coordinates></Point>"
    line = "<LineString><coordinates>1,2 3,4</coordinates></LineString>"
    source = opened(
        kml(
            f"<Folder><name>week</name>{placemark(places, stamp, name='Ann')}</Folder>",
            placemark(span, places, line, name="Ann"),
            placemark(places, name="Ann"),
        )
    )
    assert columns(source, *FIX) == [
        ("Ann", at(8), 1.5, 2.5),
        ("Ann", at(9), 1.5, 2.5),
        ("Ann", at(11), 1.5, 2.5),
        ("Ann", None, 1.5, 2.5),
    ]
    assert left_out(source) == {"lines and areas, whose points have no times": (1, (3,))}


def test_kml_points_of_names_of_their_own_are_one_person():
    stamps = [f"<TimeStamp><when>{at(8 + i)}</when></TimeStamp>" for i in range(3)]
    places = "<Point><coordinates>1,2</coordinates></Point>"
    marks = [placemark(stamp, places, name=f"Point {i}") for i, stamp in enumerate(stamps)]
    source = opened(kml(*marks))
    assert columns(source, "user_id", "track") == [("1", f"Point {i}") for i in range(3)]
    assert source.guesses["people"].alternatives == ("track",)


def test_tcx_activities_are_read():
    lost = f"<Trackpoint><Time>{at(9)}</Time></Trackpoint>"
    fixed = (
        f"<Trackpoint><Time>{at(8)}</Time><Position><LatitudeDegrees>35.5</LatitudeDegrees>"
        "<LongitudeDegrees>139.5</LongitudeDegrees></Position></Trackpoint>"
    )
    source = opened(
        f"<TrainingCenterDatabase><Activities><Activity Sport='Running'><Id>{at(8)}</Id>"
        f"<Lap><Track>{fixed}{lost}</Track></Lap></Activity></Activities></TrainingCenterDatabase>"
    )
    assert columns(source, *FIX) == [
        (at(8), at(8), 139.5, 35.5),
        (at(8), at(9), None, None),
    ]


@pytest.mark.parametrize(
    ("document", "kind"),
    [
        ("<!DOCTYPE html><html><body></body></html>", "a web page"),
        ("<html></html>", "a web page"),
        ("<osm></osm>", "OpenStreetMap map data"),
        ("<gml:FeatureCollection xmlns:gml='g'/>", "GML"),
        ("<a:plan xmlns:a='a'/>", "XML of another kind (<plan>)"),
    ],
)
def test_xml_of_another_kind_is_called_what_it_is(document, kind):
    with pytest.raises(InputError) as told:
        opened(document)
    assert told.value.code == "unsupported-xml"
    assert str(told.value).startswith(f"day.gpx is {kind}")


@pytest.mark.parametrize(
    ("document", "code"),
    [
        ("<gpx/>", "no-points"),
        ("<kml/>", "no-points"),
        (
            kml(placemark("<Point><coordinates>1,2</coordinates></Point>")),
            "no-times",
        ),
        (gpx(track(point(1, 2, at(8))))[:-9], "breaks-off-early"),
        ("<gpx><trk></gpx>", "malformed-xml"),
        ("<gpx a='1' a='2'/>", "malformed-xml"),
        ("<gpx>&lol;</gpx>", "malformed-xml"),
        ("<gpx>\0</gpx>", "malformed-xml"),
        ("<", "breaks-off-early"),
        ("", "no-xml-element"),
        ("<?xml version='1.0' encoding='zlib_codec'?><gpx/>", "unknown-encoding"),
        ("<?xml version='1.0' encoding='euc-kr'?><gpx>東é</gpx>", "wrong-encoding"),
        (gpx(track(point(1, 2, at(8)), name="n" * 201)), "name-too-long"),
        (gpx(track(point(1, 2, "9" * 20_000))), "text-too-long"),
        ("<gpx>" + "<a>" * 500, "nested-too-deep"),
        ("<gpx>" + "".join(f"<a{i}/>" for i in range(30_000)), "too-many-element-kinds"),
    ],
)
def test_what_cannot_be_read_is_named(document, code):
    with pytest.raises(InputError) as refusal:
        opened(document)
    assert refusal.value.code == code
    assert str(refusal.value).startswith("day.gpx ")


def test_the_line_and_the_fault_are_told():
    with pytest.raises(InputError) as told:
        opened("<gpx>\n<trk></gpx>")
    assert "(line 2: mismatched tag)" in str(told.value)


LAUGHS = "".join(f'<!ENTITY l{i + 1} "{f"&l{i};" * 10}">' for i in range(9))
BOMBS = {
    "billion laughs": f'<!DOCTYPE g [<!ENTITY l0 "ha">{LAUGHS}]><gpx>&l9;</gpx>',
    "quadratic": f'<!DOCTYPE g [<!ENTITY a "{"a" * 50_000}">]><gpx>{"&a;" * 50_000}</gpx>',
    "outside": '<!DOCTYPE g [<!ENTITY x SYSTEM "file:///etc/passwd">]><gpx>&x;</gpx>',
    "attribute": '<gpx><trk><trkpt lat="' + "1" * 30_000_000 + '" lon="1"/></trk></gpx>',
    "attributes": "<gpx " + " ".join(f'a{i}="1"' for i in range(700_000)) + "></gpx>",
    "comment": "<gpx><!--" + "-a" * 10_000_000 + "--></gpx>",
    "nested": "<gpx>" + "<a>" * 3_000_000,
    "text": "<gpx><trk><name>" + "a" * 20_000_000 + "</name></trk></gpx>",
}


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        *[(kind, "xml-doctype") for kind in ("billion laughs", "quadratic", "outside")],
        *[(kind, "tag-too-long") for kind in ("attribute", "attributes", "comment")],
        ("nested", "nested-too-deep"),
        ("text", "text-too-long"),
    ],
)
def test_bombs_are_refused_soon_and_in_little_memory(kind, code):
    document = BOMBS[kind].encode()
    began = time.process_time()
    tracemalloc.start()
    with pytest.raises(InputError) as told:
        open_xml_tracks(document, "bomb")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert told.value.code == code
    assert time.process_time() - began < 5
    assert peak < 20 * max(len(document), 1 << 20)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "shift_jis", "euc-jp"])
def test_names_survive_the_encoding(encoding):
    declared = encoding.removesuffix("-sig")
    document = f'<?xml version="1.0" encoding="{declared}"?>' + gpx(
        track(point(1, 2, at(8)), name="渋谷")
    )
    data = document.encode(encoding)
    assert recognises_xml(data[:4096])
    assert columns(open_xml_tracks(data, "day.gpx"), "user_id") == [("渋谷",)]


def test_xml_is_recognised_by_its_first_bytes():
    assert recognises_xml(b"\n <gpx>")
    assert recognises_xml(codecs.BOM_UTF8 + b"<?xml")
    assert recognises_xml("<kml>".encode("utf-16"))
    assert not recognises_xml(b'{"a": "<"}')
    assert not recognises_xml(b"")


def write_gpx(journeys):
    return gpx(
        *(
            track(*(point(lon, lat, when) for when, lon, lat in fixes), name=person)
            for person, fixes in journeys.items()
        )
    )


def write_kml(journeys):
    return kml(
        *(
            placemark(
                gx_track([fix[0] for fix in fixes], [f"{lon} {lat} 0" for _, lon, lat in fixes]),
                name=person,
            )
            for person, fixes in journeys.items()
        )
    )


@settings(max_examples=60, deadline=None)
@given(JOURNEYS)
def test_what_is_written_is_read_back(journeys):
    for write in (write_gpx, write_kml):
        assert columns(opened(write(journeys)), *FIX) == as_rows(journeys)


def test_damaged_documents_only_ever_give_an_input_error():
    stamp = (
        f"<TimeStamp><when>{at(8)}</when></TimeStamp><Point><coordinates>1,2</coordinates></Point>"
    )
    documents = (
        gpx(track(point(1, 2, at(8)), point(1, 2, at(9)), name="東"), point(1, 2, at(7), "wpt")),
        kml(placemark(gx_track([at(8), at(9)], ["1 2", "3 4"]), name="a"), placemark(stamp)),
    )
    for document in documents:
        whole = f'<?xml version="1.0" encoding="UTF-8"?>{document}'.encode()
        read, refused = outcomes(open_xml_tracks, whole)
        assert read > 0
        assert refused > 50
