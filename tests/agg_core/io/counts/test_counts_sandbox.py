"""Counts by the door that uploads take: a process of its own, and a file for `open_counts`."""

import io
import zipfile

import numpy as np
import pytest

from agg_core.base.errors import InputError
from agg_core.base.processes import Limits
from agg_core.io import Choices, start_reading
from agg_core.io.counts import CountChoices, holds_counts, read_counts
from agg_core.made.counts import docomo_csv, simulate_city

TRACKS = b"user_id,time,lon,lat\na,2024-02-01 09:00,139.7,35.6\na,2024-02-01 09:10,139.8,35.7\n"
COUNTS = b"time,cell,count\n2024-02-01 09:00,A,5\n2024-02-01 10:00,A,6\n"


@pytest.fixture
def read(tmp_path):
    """Read to the end."""
    started = []

    def run(content, choices=None, limits=None, **how):
        files = content if isinstance(content, dict) else {"f.csv": content}
        folder = tmp_path / str(len(started))
        reading = start_reading(files, choices or CountChoices(), folder, limits, **how)
        started.append(reading)
        reading.wait()
        return reading

    yield run
    for reading in started:
        reading.remove()


def test_what_is_read_is_what_everybody_reads(read):
    content = docomo_csv(simulate_city(3, 3, 2, 300)).encode()
    reading = read(content, kind="counts")
    assert reading.kind == "counts"
    table, wanted = reading.counts(), read_counts(content)
    np.testing.assert_array_equal(table.counts, wanted.counts)
    assert table.grid == wanted.grid
    assert table.report == wanted.report
    assert reading.columns[:3] == ("date", "time", "area")
    assert reading.progress.share == 0.9


def test_choices_reach_the_process(read):
    choices = CountChoices.of({"count": "count"}, tz="Asia/Tokyo", absent="missing")
    table = read(COUNTS, choices, kind="counts").counts()
    assert table.slots == ("09:00", "10:00")
    assert str(table.times[0]) == "2024-02-01 00:00:00+00:00"


def test_a_fault_comes_back_as_its_sentence_with_its_option(read):
    reading = read(b"time,cell,a,b\n2024-02-01 09:00,A,5,6\n", kind="counts")
    assert reading.state == "failed"
    with pytest.raises(InputError) as told:
        reading.counts()
    assert told.value.code == "column-not-found"
    assert told.value.option == "--column count=NAME"
    assert reading.columns == ("time", "cell", "a", "b")


@pytest.mark.parametrize(
    ("content", "kind"),
    [(COUNTS, "counts"), (TRACKS, "trajectories")],
)
def test_the_process_finds_out_which_of_the_two_it_is(read, content, kind):
    reading = read(content, Choices(), kind="auto")
    assert reading.state == "done"
    assert reading.kind == kind
    if kind == "counts":
        assert reading.counts().counts.ravel().tolist() == [5, 6]
    else:
        assert len(reading.result()) == 2


def test_trajectories_are_read_as_before(read):
    reading = read(TRACKS, Choices(tz="Asia/Tokyo"))
    assert reading.kind == "trajectories"
    assert len(reading.result()) == 2
    other = read(TRACKS, CountChoices(), kind="trajectories")
    assert len(other.result()) == 2


def test_too_much_is_a_sentence(read):
    content = docomo_csv(simulate_city(3, 3, 2, 300)).encode()
    reading = read(content, limits=Limits(1 << 20, 30.0), kind="counts")
    with pytest.raises(InputError) as told:
        reading.counts()
    assert told.value.code == "reading-limit-met"
    assert "more memory" in str(told.value)


def test_archives_and_several_files_are_looked_into():
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a/stations.csv", "station,lon,lat\nA,139.7,35.6\n")
        archive.writestr("counts.csv", COUNTS.replace(b"cell", b"station"))
    content = packed.getvalue()
    assert holds_counts({"f.zip": content})
    assert read_counts({"f.zip": content}).grid is not None
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a.csv", TRACKS)
    assert not holds_counts({"f.zip": packed.getvalue()})
    assert not holds_counts({"f.csv": b"nothing"})
    assert not holds_counts({"f.csv": b""})
