import csv
import io
from dataclasses import replace
from functools import cache

import numpy as np
import openmatrix
import pytest

from agg_core.exports import EXPORTS, ExportInput
from agg_core.exports import matrices as of_matrices
from agg_core.exports.matrices import od_csv, omx, omx_times
from agg_core.study.people import SOURCES
from agg_core.study.result import WHOLE_DAY
from agg_core.study.settings import WindowSettings
from tests.agg_core import counted, tiny
from tests.agg_core.exports import by_hand
from tests.faults import refused


def test_the_csv_matrix_is_square_with_names_on_both_sides():
    content = od_csv(by_hand.result(), by_hand.MORNING)
    header, *rows = csv.reader(io.StringIO(content.decode("utf-8")))
    assert header[:3] == ["origin", "row 0, column 0", "row 0, column 1"]
    assert header[-1] == "outside"
    assert [row[0] for row in rows] == header[1:]
    found = {
        (i, j): float(text)
        for i, row in enumerate(rows)
        for j, text in enumerate(row[1:])
        if float(text) > 0
    }
    expected = by_hand.FLOWS[by_hand.MORNING, "estimate"]
    assert found == {pair: number for pair, number in expected.items() if number > 0}


def test_the_csv_matrix_of_another_source():
    content = od_csv(by_hand.result(), by_hand.NIGHT, "single").decode("utf-8")
    assert content.splitlines()[5] == '"row 1, column 1",6,0,0,0,0,0,0,0,0,0'


@pytest.fixture
def opened(tmp_path):
    path = tmp_path / "flows.omx"
    path.write_bytes(omx(by_hand.result(), by_hand.MORNING))
    with openmatrix.open_file(str(path)) as file:
        yield file


def test_openmatrix_reads_every_source(opened):
    assert sorted(opened.list_matrices()) == sorted(SOURCES)
    assert opened.shape() == (10, 10)
    assert opened.version() == b"0.2"
    for source in SOURCES:
        expected = np.zeros((10, 10))
        for pair, number in by_hand.FLOWS[by_hand.MORNING, source].items():
            expected[pair] = number
        np.testing.assert_array_equal(np.array(opened[source]), expected)


def test_openmatrix_finds_cells_by_number_and_knows_what_the_numbers_are(opened):
    assert opened.list_mappings() == ["cell"]
    assert opened.mapping("cell") == {cell: cell for cell in range(10)}
    for source in SOURCES:
        about = opened[source].attrs
        assert (about["time"], about["step_minutes"]) == ("08:00", 60)
        assert about["units"] == "people per step"


def test_attributes_are_plain_text_and_no_pickle():
    """PyTables pickles what it cannot write as text or number, where a V stands before the text."""
    content = omx(by_hand.result(), by_hand.MORNING)
    assert content.count(b"people per step") == len(SOURCES)
    assert b"Vpeople per step" not in content


def matrices(content, tmp_path):
    """Matrices of an OMX file by name, and the moment of each."""
    path = tmp_path / "asked.omx"
    path.write_bytes(content)
    with openmatrix.open_file(str(path)) as file:
        names = file.list_matrices()
        assert file.list_mappings() == ["cell"]
        assert {file[name].attrs["units"] for name in names} == {"people per step"}
        return {name: (np.array(file[name]), str(file[name].attrs["time"])) for name in names}


def test_every_time_of_day_is_a_matrix_of_the_source_that_was_asked_for(tmp_path):
    found = matrices(omx_times(by_hand.result(), "counted"), tmp_path)
    assert {name: time for name, (_, time) in found.items()} == {
        "at_08_00": "08:00", "at_23_30": "23:30",
    }  # fmt: skip
    assert found["at_08_00"][0][8, 7] == 3.0
    assert found["at_23_30"][0].sum() == 6.0


# ---------------------------------------------------------------- flows from counts


def test_a_moment_of_counts_is_its_flows_and_the_ends_of_their_intervals(tmp_path):
    found = matrices(omx(counted.study(), WHOLE_DAY), tmp_path)
    assert set(found) == {"count", "low", "high"}
    for place, name in enumerate(("count", "low", "high")):
        matrix, moment = found[name]
        assert (matrix.shape, moment) == ((10, 10), WHOLE_DAY)
        assert matrix.sum() == sum(values[place] for values in counted.DAY.values())
        assert matrix[0, counted.OUT] == counted.DAY[0, counted.OUT][place]
    assert set(matrices(omx(counted.unsure(), WHOLE_DAY), tmp_path)) == {"count"}


def test_times_of_counts_are_matrices_whatever_they_are_called(tmp_path):
    found = matrices(omx_times(counted.study()), tmp_path)
    assert found["at_08_00"][0][0, 1] == 6.0
    assert found["at_23_00"][0][4, 0] == 9.0
    alike = replace(counted.study(), slots=("day/1", "noon", "day 1"))
    assert [time for _, time in matrices(omx_times(alike), tmp_path).values()] == [
        "day/1", "day 1",
    ]  # fmt: skip


def test_the_csv_matrix_of_counts_has_the_names_of_the_table():
    lines = od_csv(counted.placeless(), counted.NIGHT).decode("utf-8").splitlines()
    assert lines[0].split(",") == ["origin", *counted.study().cells, "outside"]
    assert lines[5] == "cell 4,9,0,0,0,0,0,0,0,0,0"


@pytest.mark.parametrize("minutes", [None, 30.0])
def test_a_matrix_of_counts_has_the_length_of_a_step_if_known(minutes, tmp_path):
    study = replace(counted.study(), step_minutes=minutes)
    path = tmp_path / "counts.omx"
    path.write_bytes(omx(study, counted.MORNING))
    with openmatrix.open_file(str(path)) as file:
        attributes = file[file.list_matrices()[0]].attrs
        assert ("step_minutes" in attributes) == (minutes is not None)
        assert minutes is None or attributes["step_minutes"] == minutes


# ---------------------------------------------------------------- sparse tables


@cache
def within_reach():
    window = WindowSettings(60, 3, ("06:00", "12:00"), 90)
    settings = tiny.settings(window, iterations=2, reach_m=21_000.0, replicates=2)
    return tiny.run(tiny.people(), settings)[1]


def test_sparse_matrices_are_written_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(of_matrices, "ROWS_AT_ONCE", 4)
    result = within_reach()
    found = matrices(omx(result, "06:00"), tmp_path)
    assert sorted(found) == sorted([*SOURCES, "low", "high"])
    for name, (matrix, time) in found.items():
        assert time == "06:00"
        np.testing.assert_array_equal(matrix, result.matrices("06:00")[name].toarray())
    found = matrices(omx_times(result, "single"), tmp_path)
    for time, name in (("06:00", "at_06_00"), ("12:00", "at_12_00")):
        np.testing.assert_array_equal(found[name][0], result.matrix(time, "single").toarray())
    _, *rows = csv.reader(io.StringIO(od_csv(result, "06:00").decode("utf-8")))
    square = [[float(text) for text in row[1:]] for row in rows]
    np.testing.assert_allclose(square, result.matrix("06:00").toarray(), rtol=1e-9)


def test_tables_of_very_many_cells_are_refused_and_not_offered(monkeypatch):
    result = within_reach()
    for key, name in (("od-csv", "MOST_OF_SHEET"), ("omx", "MOST_OF_OMX")):
        assert EXPORTS[key].available(result)
        monkeypatch.setattr(of_matrices, name, 8)
        assert not EXPORTS[key].available(result)
        with refused("too-many-cells"):
            EXPORTS[key].check(result)
        with refused("too-many-cells") as fault:
            EXPORTS[key].make(ExportInput(result, "06:00"))
        assert tiny.is_one_sentence(str(fault.value))
    assert not EXPORTS["omx-times"].available(result)


@pytest.mark.parametrize("key", sorted(EXPORTS))
def test_everything_can_be_made_of_a_study_within_a_reach(key):
    result = within_reach()
    if EXPORTS[key].available(result):
        assert EXPORTS[key].make(ExportInput(result, "06:00", "Some title"))
