"""Small re-creations of troubles that people report, with the behaviour that is right."""

import pytest

from agg_core.base.errors import InputError
from agg_core.io import read_trajectories


@pytest.fixture(scope="module")
def messy(shared_data):
    return shared_data / "messy"


def instants(trajectories):
    return [str(t)[:16] for t in trajectories.table["time"].dt.tz_localize(None)]


def test_day_first_dates_are_not_mixed(messy):
    trajectories = read_trajectories(messy / "01_dmy_ambiguous_dates.csv")
    assert instants(trajectories)[:4] == [
        "2019-03-11 08:00",
        "2019-03-12 09:00",
        "2019-03-13 08:00",
        "2019-03-14 08:00",
    ]


def test_mixed_offsets_become_instants(messy):
    table = read_trajectories(messy / "03_mixed_utc_offsets.csv").table
    c1, c2 = (table.loc[table["user_id"] == user, "time"] for user in ("c1", "c2"))
    assert (c1.diff().dropna().dt.total_seconds() == 3600).all()
    assert set(c2) <= set(c1)


def test_a_skipped_hour_is_named_by_line(messy):
    report = read_trajectories(messy / "05_dst_gap_local_naive.csv", tz="Europe/Copenhagen").report
    skipped = report.set_aside["time skipped by the clock of Europe/Copenhagen"]
    assert (report.rows_kept, skipped.lines) == (3, (3,))
    assert read_trajectories(messy / "05_dst_gap_local_naive.csv").report.rows_kept == 4


def test_hours_beyond_midnight_are_the_next_day(messy):
    trajectories = read_trajectories(messy / "08_slash_date_no_pad_and_24h.csv")
    assert instants(trajectories) == [
        "2021-04-01 23:50",
        "2021-04-02 00:00",
        "2021-04-02 01:10",
        "2021-04-02 01:20",
    ]


def test_semicolons_decimal_commas_and_german_headers(messy):
    table = read_trajectories(messy / "10_semicolon_decimal_comma.csv").table
    assert table[["lon", "lat"]].iloc[0].tolist() == [16.37208, 48.20849]
    assert (table["time"].dt.month == 6).all()
    assert len(table) == 3


def test_semicolons_within_quotes_do_not_set_columns_apart(messy):
    trajectories = read_trajectories(
        messy / "12_semicolon_inside_field.csv", columns={"user_id": "name"}
    )
    assert trajectories.table["user_id"].tolist() == ["shop; gate; north", "park"]


@pytest.mark.parametrize(
    ("name", "rows", "columns"),
    [
        ("06_epoch_ms.csv", 5, None),
        ("13_bom_first_column.csv", 2, None),
        ("14_header_spaces.csv", 2, None),
        ("17_quoted_and_bare_numbers.csv", 2, {"user_id": "code"}),
        ("41_gzip_named_csv.csv", 5, None),
        ("47_pm_us_time.csv", 3, {"user_id": "Unit"}),
    ],
)
def test_every_row_is_kept(messy, name, rows, columns):
    report = read_trajectories(messy / name, columns=columns).report
    assert (report.rows_kept, report.set_aside) == (rows, {})


def test_long_ids_stay_apart_and_a_row_without_id_is_nobody(messy):
    trajectories = read_trajectories(messy / "18_large_int_ids.csv")
    assert trajectories.table["user_id"].value_counts().to_dict() == {
        "731904466120957813": 2,
        "731904466120957810": 1,
    }
    assert trajectories.report.set_aside["missing user id"].lines == (5,)


def lonlat(trajectories):
    return trajectories.table[["lon", "lat"]].round(5).to_numpy().tolist()


def set_aside(trajectories):
    return {cause: rows.count for cause, rows in trajectories.report.set_aside.items()}


def test_dates_that_can_be_read_both_ways_are_read_one_way_and_said(messy):
    as_days = read_trajectories(messy / "02_all_ambiguous_dates.csv")
    guess = as_days.report.guesses["time format"]
    assert (guess.value, guess.alternatives) == ("day/month/year", ("month/day/year",))
    assert "both ways" in guess.note
    assert [text[5:10] for text in instants(as_days)] == ["02-01", "02-02", "02-03", "02-04"]
    as_months = read_trajectories(
        messy / "02_all_ambiguous_dates.csv", time_format="month/day/year"
    )
    assert [text[5:10] for text in instants(as_months)] == ["01-02", "02-02", "03-02", "04-02"]


def test_milliseconds_are_told_by_their_size(messy):
    trajectories = read_trajectories(messy / "06_epoch_ms.csv")
    assert instants(trajectories)[:3] == [f"2019-07-01 00:{m:02d}" for m in (0, 5, 10)]


def test_ids_are_text(messy):
    trajectories = read_trajectories(messy / "17_quoted_and_bare_numbers.csv")
    assert trajectories.table["user_id"].tolist() == ["02450", "02201"]
    assert trajectories.report.guesses["user_id"].alternatives == ("name",)


def test_swapped_axes_are_said_and_swapped_on_request(messy):
    with pytest.raises(InputError) as told:
        read_trajectories(messy / "19_lat_lon_swapped.csv")
    assert told.value.code == "coordinates-swapped"
    assert told.value.option == "--swap-axes"
    swapped = read_trajectories(messy / "19_lat_lon_swapped.csv", swap_axes=True)
    assert lonlat(swapped)[0] == [139.7671, 35.6812]
    may_be = read_trajectories(messy / "20_swap_undetectable.csv")
    assert may_be.report.guesses["axes"].alternatives == ("swapped",)
    bern = read_trajectories(messy / "20_swap_undetectable.csv", swap_axes=True)
    assert lonlat(bern) == [[7.44, 46.95], [7.45, 46.96]]


def test_a_leap_is_mentioned_and_taken_out_on_request(messy):
    leaping = read_trajectories(messy / "22_teleport_spike.csv")
    assert leaping.report.rows_kept == 5
    assert "faster than 1,200 km/h: 2" in leaping.report.guesses["speed"].note
    walking = read_trajectories(messy / "22_teleport_spike.csv", max_speed=300)
    assert walking.report.set_aside["faster than 300 km/h"].lines == (4,)
    assert walking.report.rows_kept == 4


def test_of_points_at_one_second_one_stays(messy):
    last = read_trajectories(messy / "23_duplicate_timestamps.gpx")
    assert set_aside(last) == {"duplicate time": 2}
    assert lonlat(last)[1] == [6.59985, 46.50009]
    first = read_trajectories(messy / "23_duplicate_timestamps.gpx", duplicates="first")
    assert lonlat(first)[1] == [6.59995, 46.50003]


def test_a_clock_years_ahead_is_set_aside(messy):
    trajectories = read_trajectories(messy / "25_reverse_and_future_time.gpx")
    assert instants(trajectories) == [f"2023-09-09 03:{m}" for m in (17, 18, 20)]
    assert set_aside(trajectories) == {"time years away from all others": 1}
    kept = read_trajectories(messy / "25_reverse_and_future_time.gpx", time_outliers="keep")
    assert instants(kept)[-1] == "2043-04-25 03:19"


def test_times_beside_the_points_of_a_line(messy):
    trajectories = read_trajectories(messy / "29_coordtimes.geojson")
    assert trajectories.table["user_id"].tolist() == ["a", "a", "a", "b", "b"]
    assert set_aside(trajectories) == {"fewer times than points": 2}


def test_times_as_a_fourth_coordinate(messy):
    trajectories = read_trajectories(messy / "30_trip_linestring_4d.geojson")
    assert instants(trajectories) == [f"2022-04-15 05:{m}" for m in (20, 21, 22)]
    assert set_aside(trajectories) == {"missing time": 2}


def test_places_as_text_geometry(messy):
    trajectories = read_trajectories(messy / "32_wkt_column.csv")
    assert [text[11:] for text in instants(trajectories)] == ["08:00", "08:10", "08:40"]
    assert lonlat(trajectories)[0] == [139.7671, 35.6812]
    assert trajectories.report.set_aside["missing position"].count == 3


def test_degrees_minutes_and_seconds(messy):
    assert lonlat(read_trajectories(messy / "34_dms_strings.csv")) == [
        [139.76711, 35.68119],
        [139.77, 35.6845],
        [139.77236, 35.68611],
        [149.38834, -23.53599],
    ]


def test_metres_are_asked_for_their_system(messy):
    with pytest.raises(InputError) as told:
        read_trajectories(messy / "36_epsg3857_metres.csv")
    assert told.value.code == "projected-places"
    assert told.value.option == "--crs EPSG:3857"
    found = read_trajectories(messy / "36_epsg3857_metres.csv", crs="EPSG:3857")
    assert [round(x, 3) for x in lonlat(found)[0]] == [139.767, 35.681]


def test_a_location_history(messy):
    trajectories = read_trajectories(messy / "39_google_records.json")
    assert instants(trajectories) == [f"2022-04-15 05:{m}" for m in (20, 30, 40)]
    assert set_aside(trajectories) == {"missing position": 1, "position out of range": 1}
    assert "worse than 500 m in 1" in trajectories.report.guesses["accuracy"].note
    good = read_trajectories(messy / "39_google_records.json", max_accuracy=500)
    assert good.report.rows_kept == 2


def test_check_ins_on_their_local_clock(messy):
    trajectories = read_trajectories(messy / "43_foursquare_style.tsv")
    assert (len(trajectories), trajectories.report.individuals) == (3, 2)
    assert trajectories.timezone == "UTC+09:00"
    assert str(trajectories.table["time"].min())[:19] == "2012-05-01 18:17:18"
    assert str(trajectories.time_local.min())[:19] == "2012-05-02T03:17:18"


def test_a_track_without_any_header(messy):
    trajectories = read_trajectories(messy / "44_geolife_style.plt")
    assert str(trajectories.table["time"][0])[:19] == "2008-10-29 03:00:00"
    assert lonlat(trajectories)[0] == [116.4001, 39.9001]


def test_a_half_day_clock_goes_on_past_midnight(messy):
    trajectories = read_trajectories(messy / "47_pm_us_time.csv")
    assert instants(trajectories) == [
        "2024-07-30 23:36",
        "2024-07-31 00:05",
        "2024-07-31 12:05",
    ]


def test_a_workbook_with_serial_dates_under_a_title(messy):
    trajectories = read_trajectories(messy / "49_excel_serial_dates.xlsx")
    assert instants(trajectories) == [f"2021-01-01 09:{m}0" for m in range(3)]
    assert trajectories.report.guesses["header row"].value == "row 3"


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("26_gpx_no_time.gpx", "no-times"),
        ("46_pipe_separated.csv", "column-not-found"),
    ],
)
def test_what_cannot_be_used_is_explained(messy, name, code):
    with pytest.raises(InputError) as told:
        read_trajectories(messy / name)
    assert told.value.code == code


def test_every_messy_file_is_read_or_refused_for_a_reason(messy):
    refused = []
    for path in sorted(messy.glob("[0-9]*")):
        try:
            read_trajectories(path)
        except InputError:
            refused.append(path.name[:2])
    assert refused == ["19", "26", "36", "46"]
