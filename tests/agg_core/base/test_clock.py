import numpy as np
import pytest

from agg_core.base.clock import check_zone, later_on_the_clock, offset_zone, to_local, to_utc
from tests.faults import refused


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("Asia/Tokyo", "Asia/Tokyo"),
        (" utc ", "UTC"),
        ("Z", "UTC"),
        ("+09:00", "UTC+09:00"),
        ("UTC+9", "UTC+09:00"),
        ("-0330", "UTC-03:30"),
        ("UTC+00:00", "UTC"),
    ],
)
def test_zones_get_one_spelling(given, name):
    assert check_zone(given) == name


@pytest.mark.parametrize(
    "bad", ["Tokio", "../../etc/passwd", "/etc/localtime", "", "Asia", "+99:00"]
)
def test_unknown_zones_are_refused_by_name(bad):
    with refused("unknown-time-zone"):
        check_zone(bad)


def test_offset_zone_names_whole_and_half_hours():
    assert [offset_zone(m) for m in (0, 540, -210)] == ["UTC", "UTC+09:00", "UTC-03:30"]


def test_constant_offsets_and_names_agree_in_tokyo():
    utc = np.array(["2013-07-01T00:00:53", "2013-12-31T15:00:00"], dtype="datetime64[us]")
    expected = np.array(["2013-07-01T09:00:53", "2014-01-01T00:00:00"], dtype="datetime64[us]")
    for zone in ("Asia/Tokyo", "UTC+09:00"):
        assert (to_local(utc, zone) == expected).all()
        assert (to_utc(expected, zone).utc == utc).all()


def test_skipped_and_repeated_hours_are_told_apart():
    local = np.array(
        ["2018-03-25T02:30", "2018-10-28T02:30", "2018-10-28T03:30", "NaT"], dtype="datetime64[us]"
    )
    reading = to_utc(local, "Europe/Copenhagen")
    assert reading.missing.tolist() == [True, False, False, False]
    assert reading.repeated.tolist() == [False, True, False, False]
    assert np.isnat(reading.utc).tolist() == [True, True, False, True]
    assert reading.utc[2] == np.datetime64("2018-10-28T02:30")


@pytest.mark.parametrize(
    ("text", "minutes", "later"),
    [
        ("8:00", 30, "08:30"),
        ("23:30", 90, "01:00"),
        ("00:00", 1440, "00:00"),
        ("9:59", 1.5, "10:00:30"),
    ],
)
def test_later_on_the_clock(text, minutes, later):
    assert later_on_the_clock(text, minutes) == later
