"""Matrices of OMX as tables of flows, and files that are there to do harm."""

import os
import pickle

import numpy as np
import openmatrix
import pytest

from agg_core.exports.matrices import omx, omx_times
from agg_core.io.flow_tables import KnownStates, read_flow_table
from agg_core.io.formats import omx as reader
from tests.agg_core import counted
from tests.faults import refused
from tests.warm import fork_from_now_on

NAMES = ("a", "b", "c")
TIMES = ("08:00", "09:00")
WHOLE = KnownStates(NAMES, "outside")
BY_TIME = KnownStates(NAMES, "outside", TIMES, 60)
FIRST = np.array([[1.0, 5.0, 0.0], [0.0, 0.0, 2.5], [0.0, 0.0, 0.0]])
SECOND = np.array([[0.0, 4.0, 0.0], [0.0, 0.0, 0.0], [3.0, 0.0, 0.0]])


@pytest.fixture(scope="module", autouse=True)
def forked():
    with pytest.MonkeyPatch.context() as patch:
        fork_from_now_on(patch)
        yield


@pytest.fixture
def made(tmp_path):
    """The content of a file of matrices by name, with mappings, and attributes of each matrix."""

    def make(matrices, mappings=None, attributes=None, harm=lambda file: None):
        path = tmp_path / "made.omx"
        with openmatrix.open_file(str(path), "w") as file:
            for name, matrix in matrices.items():
                file.create_matrix(name, obj=matrix, attrs=(attributes or {}).get(name))
            for name, entries in (mappings or {}).items():
                file.create_mapping(name, entries)
            harm(file)
        return path.read_bytes()

    return make


def flows_of(table):
    columns = table.flows[["time", "origin", "dest", "count"]]
    return {(t, o, d): count for t, o, d, count in columns.itertuples(index=False)}


WHOLE_DAY = {(0, 0, 0): 1, (0, 0, 1): 5, (0, 1, 2): 2.5}


def test_one_matrix_is_of_the_whole_day_by_the_order_of_the_cells(made):
    for known in (WHOLE, BY_TIME):
        for mappings in ({}, {"cell": [0, 1, 2]}):
            table = read_flow_table(made({"trips": FIRST}, mappings), known)
            assert (flows_of(table), table.times) == (WHOLE_DAY, ())


@pytest.mark.filterwarnings("ignore::tables.NaturalNameWarning")
def test_matrices_named_by_times_are_of_these(made):
    expected = {(0, 0, 0): 1, (0, 0, 1): 5, (0, 1, 2): 2.5, (1, 0, 1): 4, (1, 2, 0): 3}
    for first, second in (("08:00", "09:00"), ("at_08_00", "at_09_00")):
        table = read_flow_table(made({first: FIRST, second: SECOND}), BY_TIME)
        assert (flows_of(table), table.times) == (expected, TIMES)
    attributes = {"x": {"time": "09:00"}, "y": {"time": "08:00"}}
    table = read_flow_table(made({"x": SECOND, "y": FIRST}, {}, attributes), BY_TIME)
    assert flows_of(table) == expected
    alone = read_flow_table(made({"09:00": FIRST}), BY_TIME)
    assert {time for time, _, _ in flows_of(alone)} == {1}


def test_a_mapping_names_the_cells(made):
    known = KnownStates(("30", "10", "20"), "outside")
    table = read_flow_table(made({"x": FIRST}, {"zone": [10, 20, 99], "cell": [0, 1, 2]}), known)
    assert flows_of(table) == {(0, 1, 1): 1, (0, 1, 2): 5}
    assert table.set_aside == {"no such cell": 1}
    # A mapping that but counts says nothing, even where cells have such names.
    known = KnownStates(("1", "2", "3"), "outside")
    assert flows_of(read_flow_table(made({"x": FIRST}, {"cell": [0, 1, 2]}), known)) == WHOLE_DAY


def test_what_was_exported_is_read_back():
    result = counted.both()
    known = KnownStates(result.states.cells, "outside", result.times_of_day, 60)
    found = flows_of(read_flow_table(omx_times(result), known))
    assert found == {
        (number, *move): flow[0]
        for number, time in enumerate(result.times_of_day)
        for move, flow in counted.HAPPENED[time].items()
    }
    with refused("several-matrices", "usual_low"):
        read_flow_table(omx(result, counted.MORNING), known)


def test_values_that_are_none_are_set_aside(made):
    odd = np.array([[0.0, np.nan, 3.0], [-1.0, 0.0, np.inf], [0.0, 0.0, 0.0]])
    table = read_flow_table(made({"x": odd}), WHOLE)
    assert flows_of(table) == {(0, 0, 2): 3}
    assert table.set_aside == {"missing count": 1, "negative count": 1, "count is no number": 1}


@pytest.mark.parametrize(
    ("matrices", "mappings", "code"),
    [
        ({"car": FIRST, "bus": SECOND}, {}, "several-matrices"),
        ({"1": FIRST, "2": SECOND}, {}, "several-matrices"),
        ({"x": FIRST}, {"p": [7, 8, 9], "q": [4, 5, 6]}, "several-mappings"),
        ({"x": FIRST}, {"p": [7, 8, 9]}, "unknown-cells"),
        ({"x": np.ones((5, 5))}, {}, "wrong-shape"),
        ({"x": np.ones((3, 4))}, {}, "wrong-shape"),
        ({}, {}, "wrong-shape"),
        ({"x": np.zeros((3, 3))}, {}, "no-rows-left"),
    ],
)
@pytest.mark.filterwarnings("ignore::tables.NaturalNameWarning")
def test_what_cannot_be_compared_is_refused(made, matrices, mappings, code):
    with refused(code):
        read_flow_table(made(matrices, mappings), BY_TIME)


class Trap:
    """Whoever unpickles it makes a folder."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_nothing_in_a_file_is_unpickled(made, tmp_path):
    trap = tmp_path / "trap"
    bait = np.bytes_(pickle.dumps(Trap(trap), protocol=0))
    assert bait.endswith(b".")

    def harm(file):
        for node in (file.root, file.root.data, file.root.data.x, file.root.lookup.cell):
            for name in ("time", "other", "TITLE", "SHAPE"):
                node._v_attrs[name] = bait

    content = made({"x": FIRST}, {"cell": [0, 1, 2]}, harm=harm)
    assert flows_of(read_flow_table(content, WHOLE)) == WHOLE_DAY
    assert not trap.exists()
    (tmp_path / "copy.omx").write_bytes(content)
    with openmatrix.open_file(str(tmp_path / "copy.omx")) as file:
        assert "other" in file.root._v_attrs
    assert trap.exists(), "the trap works, so its silence above means something"


def test_claims_that_nobody_could_hold_are_refused(made):
    atom = openmatrix.tables.Float64Atom()

    def huge(file):
        file.create_carray(file.root.data, "x", atom, (2_000_000, 2_000_000))

    def many(file):
        for number in range(reader.MOST_MATRICES + 1):
            file.create_carray(file.root.data, f"m{number}", atom, (3, 3))

    for harm, code in ((huge, "too-many-cells"), (many, "too-many-matrices")):
        content = made({}, harm=harm)
        with refused(code):
            read_flow_table(content, WHOLE)


def test_values_that_unpack_to_far_more_than_their_file_are_refused(made):
    n = 3100
    content = made({"x": np.ones((n, n), dtype=np.uint8)})
    assert len(content) < 300_000 < 200 * len(content) < 8 * n * n
    known = KnownStates([str(i) for i in range(n)], "outside")
    with refused("unpacks-too-large"):
        read_flow_table(content, known)


@pytest.mark.parametrize("left", [8, 40, 500, -1000])
def test_a_damaged_file_is_refused(made, left):
    with refused("damaged-omx"):
        read_flow_table(made({"x": FIRST})[:left], WHOLE)


def test_hdf5_of_another_kind_is_refused(tmp_path):
    path = tmp_path / "other.h5"
    with openmatrix.tables.open_file(str(path), "w") as file:
        file.create_array("/", "values", [1, 2])
    with refused("damaged-omx"):
        read_flow_table(path, WHOLE)
    assert reader.recognises_omx(path.read_bytes())
    assert not reader.recognises_omx(b"origin,dest,count")
