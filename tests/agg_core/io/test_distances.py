"""Distances between cells: square tables, rows of pairs, OMX, and what is missing."""

import io

import numpy as np
import pytest

from agg_core.io.distances import read_distances
from tests.faults import refused

CELLS = ("a", "b", "c")
KM = np.array([[0.0, 1.5, 2.0], [1.25, 0.0, 3.0], [2.0, 4.0, 0.5]])
SQUARE = "cell,c,a,b\nb,3,1.25,0\na,2,0,1.5\nc,0.5,2,4\n"
PAIRS = "origin,dest,km\n" + "".join(
    f"{CELLS[i]},{CELLS[j]},{KM[i, j]}\n" for i in range(3) for j in range(3)
)


@pytest.mark.parametrize("text", [SQUARE, PAIRS], ids=["square", "pairs"])
def test_tables_of_names_give_the_same(text):
    np.testing.assert_array_equal(read_distances(text.encode(), CELLS), KM)


def test_numbers_alone_are_in_the_order_of_the_cells(tmp_path):
    out = io.StringIO()
    np.savetxt(out, KM, delimiter=",")
    np.testing.assert_array_equal(read_distances(out.getvalue().encode(), CELLS), KM)


def test_omx_with_one_matrix(tmp_path):
    openmatrix = pytest.importorskip("openmatrix")
    with openmatrix.open_file(str(tmp_path / "km.omx"), "w") as file:
        file["km"] = KM
    np.testing.assert_array_equal(read_distances(tmp_path / "km.omx", CELLS), KM)


def test_who_stays_goes_nowhere_if_nothing_is_said():
    text = "\n".join(line for line in PAIRS.splitlines() if line != "c,c,0.5")
    assert read_distances(text.encode(), CELLS)[2, 2] == 0


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (PAIRS.replace("a,b,1.5\n", ""), "distance-missing"),
        (PAIRS.replace("1.5", "far"), "distance-missing"),
        (PAIRS.replace("1.5", "-1"), "distance-missing"),
        (PAIRS.replace("1.5", "inf"), "distance-missing"),
        ("origin,dest,km\nx,y,1\n", "unknown-cells"),
        ("x,y\n1,2\n", "column-not-found"),
    ],
)
def test_what_cannot_be_used_is_one_sentence(text, code):
    with refused(code):
        read_distances(text.encode(), CELLS)
