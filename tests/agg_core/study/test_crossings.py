"""Flows from counts with gates beside them: a simulated city whose true moves are known."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from agg_core import GateFile, learn_flows, load_result, save_result
from agg_core.made.counts import simulate_city
from agg_core.study.counts import count_study_steps
from agg_core.study.crossings import GatesBeside
from agg_core.study.result import ESTIMATE, WHOLE_DAY
from agg_core.study.settings import CountLearnSettings
from agg_core.tables.crossings import CrossingTable
from tests.agg_core.counts import made
from tests.faults import refused

QUICK = CountLearnSettings(
    time="one", strength="given", count_error=0, expansion=1, replicates=6, threshold=1
)
WAYS = ((0, 1), (4, 5), (7, 4), (3, 4), (1, 4))


def learned(table, gates=None, **other):
    *_, found = count_study_steps(table, replace(QUICK, **other), gates=gates)
    return found


@pytest.fixture(scope="module")
def city():
    return simulate_city(3, 3, days=4, people=900, random_state=1)


@pytest.fixture(scope="module")
def table(city):
    return made.city_table(city)


@pytest.fixture(scope="module")
def gates(city):
    """Exact counts of five single moves."""
    counts = np.full((len(city.counts), len(WAYS)), np.nan)
    moves = np.zeros((len(WAYS), 10, 10))
    for number, (i, j) in enumerate(WAYS):
        counts[:-1, number] = city.moves[:, i, j]
        moves[number, i, j] = 1
    names = tuple(f"{i} – {j}" for i, j in WAYS)
    ways = tuple(f"to {j}" for _, j in WAYS)
    return CrossingTable(names, ways, sparse.csr_array(moves.reshape(len(WAYS), -1)), counts)


@pytest.fixture(scope="module")
def beside(table, gates):
    return learned(table, gates)


def missed(found, city):
    """People by which flows past gates are missed over the day, a share of those who passed."""
    flows = found.matrix(WHOLE_DAY) * found.steps_summed(WHOLE_DAY)
    true = city.moves.sum(axis=0)
    far = sum(abs(flows[way] - true[way]) for way in WAYS)
    return far / sum(true[way] for way in WAYS)


def test_flows_past_gates_are_known_better(city, table, beside):
    alone = learned(table)
    assert missed(beside, city) < 0.6 * missed(alone, city)
    weights = np.zeros((9, 9))
    weights[tuple(zip(*WAYS, strict=True))] = 1
    widths = [np.ptp(found.interval(WHOLE_DAY, ESTIMATE, weights)) for found in (beside, alone)]
    assert widths[0] < 0.7 * widths[1]
    assert alone.gates is None
    assert alone.summary()["gates"] is None


def test_the_summary_tells_of_each_gate(gates, beside):
    told = beside.summary()["gates"]
    assert (told["n_gates"], told["n_used"]) == (5, gates.n_used)
    assert told["error_learned"]
    assert told["contradictions"] == []
    assert [each["gate"] for each in told["gates"]] == list(gates.gates)
    assert {each["n_used"] for each in told["gates"]} == {95}
    assert str(gates.n_used) in beside.evidence


def test_what_contradicts_is_kept_with_the_run(table, gates, tmp_path):
    counts = gates.counts.copy()
    counts[:, 4] = 10_000  # more than there are
    found = learned(
        table,
        replace(gates, counts=counts, error=0.1, set_aside={"x": 2}),
        replicates=0,
    )
    named = {(c.code, c.gate, c.direction) for c in found.gates.contradictions}
    assert ("people", "1 – 4", "to 4") in named
    assert not found.gates.error_learned
    assert found.gates.words in found.evidence
    save_result(found, tmp_path / "run")
    kept = load_result(tmp_path / "run")
    assert kept.gates == found.gates
    assert kept.gates.set_aside == {"x": 2}
    assert kept.summary()["gates"] == found.summary()["gates"]
    assert GatesBeside.from_dict(found.gates.to_dict()) == found.gates


def test_few_people_are_drawn_with_gates(gates):
    few = simulate_city(3, 3, days=3, people=30, random_state=1)
    counts = np.full((len(few.counts), 1), np.nan)
    counts[:-1, 0] = 0
    one = replace(
        gates, gates=("0 – 1",), directions=("to 1",), moves=gates.moves[[0]], counts=counts
    )
    found = learned(made.city_table(few), one, replicates=0)
    assert (found.learner, found.happened.method) == ("drawn", "drawn")
    alone = learned(made.city_table(few), replicates=0)
    # Nobody passed.
    assert found.matrix(WHOLE_DAY)[0, 1] < 0.8 * alone.matrix(WHOLE_DAY)[0, 1]


@pytest.mark.parametrize(
    ("code", "settings"),
    [
        ("gates-unsuited", {"reach_m": 2_000.0}),
        ("gates-unsuited", {"count_error": 0.05}),
        ("gates-unsuited", {"expansion": 10.0}),
    ],
)
def test_what_gates_do_not_suit_is_refused(table, gates, code, settings):
    with refused(code):
        learned(table, gates, **settings)


def test_gates_of_other_cells_or_times_are_refused(table, gates):
    with refused("no-gate-counts"):
        learned(table, replace(gates, counts=np.full(gates.counts.shape, np.nan)))
    with refused("gates-of-other-cells"):
        learned(table, replace(gates, moves=sparse.csr_array((5, 16))))


def test_in_one_call(city):
    long = pd.DataFrame(city.counts, columns=city.codes, index=city.local.rename("time"))
    long = long.reset_index().melt("time", var_name="mesh", value_name="count")
    rows = pd.DataFrame(
        [(city.local[t], *(city.codes[at] for at in way), city.moves[t][way])
         for t in range(40) for way in WAYS],
        columns=["time", "origin", "dest", "count"],
    )  # fmt: skip
    options = {"time": "one", "strength": "given", "replicates": 0, "tz": "Asia/Tokyo"}
    found = learn_flows(long, gates=GateFile(rows, error=0.05), **options)
    assert found.gates.n_used == 200
    assert {gate.error for gate in found.gates.gates} == {0.05}


def test_gates_beside_people_are_refused():
    people = pd.DataFrame({
        "user_id": ["a", "a"], "lon": [139.1, 139.2], "lat": [35.1, 35.1],
        "time": pd.date_range("2024-05-01", periods=2, freq="h"),
    })  # fmt: skip
    with refused("option-unused"):
        learn_flows(people, gates=GateFile(people))
