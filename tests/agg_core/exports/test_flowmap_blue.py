import csv
import io
import zipfile
from datetime import datetime

import pytest

from agg_core.exports.flowmap_blue import flowmap_blue
from agg_core.study.result import WHOLE_DAY
from tests.agg_core import counted
from tests.agg_core.exports import by_hand
from tests.agg_core.exports.by_hand import MORNING, NIGHT
from tests.faults import refused


def sheets(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {
            name.removesuffix(".csv"): list(
                csv.DictReader(io.StringIO(archive.read(name).decode("utf-8")))
            )
            for name in archive.namelist()
        }


def test_the_sheets_and_columns_are_those_of_the_documentation():
    found = sheets(flowmap_blue(by_hand.result(), [MORNING]))
    assert list(found) == ["locations", "flows", "properties"]
    assert list(found["locations"][0]) == ["id", "name", "lat", "lon"]
    assert list(found["flows"][0]) == ["origin", "dest", "count"]
    assert list(found["properties"][0]) == ["property", "value"]


def test_locations_are_the_cells():
    found = sheets(flowmap_blue(by_hand.result(), [MORNING]))["locations"]
    assert len(found) == 9
    assert found[5] == {"id": "5", "name": "row 1, column 2", "lat": "35.15", "lon": "139.25"}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("estimate", {("0", "1"): 2.5, ("1", "0"): 0.5}),
        ("single", {("0", "1"): 2.0, ("3", "4"): 1.0}),
        ("counted", {("0", "1"): 2.0, ("8", "7"): 3.0}),
    ],
)
def test_flows_between_cells_above_nobody(source, expected):
    found = sheets(flowmap_blue(by_hand.result(), [MORNING], source))["flows"]
    assert {(row["origin"], row["dest"]): float(row["count"]) for row in found} == expected


def test_every_end_of_a_flow_is_a_location():
    found = sheets(flowmap_blue(by_hand.result(), [MORNING, NIGHT]))
    known = {row["id"] for row in found["locations"]}
    assert {row[end] for row in found["flows"] for end in ("origin", "dest")} <= known


def test_several_times_of_day_have_a_time_that_the_program_reads():
    found = sheets(flowmap_blue(by_hand.result(), [MORNING, NIGHT]))["flows"]
    rows = [(row["origin"], row["dest"], row["count"], row["time"]) for row in found]
    assert rows == [
        ("0", "1", "2.5", "2000-01-01 08:00"),
        ("1", "0", "0.5", "2000-01-01 08:00"),
        ("4", "0", "7", "2000-01-01 23:30"),
    ]
    # The second of the forms that its parser tries.
    assert datetime.strptime(rows[0][3], "%Y-%m-%d %H:%M").hour == 8


def properties(content):
    return {row["property"]: row["value"] for row in sheets(content)["properties"]}


def test_the_description_tells_what_is_not_there():
    found = properties(flowmap_blue(by_hand.result(), [MORNING]))
    assert found["description"] == (
        "People per 60-minute step, learned from groups of M = 5, 08:00. Not in it: 4.0 people "
        "per step who stay where they are and 1.8 who come from or go to the outside."
    )
    both = properties(flowmap_blue(by_hand.result(), [MORNING, NIGHT]))["description"]
    assert "2000-01-01 stands for any day" in both
    assert "over all times: 16 people per step who stay" in both


def test_a_title_is_guarded():
    found = properties(flowmap_blue(by_hand.result(), [MORNING], title='=HYPERLINK("x"),"y'))
    assert found["title"] == '\'=HYPERLINK("x"),"y'
    assert properties(flowmap_blue(by_hand.result(), [MORNING]))["title"] == "Population flows"


def test_flows_from_counts_at_their_times():
    content = flowmap_blue(counted.study(), [counted.MORNING, counted.NIGHT])
    found = sheets(content)
    assert [tuple(row.values()) for row in found["flows"]] == [
        ("0", "1", "6", "2000-01-01 08:00"),
        ("1", "0", "1", "2000-01-01 08:00"),
        ("4", "0", "9", "2000-01-01 23:00"),
    ]
    assert found["locations"][4] == {"id": "4", "name": "cell 4", "lat": "35.15", "lon": "139.15"}
    said = properties(content)["description"]
    assert said.startswith(
        "People per step at 2 times of day, what usually happens, learned from counts alone."
    )


def test_the_whole_day_of_counts_has_no_time():
    content = flowmap_blue(counted.study(), [WHOLE_DAY])
    assert {tuple(row.values()) for row in sheets(content)["flows"]} == {
        ("0", "1", "3"), ("4", "0", "4.5"),
    }  # fmt: skip
    assert (
        "what usually happens, learned from counts alone, whole day"
        in properties(content)["description"]
    )


def test_counts_without_a_place_are_refused():
    with refused("cells-without-place"):
        flowmap_blue(counted.placeless(), [WHOLE_DAY])
