"""Small re-creations of troubles that people report, with the behaviour that is right."""

import contextlib

import pytest

from agg_core.errors import InputError
from agg_core.readers import read_trajectories


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


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("19_lat_lon_swapped.csv", "look swapped"),
        ("36_epsg3857_metres.csv", "EPSG:3857"),
        ("46_pipe_separated.csv", "No time column found among: id, x_lon, y_lat, z"),
        ("34_dms_strings.csv", "give decimal degrees"),
    ],
)
def test_what_cannot_be_used_is_explained(messy, name, message):
    with pytest.raises(InputError, match=message):
        read_trajectories(messy / name)


def test_no_messy_file_raises_a_bare_error(messy):
    read = []
    for path in sorted(messy.glob("[0-9]*")):
        with contextlib.suppress(InputError):
            read_trajectories(path)
            read.append(path.name[:2])
    assert {"01", "02", "03", "05", "06", "08", "10", "13", "14", "18", "20", "22"} <= set(read)
