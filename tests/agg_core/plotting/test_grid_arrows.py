import numpy as np
import pytest

from agg_core.plotting.deck import typical_side_m
from agg_core.plotting.grid_arrows import arrow_half_widths_m, drawn_flows, flow_rings
from tests.agg_core.plotting.canvas import SMALL, flows


def test_an_arrow_runs_from_its_origin_to_its_destination():
    rings, _ = flow_rings(SMALL, flows((0, 5, 10)), np.array([10.0]), 10.0)
    tail, tip = np.mean([rings[0, 0], rings[0, 6]], axis=0), rings[0, 3]
    assert SMALL.assign([tail[0]], [tail[1]])[0] == 0
    assert SMALL.assign([tip[0]], [tip[1]])[0] == 5


def test_widths_follow_the_scale_and_the_size_of_cells():
    table = flows((0, 1, 50), (1, 0, 100), (2, 1, 500))
    _, half = flow_rings(SMALL, table, table["count"].to_numpy(), 100.0)
    least, most = arrow_half_widths_m(SMALL)
    assert half == pytest.approx([most / 2, most, most])
    assert least < most < typical_side_m(SMALL)


def test_the_outside_has_no_arrow_and_is_counted():
    found = drawn_flows(SMALL, flows((6, 2, 77), (2, 0, 10), (1, 1, 9), (0, 1, 2)), 5)
    assert found.frame[["origin", "dest"]].to_numpy().tolist() == [[2, 0]]
    assert found.outside_count == 77
    assert found.total_moves == 89
