"""The benchmark of gates: what they count, and proportional fitting beside it."""

import numpy as np
import pytest

from agg_core.counts.pairs import pairs_of
from agg_core.made.counts import simulate_city
from agg_core.study.counts import move_shape
from benchmarks.counts.cases import commuters
from benchmarks.counts.gates import contradicted, counted_gates, gate_rows, ipf_flows


@pytest.fixture(scope="module")
def case():
    return commuters(simulate_city(4, 4, days=2, people=400, random_state=0))


def test_gates_count_who_passes_them(case):
    gates = counted_gates(case, 0, 6)
    assert gates.n_gates == 6
    passed = case.by_pair.reshape(47, -1) @ gates.between(outside=False).T
    counts = gates.counts[:-1]
    far = (counts - passed) / np.sqrt(np.maximum(passed + (0.05 * passed) ** 2, 1))
    assert np.abs(far.mean()) < 0.2
    assert 0.7 < far.std() < 1.2
    wrong = contradicted(gates, 2)
    np.testing.assert_array_equal(wrong.counts[:-1, 2], 2 * counts[:, 2])
    assert np.isnan(gates.without(2).counts[:, 2]).all()


def test_proportional_fitting_meets_counts_and_gates(case):
    gates = counted_gates(case, 0, 2)
    pairs = pairs_of(case.table)
    flows = ipf_flows(
        case, move_shape(case.table, outside=False)[None], contradicted(gates, 0).without(0)
    )
    np.testing.assert_allclose(flows.sum(axis=1), np.stack([
        pairs.after[pairs.slot == h].sum(axis=0) for h in range(24)
    ]), rtol=1e-6)  # fmt: skip
    passed = flows.reshape(24, -1) @ gates.between(outside=False).T
    alone = ipf_flows(
        case, move_shape(case.table, outside=False)[None], gates.without(0).without(1)
    )
    before = alone.reshape(24, -1) @ gates.between(outside=False).T
    told = np.zeros((24, 2))
    np.add.at(told, case.table.slot[:-1], gates.counts[:-1])
    assert np.abs(passed - told)[:, 1].sum() < 0.2 * np.abs(before - told)[:, 1].sum()


def test_rows_of_a_small_city():
    ten, wrong = gate_rows(1, replicates=2, people=200, side=4)
    assert ten["theory day"] < 1
    assert {"width day", "held times, gates", "cpc gates", "n times"} <= ten.keys()
    assert {"named", "z", "elsewhere day", "ipf elsewhere times"} <= wrong.keys()
