import csv
import io

import numpy as np
import openmatrix
import pytest

from agg_core.exports.matrices import od_csv, omx
from agg_core.study import SOURCES
from tests.agg_core.exports import by_hand


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
        assert (about["anchor"], about["step_minutes"]) == ("08:00", 60)
        assert about["units"] == "people per step"


def test_attributes_are_plain_text_and_no_pickle():
    """PyTables pickles what it cannot write as text or number, where a V stands before the text."""
    content = omx(by_hand.result(), by_hand.MORNING)
    assert content.count(b"people per step") == len(SOURCES)
    assert b"Vpeople per step" not in content
