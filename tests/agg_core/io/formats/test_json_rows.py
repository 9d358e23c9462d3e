import json

import numpy as np
import pytest
from hypothesis import given, settings

from agg_core.base.errors import InputError
from agg_core.io.formats.json_rows import open_json_rows, recognises_json
from tests.agg_core.io.documents import JOURNEYS, as_rows, columns, left_out, outcomes

ROW = {"id": "a", "time": "2024-05-01T08:00:00Z", "lon": 139.7, "lat": 35.7}


def opened(text):
    return open_json_rows(text.encode(), "day.json")


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([ROW, ROW]),
        json.dumps({"schema": {"fields": []}, "data": [ROW, ROW]}),
        json.dumps({"rows": [ROW, ROW], "next": None}, indent=1),
        f"{json.dumps(ROW)}\n{json.dumps(ROW)}\n",
        f"\x1e{json.dumps(ROW)}\n\x1e{json.dumps(ROW)}",
        f"\ufeff{json.dumps([ROW, ROW])}",
    ],
)
def test_rows_are_found_in_each_layout(text):
    assert recognises_json(text.encode()[:4096])
    source = opened(text)
    assert source.names == ("id", "time", "lon", "lat")
    assert columns(source) == [("a", "2024-05-01T08:00:00Z", "139.7", "35.7")] * 2
    assert source.sample[0] == ["a", "2024-05-01T08:00:00Z", "139.7", "35.7"]


def test_absent_values_are_null_and_inner_objects_are_columns():
    rows = [
        {"a": 1, "at": {"lon": 2.5, "deep": {"x": 1}}, "list": [1]},
        5,
        {"b": None, "c": True},
        {"a": 731904466120957813, "at": None},
    ]
    source = opened(json.dumps(rows))
    assert source.names == ("a", "at.lon", "at.deep.x", "c")
    assert columns(source) == [
        ("1", "2.5", "1", None),
        (None, None, None, "true"),
        ("731904466120957813", None, None, None),
    ]
    assert left_out(source) == {"not an object with names": (1, (2,))}
    assert source.load([0]).line_numbers(np.array([0, 1, 2])).tolist() == [1, 3, 4]


def test_long_texts_are_left_out_with_a_note():
    source = opened(json.dumps([{"a": "x" * 300, "b": 1, "c": 2}]))
    assert source.names == ("b", "c")
    assert source.guesses["properties"].note == "1 of more than 256 characters are left out"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[]", "unknown-json-shape"),
        ("[1, 2]", "unknown-json-shape"),
        ('{"data": []}', "unknown-json-shape"),
        ('"text"', "unknown-json-shape"),
        (json.dumps([ROW, ROW])[:-5], "breaks-off-early"),
        (json.dumps([{f"k{i}": 1} for i in range(3000)]), "too-many-names"),
        ("[" * 50_000, "nested-too-deep"),
    ],
)
def test_what_is_no_table_is_refused(text, code):
    with pytest.raises(InputError) as told:
        opened(text)
    assert told.value.code == code


@settings(max_examples=60, deadline=None)
@given(JOURNEYS)
def test_what_is_written_is_read_back(journeys):
    keys = ("user_id", "time", "lon", "lat")
    rows = [dict(zip(keys, row, strict=True)) for row in as_rows(journeys)]
    read = columns(opened(json.dumps(rows)), *keys)
    assert [(*row[:2], float(row[2]), float(row[3])) for row in read] == as_rows(journeys)


def test_damaged_documents_only_ever_give_an_input_error():
    rows = [ROW, {**ROW, "at": {"x": 1}, "note": "東"}]
    for text in (json.dumps({"data": rows}), "\n".join(map(json.dumps, rows))):
        read, refused = outcomes(open_json_rows, text.encode())
        assert read > 20
        assert refused > 50
