"""Counts with known flows, and the figures that are made of them."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from agg_core.counts.pairs import CountPairs, pairs_of
from agg_core.made.counts import simulate_city
from agg_core.space.settings import GridSettings
from agg_core.tables.counts import PUBLISHED, SUPPRESSED
from benchmarks.counts import command, panel
from benchmarks.counts.cases import (
    Case,
    blanks_as_zero,
    city,
    commuters,
    scaled_up,
    suppressed,
    tokyo,
)
from benchmarks.counts.contest import figures, methods
from benchmarks.counts.peer import can_learn, peer_flows
from benchmarks.counts.picture import population_figure


@pytest.mark.parametrize("by_hour", [False, True])
def test_the_moves_of_a_city_lead_from_each_count_to_the_next(by_hour):
    case = city(500, by_hour=by_hour, days=3)
    counts = case.table.counts.reshape(3, 48, 100)
    assert (counts.sum(axis=2) == 500).all()
    np.testing.assert_array_equal(case.moves[:-1].sum(axis=2), counts[:, :-1].sum(axis=0))
    np.testing.assert_array_equal(case.moves[:-1].sum(axis=1), counts[:, 1:].sum(axis=0))
    assert pairs_of(case.table).n_pairs == 3 * 47


def test_commuters_move_from_each_count_to_the_next():
    case = commuters()
    pairs = pairs_of(case.table)
    np.testing.assert_array_equal(case.moves.sum(axis=2), pairs.people)


def test_all_people_of_tokyo_are_counted_as_the_derived_table_counts_them(shared_data):
    case = tokyo(20, everybody=True)
    derived = pd.read_csv(shared_data / "tokyo_people_flow" / "derived_counts_date_slot_cell.csv")
    assert case.table.totals.sum() == derived["n"].sum() == 30_000
    by_cell = derived.groupby("cell")["n"].sum()
    np.testing.assert_array_equal(case.table.counts.sum(axis=0)[by_cell.index], by_cell)
    moved = pd.read_csv(
        shared_data / "tokyo_people_flow" / "derived_true_flows_date_slot_from_to.csv"
    )
    assert case.moves.sum() == moved["n"].sum()
    by_slot = moved.groupby("slot")["n"].sum()
    np.testing.assert_array_equal(case.moves.sum(axis=(1, 2))[by_slot.index], by_slot)


def test_small_counts_are_withheld_and_then_taken_for_zero():
    table = city(100, days=1).table
    withheld = suppressed(table, 3)
    assert (withheld.status == np.where(table.counts < 3, SUPPRESSED, PUBLISHED)).all()
    blank = blanks_as_zero(withheld)
    np.testing.assert_array_equal(blank.counts, np.where(table.counts < 3, 0, table.counts))
    assert blank.n_suppressed == 0


def test_one_day_of_tokyo_is_the_one_with_most_people(shared_data):
    case = tokyo(5, one_day=True)
    assert set(case.table.totals) == {119.0}
    assert case.moves.sum() == 119 * (len(case.table.times) - 1)


def test_one_in_a_few_people_are_followed_by_the_true_moves():
    rng = np.random.default_rng(0)
    rows = np.array([[0.7, 0.3, 0.0], [0.0, 0.5, 0.5], [1.0, 0.0, 0.0]])
    table = city(100, days=1).table
    counts, moves = [rng.integers(2_000, 6_000, 3)], []
    for _ in table.times[1:]:
        moves.append(rng.multinomial(counts[-1], rows))
        counts.append(moves[-1].sum(axis=0))
    by_pair = np.array(moves)
    counted = replace(
        table, cells=tuple("abc"), grid=None, counts=np.array(counts, dtype=float),
        status=np.full((len(counts), 3), PUBLISHED, dtype=np.uint8),
    )  # fmt: skip
    case = Case(counted, by_pair[:1], by_pair)
    found = scaled_up(case, 4, rng)
    seen = found.counts / 4
    np.testing.assert_array_equal(seen, np.rint(seen))
    assert (seen.sum(axis=1) == seen[0].sum()).all()
    assert (seen <= case.table.counts).all()
    # As many of each cell as chance says, all the time.
    expected = case.table.counts / 4
    assert (np.abs(seen - expected) < 4.5 * np.sqrt(expected * 0.75)).all()
    assert (seen != np.rint(expected)).any()
    same = scaled_up(case, 1, rng)
    np.testing.assert_array_equal(same.counts, case.table.counts)


def test_figures_leave_out_stays_and_what_is_outside():
    truth = np.array([[[9.0, 2.0], [4.0, 5.0]], [[1.0, 0.0], [2.0, 7.0]]])
    found = np.zeros((2, 3, 3))
    found[0] = [[0, 1, 8], [5, 0, 8], [8, 8, 8]]
    found[1] = [[0, 2, 8], [0, 0, 8], [8, 8, 8]]
    told = figures(found, truth)
    # By pair: 3 and 5 against 2 and 6; by time: 1, 5, 2, 0 against 2, 4, 0, 2.
    assert told["cpc"] == pytest.approx(2 * (2 + 5) / (8 + 8))
    assert told["total_ratio"] == pytest.approx(1.0)
    assert told["cpc_by_slot"] == pytest.approx(2 * (1 + 4) / 16)


def test_the_command_prints_the_rows_of_each_case(capsys, monkeypatch):
    monkeypatch.setattr(command, "methods", lambda *_, **__: iter([{"method": "m", "cpc": 0.5}]))
    assert command.main(["population", "--populations", "30", "60"]) == 0
    shown = capsys.readouterr().out
    assert "population=30  method=m  cpc=0.5" in shown
    assert "population=60  method=m  cpc=0.5" in shown


def test_gravity_and_the_papers_learner_stand_beside_ours():
    made = simulate_city(3, 3, days=2, people=60, random_state=0)
    case = commuters(made)
    ways = {row["method"]: row for row in methods(case)}
    assert {"start", "gravity", "cfb, no prior", "no prior", "prior", "default"} <= set(ways)
    assert "flowstock" in ways
    assert ways["cfb, no prior"]["total_ratio"] > ways["default"]["total_ratio"]


def pairs_by_hand(before, after, **changed):
    """Pairs of which every other one is at the second of two times of day."""
    before, after = np.array(before, dtype=float), np.array(after, dtype=float)
    return CountPairs(**{
        "before": before, "after": after, "slot": np.arange(len(before)) % 2,
        "day": np.zeros(len(before), dtype=np.int64), "slots": ("08:00", "09:00"),
        "has_outside": False, "open_before": before < 0, "open_after": before < 0, **changed,
    })  # fmt: skip


def test_flowstock_moves_people_where_counts_say_that_they_went():
    """Pairs that are no series: at 08:00 ten people more go one way, at 09:00 twenty the other."""
    pairs = pairs_by_hand(
        [[100, 0, 100], [80, 0, 120]] * 3, [[90, 0, 110], [100, 0, 100]] * 3
    )  # fmt: skip
    flows, what = peer_flows(pairs, GridSettings(139, 35, 139.3, 35.1, 1, 3).make())
    assert not what.endswith("not converged")
    assert flows[0, 0, 2] - flows[0, 2, 0] == pytest.approx(3 * 10, abs=0.5)
    assert flows[1, 2, 0] - flows[1, 0, 2] == pytest.approx(3 * 20, abs=0.5)
    np.testing.assert_allclose(flows.sum(axis=2), [[300, 0, 300], [240, 0, 360]], atol=0.5)
    np.testing.assert_allclose(flows.sum(axis=1), [[270, 0, 330], [300, 0, 300]], atol=0.5)


def test_flowstock_ends_when_its_time_is_over():
    pairs = pairs_by_hand([[100, 100], [80, 120]], [[90, 110], [100, 100]])
    grid = GridSettings(139, 35, 139.2, 35.1, 1, 2).make()
    flows, what = peer_flows(pairs, grid, seconds=0)
    assert what == "rounds=1, not converged"
    assert flows.sum() == pytest.approx(400, rel=0.1)


def test_flowstock_is_asked_only_for_what_it_can_take(monkeypatch):
    pairs = pairs_by_hand([[100, 100], [80, 120]], [[90, 110], [100, 100]])
    grid = GridSettings(139, 35, 139.2, 35.1, 1, 2).make()
    assert can_learn(pairs, grid)
    assert not can_learn(pairs, None)
    assert not can_learn(replace(pairs, has_outside=True), grid)
    monkeypatch.setattr("benchmarks.counts.peer.MOST_NUMBERS", 2 * 2 * 2 - 1)
    assert not can_learn(pairs, grid)
    monkeypatch.undo()
    monkeypatch.setattr("benchmarks.counts.peer.find_spec", lambda _: None)
    assert not can_learn(pairs, grid)


def test_rows_are_kept_and_drawn_by_population(tmp_path, monkeypatch):
    def rows(case, **_):
        people = case.table.counts[0].sum()
        for i, method in enumerate(("gravity", "default")):
            figures = {"cpc": people / 100, "cpc_by_slot": 0.5, "total_ratio": 1.0 + i}
            yield {"method": method, **figures}

    monkeypatch.setattr(command, "methods", rows)
    kept = tmp_path / "rows.csv"
    command.main(["population", "--populations", "60", "30", "--rows", str(kept)])
    table = pd.read_csv(kept)
    assert table["cpc"].tolist() == [0.6, 0.6, 0.3, 0.3]
    figure = population_figure([table, table], ["one", "other"])
    lines = {line.name: line for line in figure.data if line.yaxis == "y" and line.x is not None}
    assert list(lines["default"].x) == [30, 60]
    assert list(lines["default"].y) == [0.3, 0.6]
    assert [panel.text for panel in figure.layout.annotations] == ["one", "other"]


def followed_few():
    """Thirty people of a row of four cells who were followed for four days."""
    rng = np.random.default_rng(0)
    places = rng.integers(4, size=(48, 30))
    states = np.where(rng.random((48, 30)) < 0.7, places[:1], places)
    made = city(30, days=2)
    counts = np.stack([np.bincount(row, minlength=100) for row in states])
    by_pair = np.zeros((47, 100, 100))
    for p in range(47):
        np.add.at(by_pair[p], (states[p], states[p + 1]), 1)
    first = made.table.take(np.arange(48))
    table = replace(first, counts=counts.astype(float))
    moves = np.zeros((48, 100, 100))
    np.add.at(moves, table.slot[:-1], by_pair)
    return panel.Followed(Case(table, moves, by_pair), states, np.arange(100) < 2)


def test_a_biased_panel_is_mostly_of_the_west():
    followed = followed_few()
    shares = []
    for biased in (False, True):
        drawn = [
            panel.drawn_panel(followed, 0.2, np.random.default_rng(seed), biased=biased)[0] < 2
            for seed in range(40)
        ]
        shares.append(np.mean(drawn))
    west = (followed.states[0] < 2).mean()
    assert shares[0] == pytest.approx(west, abs=0.1)
    assert shares[1] == pytest.approx(3 * west / (1 + 2 * west), abs=0.12)


def test_the_panel_alone_is_scaled_up_to_all():
    followed = followed_few()
    states = followed.states[:, :30]
    pairs = pairs_of(followed.case.table)
    found = replace(pairs, panel=panel.panel_of(states, pairs.moment))
    told = panel._scaled(followed.case, found)
    assert told["cpc"] == pytest.approx(1, abs=0.02)
    assert told["total_ratio"] == pytest.approx(48 / 47)


def test_means_of_panels_say_where_both_are_better():
    base = {"case": "x", "total_ratio": 1.0}
    alone = [
        {**base, "share": 0.0, "biased": False, "seed": s, "method": "counts alone",
         "cpc": 0.5, "cpc_by_slot": 0.6}
        for s in range(2)
    ]  # fmt: skip
    each = {
        (method, s): {**base, "share": 0.1, "biased": True, "seed": s, "method": method,
                      "cpc": cpc, "cpc_by_slot": 0.9}
        for s in range(2)
        for method, cpc in (("both", 0.4 + 0.2 * s), ("panel scaled up", 0.5))
    }  # fmt: skip
    told = panel.panel_means(pd.DataFrame([*alone, *each.values()])).set_index("method")
    assert told.loc["both", "cpc"] == pytest.approx(0.5)
    assert told.loc["both", "cpc above counts alone"] == 1
    assert told.loc["both", "cpc_by_slot above panel scaled up"] == 0
