import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agg_core.base.errors import InputError
from agg_core.io.formats.json_text import as_number, as_text, head_text, json_pieces

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def pieces(text, *lists, window=3):
    return list(json_pieces(text.encode(), "day.json", lists, window))


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.sampled_from("abc"), VALUES), st.sampled_from([None, 2]))
def test_the_pieces_of_an_object_are_what_the_standard_library_reads(document, indent):
    found = pieces(json.dumps(document, indent=indent), "a")
    listed = document.get("a") if isinstance(document.get("a"), list) else None
    assert [value for key, value in found if key == "a"] == (listed or [])
    assert found[-1] == (None, document | ({} if listed is None else {"a": []}))


@settings(max_examples=100, deadline=None)
@given(st.lists(VALUES, max_size=4))
def test_the_pieces_of_a_list_are_its_elements(document):
    assert pieces(json.dumps(document)) == [("", value) for value in document] + [(None, [])]


def test_documents_may_follow_each_other():
    assert pieces('\x1e{"a": 1}\n\x1e{"a": [2]}\n \n3', "b") == [
        (None, {"a": 1}),
        (None, {"a": [2]}),
        (None, 3),
    ]
    assert pieces(" \n") == []


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('{"a": [1, 2', "breaks-off-early"),
        ('{"a": [{"b": 1', "breaks-off-early"),
        ('{"a": "text', "breaks-off-early"),
        ('{"a"', "breaks-off-early"),
        ("[1, ", "breaks-off-early"),
        ("[1, ]", "malformed-json"),
        ('{"a": 1,\n "b" 2}', "malformed-json"),
        ('{"a": 1,}', "malformed-json"),
        ('{"a": [1,]}', "malformed-json"),
        ("{a: 1}", "malformed-json"),
        ("[1 2]", "malformed-json"),
        ("]", "malformed-json"),
        ('{"b": ' + "[" * 100_000, "nested-too-deep"),
        ('[{"b":' * 100_000, "nested-too-deep"),
        ("[" * 100_000, "nested-too-deep"),
        ("[" + "9" * 10_000 + "]", "number-too-long"),
    ],
)
def test_broken_json_is_explained(text, code):
    with pytest.raises(InputError) as told:
        pieces(text, "a")
    assert told.value.code == code


@pytest.mark.parametrize(
    ("text", "place"), [("[1, ]", "line 1, at ']'"), ('{"a": 1,\n "b" 2}', "line 2, at '2")]
)
def test_where_json_is_broken_is_told(text, place):
    with pytest.raises(InputError) as told:
        pieces(text, "a")
    assert place in str(told.value)


def test_text_is_unicode():
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        data = ' \n{"é東😀": 1}'.encode(encoding)
        assert list(json_pieces(data, "day.json", (), 1)) == [(None, {"é東😀": 1})]
        assert head_text(data) == '{"é東😀": 1}'
    for data in (b"\xff\xfe\x00", b'{"\xe9"}', b'{"\xe6', b'{"a": "\xff"}'):
        with pytest.raises(InputError) as told:
            list(json_pieces(data, "day.json", (), 2))
        assert told.value.code == "wrong-encoding"
    with pytest.raises(InputError) as told:
        pieces('{"a": \0}')
    assert told.value.code == "malformed-json"


def test_a_long_document_is_read_in_windows():
    rows = [{"i": i, "text": "東" * (i % 50)} for i in range(2000)]
    document = {"head": 1, "rows": rows, "tail": [1.5, -20]}
    for window in (1, 7, 1000, 1 << 22):
        found = pieces(json.dumps(document, ensure_ascii=False), "rows", window=window)
        assert [value for key, value in found if key == "rows"] == rows
        assert found[-1] == (None, {**document, "rows": []})
    text = json.dumps(rows, indent=1)
    line = text[: text.index('"i": 1999')].count("\n") + 1
    with pytest.raises(InputError) as told:
        pieces(text.replace('"i": 1999', '"i" 1999'), window=100)
    assert f"line {line:,}, at " in str(told.value)


def test_scalars_become_texts_and_numbers():
    assert [as_text(value) for value in ("a", True, 2, 2.0, 0.5, 1e300, 731904466120957813)] == [
        *("a", "true", "2", "2", "0.5", "1e+300", "731904466120957813")
    ]
    assert [as_text(value) for value in (None, [], {}, float("nan"), float("inf"))] == [None] * 5
    assert (as_number(2), as_number(-0.5)) == (2.0, -0.5)
    odd = ("2", None, True, [1], 10**400)
    assert all(map(math.isnan, map(as_number, odd)))
