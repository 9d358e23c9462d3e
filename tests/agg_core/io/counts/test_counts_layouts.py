"""Published tables of counts, read with no choice but the zone."""

import gzip
import io
import json

import numpy as np
import pandas as pd
import pytest

from agg_core.base.errors import InputError
from agg_core.io.counts import read_counts
from agg_core.made.counts import docomo_csv, mlit_csv, simulate_city
from agg_core.space.settings import AreaSettings, MeshSettings
from agg_core.tables.counts import ESTIMATED, MISSING, PUBLISHED, SUPPRESSED

DOCOMO = "date,time,area,residence,age,gender,population\n"
MLIT = "mesh1kmid,prefcode,citycode,year,month,dayflag,timezone,population\n"
META = "quadkey,lat,lon,date_time,n_crisis,n_baseline\n"
STATES = {
    PUBLISHED: "published", SUPPRESSED: "suppressed", MISSING: "missing", ESTIMATED: "estimated",
}  # fmt: skip


@pytest.fixture(scope="module")
def city():
    return simulate_city(random_state=5)


def states(table):
    """The status of each entry in words, a list for each moment."""
    return [[STATES[state] for state in row] for row in table.status.tolist()]


# ---------------------------------------------------------------- Mobile Spatial Statistics


def test_spatial_statistics_of_the_made_up_city(city):
    table = read_counts(docomo_csv(city).encode())
    assert table.cells == city.codes
    assert (table.times == city.times).all()
    assert table.sequence.max() == 0
    assert table.timezone == "Asia/Tokyo"
    assert table.slots == tuple(f"{hour:02d}:00" for hour in range(24))
    large = city.counts >= 10
    assert 0 < (~large).sum() == table.n_suppressed
    np.testing.assert_array_equal(table.counts[large], city.counts[large])
    assert (table.status[~large] == SUPPRESSED).all()
    assert table.suppressed_below == 10
    assert table.grid == MeshSettings(codes=city.codes)


def test_rows_of_women_and_men_are_not_counted_again(city):
    table = read_counts(docomo_csv(city, by_gender=True).encode())
    whole = read_counts(docomo_csv(city).encode())
    np.testing.assert_array_equal(table.counts, whole.counts)
    assert "gender are left out" in table.report.guesses["breakdown"].note
    assert table.report.rows_used == whole.report.rows_used


def test_clock_times_that_lost_their_zeros():
    text = DOCOMO + "".join(
        f"20240401,{clock},53394500,-1,-1,-1,{20 + i}\n"
        for i, clock in enumerate(["0", "100", "930", "2330"])
    )
    table = read_counts(text.encode())
    local = table.times.tz_convert("Asia/Tokyo")
    assert local.strftime("%H:%M").tolist() == ["00:00", "01:00", "09:30", "23:30"]
    # Excel's numbers, and a date as it writes it.
    frame = pd.DataFrame(
        {
            "date": [20240401.0, 20240401.0], "time": [0.0, 930.0],
            "area": [53394500.0, 53394500.0], "residence": -1, "age": -1, "gender": -1,
            "population": [11, 12],
        }
    )  # fmt: skip
    again = read_counts(frame)
    assert (again.times == table.times[[0, 2]]).all()
    assert again.cells == ("53394500",)


def test_without_totals_one_complete_breakdown_is_added():
    rows = [
        "20240401,0000,53394500,-1,20,1,30", "20240401,0000,53394500,-1,20,2,31",
        "20240401,0000,53394500,-1,-1,1,60", "20240401,0000,53394500,-1,-1,2,50",
        "20240401,0100,53394500,-1,-1,1,61", "20240401,0100,53394500,-1,-1,2,52",
    ]  # fmt: skip
    table = read_counts((DOCOMO + "\n".join(rows)).encode())
    assert table.counts.ravel().tolist() == [110, 113]
    guess = table.report.guesses["breakdown"]
    assert guess.value == "sum over gender"
    assert "age and gender are left out" in guess.note
    assert table.report.set_aside["row of another breakdown"].count == 2


def test_one_gender_is_kept_where_it_is_asked_for():
    rows = [
        "20240401,0000,53394500,-1,-1,-1,110", "20240401,0000,53394500,-1,20,2,31",
        "20240401,0000,53394500,-1,-1,2,50", "20240401,0000,53394500,-1,-1,1,60",
    ]  # fmt: skip
    content = (DOCOMO + "\n".join(rows)).encode()
    assert read_counts(content, where={"gender": "2"}).counts.tolist() == [[50]]
    assert read_counts(content).counts.tolist() == [[110]]
    with pytest.raises(InputError) as told:
        read_counts(content, where={"gender": "3"})
    assert told.value.code == "value-not-found"
    assert "it holds -1, 2, 1" in str(told.value)


def test_codes_that_a_spreadsheet_rounded_are_refused_by_name():
    content = (DOCOMO + "20240401,0000,5.33946e8,-1,-1,-1,110\n").encode()
    with pytest.raises(InputError) as told:
        read_counts(content)
    assert told.value.code == "rounded-cell-codes"
    assert "area holds 5.33946e8" in str(told.value)


def test_what_is_no_mesh_code_is_set_aside_and_counted():
    rows = ["53394500,20", "53394501,21", "533945012,22", "Chiyoda,23", "99999999,24"]
    text = DOCOMO + "".join(
        f"20240401,0000,{code},-1,-1,-1,{n}\n" for code, n in (row.split(",") for row in rows)
    )
    table = read_counts(text.encode())
    assert table.cells == ("53394500", "53394501")
    aside = {cause: rows.count for cause, rows in table.report.set_aside.items()}
    assert aside == {"mesh code of another size": 1, "cell is no mesh code": 2}


# ----------------------------------------------------------------------------------- MLIT


def test_open_data_of_the_made_up_city(city):
    table = read_counts(mlit_csv(city, 0).encode())
    assert table.cells == city.codes
    assert table.slots == ("night 01:00-05:00", "day 11:00-15:00")
    # One month, its weekdays and its holidays: a night and a day each.
    assert table.sequence.tolist() == [0, 0, 1, 1]
    assert table.slot.tolist() == [0, 1, 0, 1]
    local, weekday = city.local, city.local.day_of_week < 5
    periods = [local.hour.isin([1, 2, 3, 4]), local.hour.isin([11, 12, 13, 14])]
    wanted = [
        np.round(city.counts[kind & period].mean(axis=0))
        for kind in (weekday, ~weekday) for period in periods
    ]  # fmt: skip
    np.testing.assert_array_equal(table.counts, wanted)
    assert table.n_suppressed == table.n_missing == 0


def test_two_cities_on_a_cell_are_added_totals_are_not_and_a_repeated_row_counts_once():
    rows = [
        "53394500,13,13101,2020,1,1,1,40", "53394500,13,13102,2020,1,1,1,20",
        "53394500,13,13101,2020,1,1,0,50", "53394500,13,13101,2020,1,1,0,50",
        "53394500,13,13101,2020,1,2,0,500", "53394500,13,13101,2020,1,1,2,700",
        "53394501,13,13101,2020,1,1,0,30",
    ]  # fmt: skip
    table = read_counts((MLIT + "\n".join(rows)).encode())
    assert table.counts[:, 0].tolist() == [60, 50]
    assert states(table) == [["published", "suppressed"], ["estimated", "published"]]
    assert table.timezone == "Asia/Tokyo"
    aside = table.report.set_aside
    assert aside["total over kinds of day or periods"].count == 2
    assert aside["row that says again what another says"].count == 1
    # The city that lacks by day may hide a few people.
    assert "1 are sums of which a part is suppressed" in table.report.remarks["kinds"]
    assert "hold 50 people that are published" in table.report.remarks["kinds"]


def test_months_and_kinds_of_day_are_runs_of_their_own():
    rows = [
        f"53394500,13,13101,{year},{month:02d},{kind},{period},50"
        for year in (2019, 2020) for month in (1, 2) for kind in (0, 1) for period in (0, 1)
    ]  # fmt: skip
    table = read_counts((MLIT + "\n".join(rows)).encode())
    assert table.n_moments == 16
    assert np.bincount(table.sequence).tolist() == [2] * 8
    assert table.step == pd.Timedelta(hours=10)
    days = table.times.tz_convert("Asia/Tokyo")[::2]
    assert set(days.day_name()) == {"Tuesday", "Sunday"}


def test_all_days_are_taken_where_there_is_nothing_else():
    rows = [f"53394500,13,13101,2020,{m},2,{p},{40 + p}" for m in (1, 2, 3) for p in (0, 1, 2)]
    table = read_counts((MLIT + "\n".join(rows)).encode())
    assert table.sequence.tolist() == [0, 0, 1, 1, 2, 2]
    assert table.counts.ravel().tolist() == [41, 40] * 3
    whole = [f"53394500,13,13101,2020,{month},2,2,40" for month in (1, 2, 3)]
    assert read_counts((MLIT + "\n".join(whole)).encode()).sequence.tolist() == [0, 1, 2]


# ------------------------------------------------------------------------------ Meta, tiles


def meta(*rows):
    return (META + "\n".join(rows)).encode()


def test_quadkeys_and_times_in_utc():
    content = meta(
        "0213,0,0,2020-04-01 0000,12.5,13", "0213,0,0,2020-04-01 0800,11,13",
        "0212,0,0,2020-04-01 0000,\\N,13", "0212,0,0,2020-04-01 1600,20,13",
        "0213,0,0,2020-04-01 1600,14,13",
    )  # fmt: skip
    table = read_counts(content, tz="Asia/Manila")
    assert table.cells == ("0212", "0213")
    assert table.times[0] == pd.Timestamp("2020-04-01 00:00", tz="UTC")
    assert table.slots == ("00:00", "08:00", "16:00")
    assert table.slot.tolist() == [1, 2, 0]
    assert states(table) == [
        ["missing", "published"], ["suppressed", "published"], ["published", "published"],
    ]  # fmt: skip
    assert table.report.guesses["count"].alternatives == ("n_baseline",)
    other = read_counts(content, columns={"count": "n_baseline"}, tz="Asia/Manila")
    assert (other.times == table.times).all()
    assert np.nanmax(other.counts) == 13
    assert other.report.guesses["count"].alternatives == ("n_crisis",)


def test_tiles_are_the_squares_of_the_web_map():
    table = read_counts(meta("213,0,0,2020-04-01 0000,12,1", "031,0,0,2020-04-01 0000,12,1"))
    assert table.cells == ("031", "213")
    assert isinstance(table.grid, AreaSettings)
    grid = table.grid.make()
    assert grid.labels == list(table.cells)
    # The published example of quadkeys: 213 is column 3 and row 5 of the 8 x 8 of zoom 3.
    west, south, east, north = grid.polygons[1].bounds
    assert (west, east) == (-45, 0)
    # Published latitudes of the borders of Web Mercator tiles of zoom 3.
    assert (south, north) == pytest.approx((-66.51326, -40.97990), abs=1e-5)


def test_zeros_in_front_of_quadkeys_are_put_back():
    frame = pd.DataFrame(
        {
            "quadkey": [12301, 301231], "date_time": "2020-04-01 0000",
            "n_crisis": [10.0, 11.0], "n_baseline": 1.0,
        }
    )  # fmt: skip
    table = read_counts(frame)
    assert table.cells == ("012301", "301231")
    assert "1 were lost" in table.report.guesses["cells"].note


# ----------------------------------------------------------------------------------- GBFS


def snapshot(at, counts, key="num_bikes_available"):
    stations = [
        {"station_id": name, key: count, "last_reported": at - 7} for name, count in counts.items()
    ]
    return json.dumps(
        {"last_updated": at, "ttl": 60, "version": "2.3", "data": {"stations": stations}}
    ).encode()


INFO = json.dumps(
    {
        "last_updated": 1_700_000_000,
        "data": {
            "stations": [
                {"station_id": "a1", "name": "A", "lat": 40.70, "lon": -74.00},
                {"station_id": "b2", "name": "B", "lat": 40.71, "lon": -74.01},
                {"station_id": "c3", "name": "C", "lat": 40.72, "lon": -74.00},
            ]
        },
    }
).encode()


def test_snapshots_of_stations_and_where_these_are():
    start = 1_700_000_100  # 22:15 UTC
    files = {
        "1.json": snapshot(start, {"a1": 3, "b2": 4, "c3": 0}),
        "2.json": snapshot(start + 301, {"a1": 2, "b2": 5}),
        "3.json": snapshot(start + 598, {"a1": 2, "b2": 6, "c3": 1}),
        "info.json": INFO,
    }
    table = read_counts(files, tz="America/New_York")
    assert table.cells == ("a1", "b2", "c3")
    assert table.times.strftime("%H:%M:%S").tolist() == ["22:15:00", "22:20:00", "22:25:00"]
    assert table.slots == ("17:15", "17:20", "17:25")
    assert table.counts[0].tolist() == [3, 4, 0]
    assert states(table)[1] == ["published", "published", "missing"]
    assert table.grid.make().assign([-74.0, -74.01], [40.7, 40.71]).tolist() == [0, 1]


def test_snapshots_of_the_third_version_in_one_file():
    documents = [
        {
            "last_updated": f"2024-01-01T00:{minute:02d}:00+09:00",
            "data": {"stations": [{"station_id": "s", "num_vehicles_available": minute}]},
        }
        for minute in (0, 10, 20)
    ]
    table = read_counts("\n".join(map(json.dumps, documents)).encode())
    assert table.counts.ravel().tolist() == [0, 10, 20]
    assert str(table.times[0]) == "2023-12-31 15:00:00+00:00"
    assert table.grid is None
    listed = read_counts(json.dumps(documents).encode())
    np.testing.assert_array_equal(listed.counts, table.counts)


def test_places_of_stations_alone_are_no_counts():
    with pytest.raises(InputError) as told:
        read_counts(INFO)
    assert told.value.code == "no-station-counts"


def test_changes_in_percent_are_refused_with_the_reason():
    content = (
        b"country_region_code,sub_region_1,date,parks_percent_change_from_baseline\n"
        b"JP,Tokyo,2020-02-15,-3\n"
    )
    with pytest.raises(InputError) as told:
        read_counts(content)
    assert told.value.code == "changes-in-percent"


def test_a_stated_layout_must_fit():
    with pytest.raises(InputError) as told:
        read_counts(b"time,cell,count\n2024-01-01 00:00,A,1\n", layout="mlit")
    assert told.value.code == "layout-mismatch"


# -------------------------------------------------------------------------- kinds of files


def as_excel(table):
    out = io.BytesIO()
    table.to_excel(out, index=False)
    return out.getvalue()


def as_parquet(table):
    out = io.BytesIO()
    table.to_parquet(out)
    return out.getvalue()


@pytest.mark.parametrize(
    "write",
    [
        as_excel,
        as_parquet,
        lambda table: table.to_json(orient="records").encode(),
        lambda table: gzip.compress(table.to_csv(index=False, sep="\t").encode("utf-16")),
        lambda table: table,
    ],
    ids=["Excel", "Parquet", "JSON", "gzip of UTF-16", "data frame"],
)
def test_any_kind_of_file_gives_the_same_table(write):
    text = docomo_csv(simulate_city(3, 3, 2, 300))
    wanted = read_counts(text.encode())
    # Read as a spreadsheet would, so that codes and clock times are numbers.
    found = read_counts(write(pd.read_csv(io.StringIO(text))))
    assert found.cells == wanted.cells
    assert (found.times == wanted.times).all()
    np.testing.assert_array_equal(found.counts, wanted.counts)
    np.testing.assert_array_equal(found.status, wanted.status)
