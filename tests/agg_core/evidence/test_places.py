"""Where people of a place come from and go to, against the matrix and its intervals."""

from dataclasses import replace

import numpy as np
import pytest

from agg_core.evidence.places import flows_of_place
from agg_core.study.result import ESTIMATE
from tests.agg_core import counted
from tests.faults import refused

MORNING = counted.MORNING


@pytest.mark.parametrize("end", ["in", "out"])
@pytest.mark.parametrize("cell", [0, 1, 2])
def test_rows_are_those_of_the_matrix_with_its_intervals(cell, end):
    result = replace(counted.drawn(), step_minutes=30.0)
    found = flows_of_place(result, MORNING, cell, end)
    matrix = 2 * np.asarray(result.matrix(MORNING))[:9, :9]
    ends = matrix[:, cell] if end == "in" else matrix[cell]
    others = [i for i in np.argsort(-ends, kind="stable") if ends[i] > 0 and i != cell]
    assert found["place"].tolist() == [result.states.cells[i] for i in others]
    assert found["count"].tolist() == pytest.approx(ends[others].tolist())
    for other, row in zip(others, found.to_dict("records"), strict=True):
        weights = np.zeros((10, 10))
        weights[(other, cell) if end == "in" else (cell, other)] = 1
        low, high = result.interval(MORNING, ESTIMATE, weights)
        assert [row["low"], row["high"]] == pytest.approx([2 * float(low), 2 * float(high)])


def test_without_worlds_there_is_no_interval_and_cells_must_exist():
    found = flows_of_place(counted.both(), MORNING, 1, "in")
    assert found["low"].isna().all()
    with refused("unknown-cell"):
        flows_of_place(counted.both(), MORNING, 9, "in")
    with refused("unknown-time"):
        flows_of_place(counted.both(), "03:00", 1, "in")
