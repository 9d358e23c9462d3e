import csv
import io
import zipfile

import numpy as np
import pandas as pd
import pytest

from agg_core.exports import tables
from agg_core.study.people import ALL_DAY
from agg_core.study.result import WHOLE_DAY
from tests.agg_core import counted
from tests.agg_core.exports import by_hand
from tests.faults import refused


def test_a_wide_table_has_each_flow_of_any_source_once():
    flows = tables.wide_flows(by_hand.result(), by_hand.MORNING)
    pairs = list(zip(flows["origin"], flows["dest"], strict=True))
    assert pairs == [(0, 0), (0, 1), (0, 9), (1, 0), (3, 4), (8, 7), (9, 1)]
    first = flows.set_index(["origin", "dest"]).loc[(0, 1)]
    assert first[["estimate", "single", "counted", "difference"]].tolist() == [2.5, 2.0, 2.0, 0.5]
    assert first[["origin_name", "dest_name"]].tolist() == ["row 0, column 0", "row 0, column 1"]
    assert first[["origin_lon", "origin_lat"]].tolist() == pytest.approx([139.05, 35.05])
    assert first[["dest_lon", "dest_lat"]].tolist() == pytest.approx([139.15, 35.05])
    lacking = flows.set_index(["origin", "dest"]).loc[(3, 4)]
    assert lacking[["estimate", "single", "counted", "difference"]].tolist() == [0, 1, 0, -1]


def test_the_outside_has_a_name_and_no_place():
    flows = tables.wide_flows(by_hand.result(), by_hand.MORNING)
    out = flows.loc[flows["dest"] == by_hand.OUT].iloc[0]
    assert out["dest_name"] == "outside"
    assert np.isnan(out["dest_lon"])
    assert np.isnan(out["dest_lat"])


def test_a_matrix_holds_stays_and_the_outside():
    counts = by_hand.result().matrix(by_hand.MORNING, "estimate")
    expected = np.zeros((10, 10))
    for pair, number in by_hand.FLOWS[by_hand.MORNING, "estimate"].items():
        expected[pair] = number
    np.testing.assert_array_equal(counts, expected)


def test_people_without_a_line_are_told():
    flows = by_hand.result().table(by_hand.MORNING, "estimate")
    assert tables.left_out(flows, 9) == (
        "4.0 people per step who stay where they are and 1.8 who come from or go to the outside"
    )
    night = by_hand.result().table(by_hand.NIGHT, "estimate")
    assert tables.left_out(night, 9).startswith("12 people per step who stay")


@pytest.mark.parametrize(
    ("time", "minutes", "expected"),
    [
        ("08:00", 30, ["08:00", "08:30", "09:00"]),
        ("23:30", 60, ["23:30", "00:30", "01:30"]),
        (ALL_DAY, 60, ["", "", ""]),
    ],
)
def test_times_of_steps(time, minutes, expected):
    assert tables.step_times(time, minutes, 3) == expected


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\r=1"])
def test_text_that_a_spreadsheet_would_compute_gets_an_apostrophe(text):
    assert tables.safe_text(text) == "'" + text


@pytest.mark.parametrize("text", ["", "row 1", "'", " =1", "東京"])
def test_other_text_stays_as_it_is(text):
    assert tables.safe_text(text) == text


def test_csv_guards_text_and_headers_but_no_number():
    frame = pd.DataFrame({"=n": ["=a", 'b, "c"'], "lon": [-73.5, np.nan], "k": [-1, 2]})
    content = tables.csv_bytes(frame)
    assert b"\r" not in content
    rows = list(csv.reader(io.StringIO(content.decode("utf-8"))))
    assert rows == [["'=n", "lon", "k"], ["'=a", "-73.5", "-1"], ['b, "c"', "", "2"]]
    assert frame["=n"].tolist() == ["=a", 'b, "c"'], "the table given is not changed"


def test_a_zip_holds_no_time_and_no_system():
    content = tables.zip_bytes({"a.csv": b"x,y\n", "b.csv": b""})
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["a.csv", "b.csv"]
        assert archive.read("a.csv") == b"x,y\n"
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert {entry.create_system for entry in archive.infolist()} == {3}


# ---------------------------------------------------------------- flows from counts


def test_what_is_known_of_flows_from_counts_stands_beside_their_names_and_places():
    flows = tables.wide_flows(counted.study(), counted.MORNING)
    assert list(flows) == [
        "origin", "dest", "origin_name", "dest_name", "origin_lon", "origin_lat", "dest_lon",
        "dest_lat", "count", "low", "high", "resolved",
    ]  # fmt: skip
    assert list(zip(flows["origin"], flows["dest"], strict=True)) == sorted(
        counted.FLOWS[counted.MORNING]
    )
    first = flows.iloc[1]
    assert first[["origin_name", "dest_name"]].tolist() == ["cell 0", "cell 1"]
    assert first[["count", "low", "high", "resolved"]].tolist() == [6.0, 4.5, 7.5, True]
    assert first[["dest_lon", "dest_lat"]].tolist() == pytest.approx([139.15, 35.05])
    out = flows.loc[flows["dest"] == counted.OUT].iloc[0]
    assert out["dest_name"] == "outside"
    assert np.isnan(out["dest_lon"])


def test_what_is_not_known_of_flows_from_counts_has_no_column():
    placeless = tables.wide_flows(counted.placeless(), WHOLE_DAY)
    assert list(placeless) == [
        "origin", "dest", "origin_name", "dest_name", "count", "low", "high", "resolved",
    ]  # fmt: skip
    assert not {"low", "high", "resolved"} & set(tables.wide_flows(counted.unsure(), WHOLE_DAY))
    with refused("cells-without-place"):
        assert counted.placeless().states.placed_grid


def test_a_table_of_several_times_says_which_row_is_of_which():
    flows = tables.timed_flows(counted.study(), [counted.NIGHT, counted.MORNING])
    assert next(iter(flows)) == "time"
    assert flows.groupby("time", sort=False)["count"].sum().to_dict() == {
        counted.NIGHT: 39.0, counted.MORNING: 28.75,
    }  # fmt: skip


def test_the_matrix_of_counts_holds_what_was_asked_for():
    for column, place in (("count", 0), ("low", 1), ("high", 2)):
        found = counted.study().matrix(counted.MORNING, column=column)
        expected = np.zeros((10, 10))
        for pair, values in counted.FLOWS[counted.MORNING].items():
            expected[pair] = values[place]
        np.testing.assert_array_equal(found, expected)
