"""A file of people or of counts, which of both being found out."""

import io

import pandas as pd
import pytest

from agg_core.base.errors import InputError
from agg_core.io import Choices, read_trajectories
from agg_core.io.counts import CountChoices, read_counts
from agg_core.io.opening import choices_kind, open_file
from agg_core.tables.counts import CountTable
from agg_core.tables.trajectories import Trajectories

PEOPLE = b"user_id,time,lon,lat\na,2024-05-01T08:00Z,139.5,35.5\na,2024-05-01T09:00Z,139.6,35.6\n"
COUNTS = b"time,cell,count\n2024-05-01T08:00Z,a,30\n2024-05-01T09:00Z,a,25\n"


def as_file(content, folder):
    path = folder / "given"
    path.write_bytes(content)
    return path


FORMS = {
    "content": lambda content, _: content,
    "path": as_file,
    "open file": lambda content, _: io.BytesIO(content),
    "several": lambda content, _: {"one.csv": content},
    "table": lambda content, _: pd.read_csv(io.BytesIO(content)),
}


@pytest.mark.parametrize("form", FORMS)
def test_what_a_file_holds_is_found_out_however_it_is_handed_over(form, tmp_path):
    people = open_file(FORMS[form](PEOPLE, tmp_path))
    assert isinstance(people, Trajectories)
    pd.testing.assert_frame_equal(people.table, read_trajectories(PEOPLE).table)
    counts = open_file(FORMS[form](COUNTS, tmp_path))
    assert isinstance(counts, CountTable)
    assert counts.counts.tolist() == read_counts(COUNTS).counts.tolist() == [[30], [25]]


def test_choices_are_those_of_what_the_file_holds():
    assert open_file(PEOPLE, tz="Asia/Tokyo").timezone == "Asia/Tokyo"
    assert open_file(COUNTS, tz="Asia/Tokyo", absent="zero").timezone == "Asia/Tokyo"
    kept = open_file(COUNTS + b"2024-05-01T09:00Z,b,5\n", where={"cell": "b"})
    assert kept.cells == ("b",)


@pytest.mark.parametrize(
    ("content", "choice", "code"),
    [
        (PEOPLE, {"absent": "zero"}, "option-unused"),
        (COUNTS, {"crs": "EPSG:6677"}, "option-unused"),
        (COUNTS, {"colour": "red"}, "unknown-option"),
    ],
)
def test_choices_for_what_the_file_does_not_hold_are_refused(content, choice, code):
    with pytest.raises(InputError) as told:
        open_file(content, **choice)
    assert told.value.code == code


def test_a_column_of_persons_or_of_counts_says_what_a_table_holds():
    rows = b"when,cell,count,lon,lat\n2024-05-01T08:00Z,a,30,139.5,35.5\n"
    assert choices_kind(rows, (), {}) is CountChoices
    assert choices_kind(rows, ("user_id",), {}) is Choices
    people = open_file(rows, columns={"user_id": "cell", "time": "when"})
    assert isinstance(people, Trajectories)
    bare = COUNTS.partition(b"\n")[2]
    assert choices_kind(bare, ("count",), {}) is CountChoices


def test_what_is_said_of_the_file_is_heard_before_the_look():
    unusual = COUNTS.replace(b",", b"~")
    assert choices_kind(unusual, (), {}) is Choices
    assert choices_kind(unusual, (), {"separator": "~"}) is CountChoices
    assert open_file(unusual, separator="~").counts.tolist() == [[30], [25]]


def test_a_file_open_as_text_is_refused():
    with pytest.raises(InputError) as told:
        open_file(io.StringIO(COUNTS.decode()))
    assert told.value.code == "opened-as-text"
