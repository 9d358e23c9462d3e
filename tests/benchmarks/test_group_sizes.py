"""The measuring instruments: right where the answer is known by hand."""

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest

from agg_core import AggregateHMM, __version__
from agg_core.base.errors import InputError
from agg_core.io import read_trajectories
from agg_core.learn.learners import ConvergenceMonitor
from agg_core.made.counts import simulate_city
from agg_core.made.samples import SAMPLES, make_sample
from agg_core.model.hmm import HMM, random_probs
from agg_core.space.build import Grid
from benchmarks.group_sizes import (
    bikes,
    consistency,
    cost,
    coverage,
    learners,
    metres,
    populations,
    tokyo,
    untold,
)
from benchmarks.group_sizes.bikes import BIKES, Band, BikeSettings, banded, read_bikes
from benchmarks.group_sizes.command import TABLES, main
from benchmarks.group_sizes.consistency import CONSISTENCY, ConsistencySettings
from benchmarks.group_sizes.cost import COST, CostSettings
from benchmarks.group_sizes.exact import exact_transitions
from benchmarks.group_sizes.learners import Learner
from benchmarks.group_sizes.paper import PAPER, PaperSettings
from benchmarks.group_sizes.populations import POPULATIONS, PopulationSettings
from benchmarks.group_sizes.tables import (
    FAULT,
    Table,
    attempted,
    expected_flows,
    flow_figures,
    real_data,
    simulated_counts,
)
from benchmarks.group_sizes.tiny import TINY, TinySettings
from benchmarks.group_sizes.tokyo import TokyoSettings
from tests.agg_core import tiny
from tests.agg_core.study import test_days_of_people as days_of_people

# ---------------------------------------------------------------- learners


def test_the_ending_asks_for_calibration(monkeypatch):
    seen = []

    def record(aggregates, hmm, **options):
        seen.append(options)
        return hmm, ConvergenceMonitor(tol=0, n_iter=1, reason="limit")

    monkeypatch.setattr(learners, "learn", record)
    for label in ("cfb", "cfb+calibrated"):
        Learner(label).fit(None, None, 7)
    plain, calibrated = seen
    assert plain == {"inference": "cfb", "fixed": ("emission",), "n_iter": 7, "tol": 1e-5}
    assert calibrated == {**plain, "calibrate": 1}


def test_an_unknown_learner_is_one_sentence(capsys):
    assert main(["tiny", "--learners", "cfbb+calibrated"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "There is no learner called 'cfbb'" in err


def test_a_fit_that_fails_is_a_row_without_figures(monkeypatch):
    def fail(aggregates, hmm, **options):
        return hmm, ConvergenceMonitor(tol=0, n_iter=1, reason="failed", message="It broke.")

    monkeypatch.setattr(learners, "learn", fail)
    row = attempted({"seed": 3}, lambda: Learner("cfb").fit(None, None, 1).course())
    assert row == {"seed": 3, FAULT: "It broke."}


# ---------------------------------------------------------------- what tables share


def summed(rows):
    table = Table(
        name="made", title="Made", settings=object, measure=iter, case=("size", "seed"),
        groupings=(("size",), ()), figures=("value",), ratio_of="value",
    )  # fmt: skip
    return table, table.summary(table.framed(rows))


def test_means_deviations_and_ratios_by_hand():
    def row(size, seed, learner, **rest):
        return {"size": size, "seed": seed, "learner": learner, **rest}

    rows = [
        row(2, 0, "cfb", value=1.0), row(2, 0, "other", value=0.5),
        row(2, 1, "cfb", value=3.0), row(2, 1, "other", fault="No."),
        row(9, 0, "cfb", value=4.0), row(9, 0, "other", value=8.0),
    ]  # fmt: skip
    table, summary = summed(rows)
    found = summary.set_index(["size", "learner"])
    assert found.loc[(2, "cfb"), "value"] == 2.0
    assert found.loc[(2, "cfb"), "value_sd"] == pytest.approx(np.sqrt(2))
    # Only seed 0 has both.
    assert found.loc[(2, "other"), "ratio_to_cfb"] == 0.5
    assert found.loc[(9, "other"), "ratio_to_cfb"] == 2.0
    assert (found.loc[(2, "other"), ["n", "failed"]] == [1, 1]).all()
    everything = summary[summary["size"].isna()].set_index("learner")
    assert everything.loc["cfb", "value"] == pytest.approx(8 / 3)
    assert everything.loc["other", "ratio_to_cfb"] == pytest.approx(8.5 / 5)
    text = table.text(summary)
    assert "2 ± 1.4" in text
    assert "all" in text


def test_flows_that_a_chain_makes():
    flows = expected_flows(np.array([1.0, 0.0]), np.array([[0.5, 0.5], [0.0, 1.0]]), 8, 3)
    # Eight in the first state, then four in each.
    assert flows.tolist() == [[6, 6], [0, 4]]


def test_flow_figures_by_hand():
    figures = flow_figures([[5, 3], [1, 1]], [[6, 2], [2, 0]])
    assert figures == {
        "cpc": pytest.approx(2 * 3 / 8),
        "cpc_with_stays": pytest.approx(2 * 8 / 20),
        "total_ratio": 1.0,
    }


def test_simulation_conserves_people_and_keeps_to_the_chain():
    rng = np.random.default_rng(0)
    pi, A = np.array([0.2, 0.8, 0.0]), np.array([[0.5, 0.5, 0], [0, 0.9, 0.1], [1.0, 0, 0]])
    counts, moves = simulated_counts(pi, A, np.array([10, 40_000]), 6, rng)
    assert (counts.sum(axis=2) == [[10] * 6, [40_000] * 6]).all()
    assert (moves.sum(axis=1) == counts[:, :-1].sum(axis=(0, 1))).all()
    assert (moves.sum(axis=0) == counts[:, 1:].sum(axis=(0, 1))).all()
    assert (moves[A == 0] == 0).all()
    np.testing.assert_allclose(moves / moves.sum(axis=1, keepdims=True), A, atol=0.02)


def test_missing_real_data_is_one_sentence():
    with pytest.raises(InputError, match=r"needs \.\./shared/data/nowhere"):
        real_data("nowhere")


# ---------------------------------------------------------------- tiny


def brute_force(hmm, B, counts):
    """All paths of all people, and all ways that they show themselves."""
    d, people, steps = hmm.n_states, counts[0].sum(), len(counts)
    total, expected = 0.0, np.zeros((d, d))
    for flat in product(range(d), repeat=people * steps):
        paths = np.reshape(flat, (people, steps))
        chance = hmm.startprob[paths[:, 0]].prod()
        chance *= hmm.transmat[paths[:, :-1], paths[:, 1:]].prod()
        for t in range(steps):
            chance *= sum(
                B[paths[:, t], list(shown)].prod()
                for shown in product(range(B.shape[1]), repeat=people)
                if (np.bincount(shown, minlength=B.shape[1]) == counts[t]).all()
            )
        total += chance
        np.add.at(expected, (paths[:, :-1].ravel(), paths[:, 1:].ravel()), chance)
    return expected / total


@pytest.mark.parametrize(("people", "d", "steps"), [(2, 2, 3), (3, 2, 2), (2, 3, 2), (1, 3, 3)])
def test_exact_moves_are_those_of_all_paths(people, d, steps):
    rng = np.random.default_rng([people, d, steps])
    pi, A, B = (random_probs(shape, rng) for shape in ((d,), (d, d), (d, 2)))
    hmm = HMM.categorical(pi, A, B)
    symbols = hmm.sample(people, steps, rng)[0]
    counts = np.stack([np.bincount(seen, minlength=2) for seen in symbols.T])
    exact = exact_transitions(hmm, B, counts)
    np.testing.assert_allclose(exact, brute_force(hmm, B, counts), atol=1e-12)
    assert exact.sum() == pytest.approx(people * (steps - 1))


def test_single_people_have_no_error_and_groups_have():
    settings = TinySettings(learners=("cfb", "least_squares"), n_seeds=12, group_sizes=(1, 4))
    rows = TINY.rows(settings)
    found = rows[rows["learner"] == "cfb"].groupby("group_size")["error"].max()
    assert found[1] < 1e-8
    assert found[4] > 1e-3
    # Each size as often as the other, under both kinds of model.
    sizes = rows[rows["learner"] == "cfb"].groupby(["model", "group_size"]).size()
    assert sizes.tolist() == [6, 6, 6, 6]
    assert rows.loc[rows["learner"] == "least_squares", FAULT].str.contains("no E-step").all()
    summary = TINY.summary(rows)
    assert (summary.loc[summary["learner"] == "cfb", "ratio_to_cfb"] == 1).all()
    assert {"model", "group_size", "length", "n_states", "error", "error_sd"} <= set(summary)


# ---------------------------------------------------------------- paper


def test_learning_loses_less_than_its_start_and_groups_lose_more():
    settings = PaperSettings(
        learners=("start", "cfb"), n_seeds=2, group_sizes=(1, 20), n_states=(3,),
        n_individuals=400, length=3, iterations=100,
    )  # fmt: skip
    summary = PAPER.summary(PAPER.rows(settings)).set_index(["group_size", "learner"])
    lost = summary["delta_nll"]
    assert 0 < lost[1, "cfb"] < lost[20, "cfb"] < lost[20, "start"]
    assert lost[1, "start"] == lost[20, "start"]
    assert summary.loc[(1, "cfb"), "ratio_to_cfb"] == 1
    assert summary.loc[(20, "start"), "ratio_to_cfb"] == pytest.approx(
        lost[20, "start"] / lost[20, "cfb"]
    )
    assert (summary["n"] == 2).all()


# ---------------------------------------------------------------- consistency


def test_movement_by_hand():
    A = np.array([[0.9, 0.1], [0.3, 0.7]])
    assert consistency.movement(np.array([0.5, 0.5]), A) == pytest.approx(0.2)


def test_those_who_leave_are_split_alike_or_at_random():
    even = consistency.staying(5, 0.8)
    np.testing.assert_allclose(even, 0.05 + 0.75 * np.eye(5))
    drawn = consistency.staying(5, 0.8, np.random.default_rng(0))
    np.testing.assert_allclose(np.diag(drawn), 0.8)
    np.testing.assert_allclose(drawn.sum(axis=1), 1)
    assert np.ptp(drawn[0, 1:]) > 0.01


def test_single_people_give_the_movement_that_was_made():
    settings = ConsistencySettings(
        learners=("cfb", "start"), n_seeds=1, group_sizes=(1,), truths=("random",), starts=(0.6,),
        n_groups=300,
    )  # fmt: skip
    rows = CONSISTENCY.rows(settings).set_index("learner")
    pi = np.full(5, 0.2)
    true = consistency.staying(5, 0.8, np.random.default_rng([0, 1]))
    _, moves = simulated_counts(
        pi, true, np.ones(300, dtype=int), 2, np.random.default_rng([0, 1, 2])
    )
    made = np.mean(1 - np.diag(moves) / moves.sum(axis=1)) / 0.2
    assert rows.loc["cfb", "movement_ratio"] == pytest.approx(made)
    assert rows.loc["start", "movement_ratio"] == pytest.approx(2)


# ---------------------------------------------------------------- populations


def test_the_truth_moves_to_neighbours_only():
    settings = PopulationSettings(side=3)
    grid = Grid.from_bbox(139.7, 35.6, 139.8, 35.7, 3, 3)
    pi, A = populations.local_truth(grid, settings, np.random.default_rng(0))
    np.testing.assert_allclose([pi.sum(), *A.sum(axis=1)], 1)
    assert ((np.diag(A) >= 0.7) & (np.diag(A) <= 0.9)).all()
    # Cell 0 is the corner below 3, right of which is 4.
    assert (A[0, [2, 5, 6, 7, 8]] == 0).all()
    assert (A[0, [1, 3, 4]] > 0).all()
    assert (A[4] > 0).all()


def test_populations_give_flows_for_every_learner():
    settings = PopulationSettings(
        learners=("start", "cfb"), n_seeds=1, group_sizes=(50,), side=2, n_days=20, length=8,
        iterations=20,
    )  # fmt: skip
    rows = POPULATIONS.rows(settings).set_index("learner")
    grid = Grid.from_bbox(*populations.EXTENT, 2, 2)
    truth = populations.local_truth(grid, settings, np.random.default_rng([0, 1]))
    made = simulated_counts(*truth, np.full(20, 50), 8, np.random.default_rng([0, 50, 2]))[1]
    # The start moves 0.4 of 50 people on 20 days in 7 steps, wherever they are.
    ratio = 0.4 * 50 * 20 * 7 / (made.sum() - np.trace(made))
    assert rows.loc["start", "total_ratio"] == pytest.approx(ratio)
    assert rows.loc["cfb", "cpc_with_stays"] > rows.loc["start", "cpc_with_stays"]
    assert rows.loc["cfb", "iterations"] == 20
    assert (rows[FAULT] == "").all()


# ---------------------------------------------------------------- bikes


def one_bike(folder, route):
    """Files of one bike: its state at each full hour from Friday, 2 October 2015, midnight."""
    hours = pd.date_range("2015-10-02", periods=len(route), freq="h").strftime("%Y-%m-%d %H:%M")
    counts = pd.DataFrame({"hour": hours, "station": route, "bikes": 1})
    counts.to_csv(folder / "derived_counts_hour_station.csv", index=False)
    moves = pd.DataFrame({"hour": hours[:-1], "from": route[:-1], "to": route[1:], "bikes": 1})
    moves.to_csv(folder / "derived_true_moves_hour_from_to.csv", index=False)


ROUTE = [70] * 7 + [70, -1, 12, 12] + [12] * 13 + [12] * 7 + [12, 70, 70, 12] + [12] * 13


def test_bands_hold_the_counts_and_moves_of_their_hours(tmp_path):
    one_bike(tmp_path, ROUTE)
    bikes_read = read_bikes(tmp_path)
    # Sorted: on a trip, station 12, station 70. Saturday's morning is no weekday's.
    counts, moves = banded(bikes_read, Band(7, 10, weekdays_only=True))
    assert counts.tolist() == [[[0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 1, 0]]]
    assert moves.tolist() == [[0, 1, 0], [0, 1, 0], [1, 0, 0]]
    counts, moves = banded(bikes_read, Band(7, 10, weekdays_only=False))
    assert counts.shape == (2, 4, 3)
    assert moves.tolist() == [[0, 1, 0], [0, 1, 1], [1, 1, 1]]


def test_moves_that_do_not_fit_the_counts_are_refused(tmp_path):
    one_bike(tmp_path, ROUTE)
    path = tmp_path / "derived_true_moves_hour_from_to.csv"
    pd.read_csv(path).iloc[1:].to_csv(path, index=False)
    with pytest.raises(InputError, match="do not fit"):
        read_bikes(tmp_path)


def test_a_single_bike_hides_nothing(tmp_path, monkeypatch):
    one_bike(tmp_path, ROUTE)
    monkeypatch.setattr(bikes, "real_data", lambda name: tmp_path)
    rows = BIKES.rows(BikeSettings(learners=("cfb",), bands=("weekdays 07-10", "all hours")))
    assert rows["cpc"].tolist() == pytest.approx([1, 1])
    assert rows["total_ratio"].tolist() == pytest.approx([1, 1])
    assert rows["true_moves"].tolist() == [2, 4]


def test_the_real_bikes_fit(shared_data):
    found = read_bikes(shared_data / "jersey_city_bikes")
    assert found.counts.shape == (745, 44)
    assert (found.counts.sum(axis=1) == 321).all()


# ---------------------------------------------------------------- untold


def test_the_table_of_what_is_not_told():
    settings = untold.UntoldSettings(
        cases=("city",),
        n_seeds=1,
        group_sizes=(1, 20),
        misclassify=(0.1,),
        people=600,
        iterations=3,
    )
    rows = TABLES["untold"].rows(settings)
    assert (rows["fault"] == "").all()
    assert rows["learner"].tolist() == ["told", "auto"] * 2
    told, learned = (rows.loc[rows["learner"] == name] for name in ("told", "auto"))
    assert told["share"].tolist() == [0.1, 0.1]
    assert (learned["share"] != 0.1).all()
    assert rows["prior"].isna().tolist() == [True, True, False, False]


def test_people_of_the_city_go_by_its_chances():
    people = untold.city_people(20_000, 0)
    grid = untold.CITY.make()
    cells = grid.assign(people.table["lon"].to_numpy(), people.table["lat"].to_numpy())
    cells = cells.reshape(-1, 3)
    chances = simulate_city(8, 8, days=1, people=1).transition[8]
    moved = np.zeros((64, 64))
    np.add.at(moved, (cells[:, 0], cells[:, 1]), 1)
    busiest = moved.sum(axis=1).argmax()
    n = moved[busiest].sum()
    spread = np.sqrt(n * chances[busiest] * (1 - chances[busiest])) + 1
    assert (np.abs(moved[busiest] - n * chances[busiest]) < 5 * spread).all()


# ---------------------------------------------------------------- metres


def test_the_table_of_metres():
    settings = metres.MetresSettings(
        n_seeds=1, group_sizes=(1,), sides=(0.3,), people=800, iterations=5
    )
    rows = TABLES["metres"].rows(settings)
    assert (rows["fault"] == "").all()
    assert rows["learner"].tolist() == ["told", "auto", "none"]
    assert rows["learned"].tolist() == pytest.approx([0.3, 0.3, 0.0], abs=0.06)
    assert rows["contradicted"].tolist() == [0, 0, 1]
    told, _, ignored = rows["total_ratio"]
    assert ignored > 1.3 * told


def test_people_are_placed_with_noise_of_so_many_sides():
    cells = untold.city_cells(4_000, 0)
    grid = untold.CITY.make()
    exact, noisy = (
        grid.to_metres(metres.placed(cells, sides, 0).table[["lon", "lat"]].to_numpy())
        for sides in (0.0, 0.3)
    )
    np.testing.assert_array_equal(
        grid.assign(*metres.placed(cells, 0.0, 0).table[["lon", "lat"]].to_numpy().T),
        cells.ravel(),
    )
    # But for those who would leave the grid: they are put at its border.
    away = np.median(np.abs(noisy - exact)) / 0.6745
    assert away == pytest.approx(0.3 * np.sqrt(np.mean(np.square(grid.cell_size_m))), rel=0.03)


# ---------------------------------------------------------------- tokyo


@pytest.fixture(scope="module")
def commuters():
    city = SAMPLES["tokyo_commuters"]
    return read_trajectories(make_sample(city.key, 200), tz=city.timezone)


SMALL_CITY = TokyoSettings(
    learners=("cfb", "auto"), n_seeds=1, group_sizes=(1, 10),
    bounds=SAMPLES["tokyo_commuters"].bounds, rows=4, cols=4, step_minutes=30, iterations=5,
    threshold=5,
)  # fmt: skip


def test_the_command_and_the_learner_alone_see_the_same_data(commuters):
    study = SMALL_CITY.study(10, 0.05, 3)
    by_command = tokyo.by_command(commuters, study, Learner("cfb"))
    by_learner = tokyo.by_learner(commuters, study, Learner("cfb"))
    for figure in ("cpc", "total_ratio", "iterations"):
        assert by_command[figure] == pytest.approx(by_learner[figure], abs=1e-12)


def test_people_in_groups_against_their_counted_flows(commuters):
    table = TABLES["tokyo"]
    rows = table.framed(tokyo.measure_people(commuters, SMALL_CITY))
    found = table.summary(rows).set_index(["group_size", "learner"])
    assert found.loc[(1, "cfb"), "cpc"] > found.loc[(10, "cfb"), "cpc"]
    assert abs(found.loc[(1, "cfb"), "total_ratio"] - 1) < 0.3
    assert (found["failed"] == 0).all()


# ---------------------------------------------------------------- cost


def test_stops_and_when_a_curve_is_within_its_end():
    assert cost.stops(1) == [1]
    assert cost.stops(8) == [1, 2, 4, 8]
    assert cost.stops(60) == [1, 2, 4, 8, 16, 32, 60]
    assert cost.within([0.5, 0.9, 0.96, 1.0], 0.05) == 2
    assert cost.within([0.99, 0.5, 1.0], 0.05) == 2
    assert cost.within([1.0, 1.0], 0.05) == 0


def test_cost_of_a_small_city():
    settings = CostSettings(learners=("cfb",), group_sizes=(20,), n_individuals=150, iterations=3)
    summary = COST.summary(COST.rows(settings))
    assert summary["iterations"].tolist() == [3]
    assert summary["iterations_to_accuracy"].item() in (1, 2, 3)
    assert 0 < summary["seconds_per_iteration"].item() < summary["seconds"].item()
    assert 0 < summary["cpc"].item() <= 1


# ---------------------------------------------------------------- command


def test_json_holds_settings_summary_and_rows(capsys):
    options = ["--learners", "cfb", "--seeds", "2", "--group-sizes", "2", "--iterations", "9"]
    assert main(["tiny", *options, "--json"]) == 0
    found = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert found["table"] == "tiny"
    assert (found["settings"]["n_seeds"], found["settings"]["group_sizes"]) == (2, [2])
    assert len(found["rows"]) == 4
    assert found["summary"][0]["n"] == 2


@pytest.mark.parametrize("option", ["--seeds", "--group-sizes", "--iterations"])
def test_numbers_below_one_are_refused(option, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["tiny", option, "0"])
    assert "it must be 1 or more, not 0" in capsys.readouterr().err


def test_text_names_settings_and_what_has_no_figures(capsys):
    assert main(["tiny", "--learners", "cfb", "least_squares", "--seeds", "1"]) == 0
    out, _ = capsys.readouterr()
    assert "group_sizes = 2 3 4 5" in out
    assert "least_squares: 2 without figures. least_squares has no E-step" in out


def test_a_table_that_cannot_be_made_does_not_stop_the_others(capsys, monkeypatch):
    def gone(name):
        raise InputError("The real data is not there.")

    monkeypatch.setattr(bikes, "real_data", gone)
    assert main(["bikes", "tiny", "--learners", "cfb", "--seeds", "1"]) == 2
    out, err = capsys.readouterr()
    assert err == "bikes: The real data is not there.\n"
    assert out.startswith("E-steps against")


QUICK = ["tiny", "--learners", "cfb", "--seeds", "1", "--group-sizes", "2"]


def test_a_table_is_written_between_its_markers_and_nowhere_else(tmp_path, capsys):
    page = tmp_path / "page.md"
    before, after = "# Page\n\n<!-- tiny -->\n", "<!-- /tiny -->\n\n<!-- paper -->\n"
    page.write_text(f"{before}of old\n{after}", encoding="utf-8")
    for _ in range(2):  # the second time in place of the first
        assert main([*QUICK, "--into", str(page)]) == 0
        shown = capsys.readouterr().out.strip()
        text = page.read_text(encoding="utf-8")
        assert text.startswith(before)
        assert text.endswith(after)
        between = text.removeprefix(before).removesuffix(after)
        head, table = between.split("\n\n```\n")
        assert table == f"{shown}\n```\n"
        assert head == (
            f"Version {__version__}, weight of the prior {AggregateHMM().prior:g}: "
            f"`python -m benchmarks group-sizes {' '.join(QUICK)}`"
        )


@pytest.mark.parametrize(
    "text",
    [
        None,
        "no markers",
        "<!-- tiny -->\n",
        "<!-- /tiny -->\n<!-- tiny -->\n",
        "<!-- tiny -->\n<!-- /tiny -->\n<!-- tiny -->\n<!-- /tiny -->\n",
        "in a line <!-- tiny -->\n<!-- /tiny -->\n",
    ],
)
def test_a_page_without_a_place_is_refused_before_anything_is_measured(
    text, tmp_path, capsys, monkeypatch
):
    page = tmp_path / "page.md"
    if text is not None:
        page.write_text(text, encoding="utf-8")
    refuse = replace(TINY, measure=lambda _: pytest.fail("it was measured"))
    monkeypatch.setitem(TABLES, "tiny", refuse)
    assert main([*QUICK, "--into", str(page)]) == 2
    assert str(page) in capsys.readouterr().err
    assert (page.read_text(encoding="utf-8") if page.exists() else None) == text


# ---------------------------------------------------------------- coverage


def test_the_table_of_coverage():
    settings = coverage.CoverageSettings(
        cases=("city",), n_seeds=1, group_sizes=(20,), people=3_000, iterations=3, replicates=2
    )
    rows = TABLES["coverage"].rows(settings)
    assert (rows["fault"] == "").all()
    assert rows["learner"].tolist() == ["told", "auto"]
    assert (rows["n_flows"] > 3).all()
    shares = rows[["flows", "out", "into", "district_out", "district_into", "within", "total"]]
    assert shares.to_numpy().min() >= 0
    assert shares.to_numpy().max() <= 1
    assert set(rows["total"]) <= {0.0, 1.0}
    # There is one day.
    assert rows[[*coverage.ON_A_DAY.values()]].isna().all(axis=None)


def test_each_of_several_days_is_held_against_what_was_counted_on_it():
    window = replace(days_of_people.LONGER, times=("01:00",))
    study = tiny.settings(window, group_size=5, replicates=3, inference="sampling", iterations=9)
    people = days_of_people.placed(tuple(days_of_people.walked(600, 2, 4, 3)))
    row = coverage.held_shares(people, study)
    shares = [row[column] for column in coverage.ON_A_DAY.values()]
    assert 0.5 < min(shares) <= max(shares) <= 1.0
    assert row["day_total"] in (0.5, 1.0)
