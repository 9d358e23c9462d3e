import dataclasses

import numpy as np
import pandas as pd

from agg_core.io import read_trajectories
from agg_core.tables.trajectories import Trajectories, read_canonical, write_canonical
from tests.faults import refused

CSV = (
    b"user_id,time,lon,lat\n"
    b"007,2024-01-01T09:10:00+09:00,139.71,35.61\n"
    b"7,2024-01-01T09:00:00+09:00,139.72,35.62\n"
    b",2024-01-01T09:00:00+09:00,139.72,35.62\n"
    b"007,2024-01-01T09:00:00+09:00,139.73,35.63\n"
)


def test_the_table_is_sorted_by_first_appearance_then_time():
    trajectories = read_trajectories(CSV)
    table = trajectories.table
    assert table["user_id"].tolist() == ["007", "007", "7"]
    assert table["lon"].tolist() == [139.73, 139.71, 139.72]
    assert table["time"].iloc[0] == pd.Timestamp("2024-01-01T00:00:00Z")
    assert str(table["time"].dtype) == "datetime64[us, UTC]"
    assert trajectories.user_codes.tolist() == [0, 0, 1]
    assert trajectories.user_ids.tolist() == ["007", "7"]
    assert trajectories.timezone == "UTC+09:00"
    assert trajectories.time_local[0] == np.datetime64("2024-01-01T09:00:00")


def test_canonical_file_keeps_table_zone_and_report(tmp_path):
    trajectories = read_trajectories(CSV)
    write_canonical(trajectories, tmp_path / "kept.parquet")
    back = read_canonical(tmp_path / "kept.parquet")
    pd.testing.assert_frame_equal(back.table, trajectories.table)
    assert back.timezone == trajectories.timezone
    assert back.report == trajectories.report
    assert back.report.set_aside["missing user id"].lines == (4,)


def test_other_files_are_no_canonical_files(tmp_path):
    plain = tmp_path / "plain.parquet"
    read_trajectories(CSV).table.to_parquet(plain)
    garbage = tmp_path / "garbage.parquet"
    garbage.write_bytes(b"PAR1 this is nothing")
    for path in (plain, garbage, tmp_path / "absent.parquet"):
        with refused("trajectories-unreadable"):
            read_canonical(path)


def test_a_table_out_of_order_or_without_a_column_is_refused():
    trajectories = read_trajectories(CSV)
    for table in (trajectories.table.iloc[::-1], trajectories.table.iloc[[0, 2, 1]]):
        with refused("rows-out-of-order"):
            dataclasses.replace(trajectories, table=table)
    with refused("columns-missing", "lat"):
        Trajectories(trajectories.table.drop(columns="lat"), trajectories.report)
    naive = trajectories.table.assign(time=trajectories.time_local)
    with refused("times-not-utc"):
        Trajectories(naive, trajectories.report)
    with refused("unknown-time-zone"):
        dataclasses.replace(trajectories, timezone="Mars/Base")
