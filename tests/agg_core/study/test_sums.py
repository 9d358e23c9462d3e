"""Sums of flows learned from counts: their intervals, on paper, in files, after saving."""

import io
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from agg_core.cli.main import main
from agg_core.cli.summaries import counts_text
from agg_core.exports import EXPORTS, ExportInput
from agg_core.store.codec import load_result, save_result
from agg_core.store.runs import RunStore
from agg_core.study.counts import USUAL, count_study_steps
from agg_core.study.result import ESTIMATE, WHOLE_DAY
from agg_core.study.settings import CountLearnSettings
from tests.agg_core import counted
from tests.agg_core.counts import made
from tests.agg_core.exports import by_hand
from tests.faults import refused
from tests.golden import figures

DRAWN = counted.drawn()
MORNING, NIGHT = counted.MORNING, counted.NIGHT
MOMENTS = (WHOLE_DAY, MORNING, NIGHT)
SOURCES = (ESTIMATE, USUAL)
AWAY = 1 - np.eye(10)

REACH = 2.919986 * np.sqrt(1 + 1 / 3)
"""Student's t that 5 % exceed, of 2 degrees of freedom, for the next of three worlds."""


def ends(centre, errors):
    """An interval written out: the mean error is added, the spread is that of the three."""
    mean = sum(errors) / 3
    spread = np.sqrt(sum((error - mean) ** 2 for error in errors) / 2)
    return [max(centre + mean - REACH * spread, 0.0), max(centre + mean + REACH * spread, 0.0)]


def mask(*pairs):
    weights = np.zeros((10, 10))
    for pair in pairs:
        weights[pair] = 1.0
    return weights


# ------------------------------------------------------------------------------------- by hand


@pytest.mark.parametrize(
    ("time", "source", "pairs", "centre", "errors"),
    [
        # 2, -6 and 1 people over 4 steps are missed of those who go from 0 to 1 in the morning.
        (MORNING, ESTIMATE, [(0, 1)], 8.0, [0.5, -1.5, 0.25]),
        (MORNING, USUAL, [(0, 1)], 6.0, [1.0, 0.0, 2.0]),
        (MORNING, ESTIMATE, [(0, 1), (5, 2)], 12.0, [0.5, -0.5, 0.25]),
        # Over the day 9 steps are meant.
        (WHOLE_DAY, ESTIMATE, [(0, 1), (4, 0)], 7.5, [-3 / 9, -6 / 9, 1 / 9]),
        (WHOLE_DAY, USUAL, [(0, 1), (4, 0)], 7.5, [14 / 9, 0.0, 8 / 9]),
        (NIGHT, ESTIMATE, [(4, 0)], 7.0, [-1.0, 0.0, 0.0]),
        (NIGHT, ESTIMATE, [(7, 8)], 0.0, [0.0, 0.0, 0.0]),
    ],
)
def test_an_interval_of_a_sum_by_hand(time, source, pairs, centre, errors):
    found = DRAWN.interval(time, source, mask(*pairs))
    np.testing.assert_allclose(found, ends(centre, errors), rtol=1e-5)


def test_a_difference_may_be_below_nothing():
    weights = mask((5, 2)) - mask((0, 1))
    low, high = DRAWN.interval(MORNING, ESTIMATE, weights)
    errors = [-0.5, 2.5, -0.25]
    spread = REACH * np.std(errors, ddof=1)
    centre = 4.0 - 8.0 + np.mean(errors)
    np.testing.assert_allclose([low, high], [centre - spread, centre + spread], rtol=1e-5)
    assert low < 0


def test_all_who_move_in_the_summary_and_its_words():
    # With chances that are the same all day, as their strength is of that.
    one = replace(DRAWN, transmats=DRAWN.transmats[:1])
    told = one.summary()
    # 4 + 3.5 + 2.25 people move per step; worlds miss 2 - 5, -6 + 4 and 1 of them over 9 steps.
    low, high = ends(9.75, [-3 / 9, -2 / 9, 1 / 9])
    assert (told["movers_low"], told["movers_high"]) == pytest.approx((low, high), rel=1e-5)
    # Six errors of 22 bytes are nothing.
    assert told["ensemble"] == {"draws": 3, "mb": 0.0}
    assert DRAWN.ensemble.megabytes == pytest.approx(6 * 22e-6)
    assert f"9.8 people ({low:.1f} to {high:.1f}) moved" in counts_text(told)
    before = replace(one, ensemble=None).summary()
    assert before["movers_low"] is before["movers_high"] is before["ensemble"] is None
    assert "9.8 people moved" in counts_text(before)


def test_results_without_draws_have_no_intervals_of_sums():
    for result in (counted.both(), counted.unsure(), by_hand.result()):
        assert result.interval(result.busiest, ESTIMATE, np.eye(10)) is None
        assert result.draws(result.busiest) is None
        assert result.times_of_draws == ()
        with refused("unknown-time"):
            result.interval("12:34", ESTIMATE, np.eye(10))


@pytest.mark.parametrize("weights", [np.eye(9), np.ones(10), np.full((10, 10), np.nan)])
def test_weights_that_do_not_fit_are_refused(weights):
    with refused("wrong-shape"):
        DRAWN.interval(WHOLE_DAY, ESTIMATE, weights)


def test_of_the_day_alone_there_are_draws_of_the_day_alone():
    table = DRAWN.ensemble.table.assign(slot=np.int32(-1))
    of_day = replace(DRAWN, ensemble=replace(DRAWN.ensemble, table=table))
    assert of_day.times_of_draws == (WHOLE_DAY,)
    assert of_day.interval(MORNING, ESTIMATE, AWAY) is None
    np.testing.assert_array_equal(of_day.draws(WHOLE_DAY), DRAWN.draws(WHOLE_DAY))
    assert set(drawn_rows(of_day, ESTIMATE)["time"]) == {WHOLE_DAY}


# ------------------------------------------------------------------------------------------ files


def drawn_rows(study, source):
    content = EXPORTS["ensemble"].make(ExportInput(study, WHOLE_DAY, "", source))
    return pd.read_parquet(io.BytesIO(content))


@pytest.mark.parametrize("source", SOURCES)
def test_the_file_of_draws_sums_to_what_the_result_says(source):
    rows = drawn_rows(DRAWN, source)
    assert list(rows) == ["draw", "time", "origin", "dest", "count"]
    moves = rows.loc[rows["origin"] != rows["dest"]]
    sums = moves.groupby(["time", "draw"])["count"].sum()
    for time in (MORNING, NIGHT):
        total = (DRAWN.matrix(time, source) * AWAY).sum()
        missed = sums[time].to_numpy() - total
        found = DRAWN.interval(time, source, AWAY)
        np.testing.assert_allclose(found, ends(total, missed), rtol=1e-5)
    # By hand: 8 went there in the morning, of whom 2, -6 and 1 in 4 steps were missed.
    there = rows.query("time == @MORNING and origin == 0 and dest == 1").sort_values("draw")
    expected = {ESTIMATE: [8.5, 6.5, 8.25], USUAL: [7.0, 6.0, 8.0]}[source]
    assert there["count"].tolist() == pytest.approx(expected)


def test_draws_on_the_command_line(tmp_path, capsys):
    save_result(DRAWN, tmp_path / "run")
    out = tmp_path / "draws.parquet"
    words = ["flows", tmp_path / "run", "--format", "ensemble", "--source", USUAL, "--out", out]
    assert main(list(map(str, words))) == 0
    pd.testing.assert_frame_equal(pd.read_parquet(out), drawn_rows(DRAWN, USUAL))
    save_result(counted.both(), tmp_path / "without")
    words[1] = tmp_path / "without"
    assert main(list(map(str, words))) == 2
    assert "nothing for ensemble" in capsys.readouterr().err
    with refused("nothing-to-export"):
        drawn_rows(counted.both(), ESTIMATE)


# ---------------------------------------------------------------------------------------- storage


def test_draws_come_back_to_the_bit(tmp_path):
    save_result(DRAWN, tmp_path / "run")
    back = load_result(tmp_path / "run")
    assert (back.ensemble.draws, back.ensemble.n_states) == (3, 10)
    pd.testing.assert_frame_equal(back.ensemble.table, DRAWN.ensemble.table, check_exact=True)
    for time in MOMENTS:
        for source in SOURCES:
            np.testing.assert_array_equal(back.draws(time, source), DRAWN.draws(time, source))
    assert back.summary() == DRAWN.summary()


def test_a_run_saved_before_opens_without_draws(tmp_path):
    folder = tmp_path / "old"
    shutil.copytree(figures.RUNS / "counts", folder)
    study = load_result(folder)
    assert study.ensemble is None
    kept = RunStore(tmp_path / "runs").save(folder, "old")
    assert "ensemble.parquet" not in kept.files


def test_a_file_of_draws_that_is_missing_is_damage(tmp_path):
    save_result(DRAWN, tmp_path / "run")
    (tmp_path / "run" / "ensemble.parquet").unlink()
    with refused("result-damaged"):
        load_result(tmp_path / "run")


# ---------------------------------------------------------------------------------- the whole way

N_CELLS, N_DAYS, N_HOURS, N_PEOPLE = 6, 12, 5, 60
SETTINGS = CountLearnSettings(strength="given", prior=5.0, time="one", replicates=16)


@pytest.fixture(scope="module")
def city():
    return made.chained_table(
        np.random.default_rng(8), 0.6, n_cells=N_CELLS, n_days=N_DAYS, n_hours=N_HOURS,
        n_people=N_PEOPLE,
    )  # fmt: skip


@pytest.fixture(scope="module")
def learned(city):
    *_, study = count_study_steps(city[0], SETTINGS)
    return study


def test_an_interval_of_one_flow_is_near_that_of_the_table(learned):
    for source in SOURCES:
        rows = learned.rows(WHOLE_DAY, source)
        rows = rows.loc[(rows["origin"] != rows["dest"]) & (rows["count"] > 0.3)]
        pairs = list(zip(rows["origin"], rows["dest"], strict=True))
        weights = np.stack([np.zeros((N_CELLS, N_CELLS)) for _ in pairs])
        for weight, pair in zip(weights, pairs, strict=True):
            weight[pair] = 1.0
        low, high = learned.interval(WHOLE_DAY, source, weights)
        apart = (high - low) / (rows["high"] - rows["low"])
        # The table's ends are of flows of like size, the ensemble's of 16 errors of the flow alone.
        assert 0.7 < np.median(apart) < 1.4
        middle = (low + high - rows["low"] - rows["high"]) / 2 / (rows["high"] - rows["low"])
        assert abs(np.median(middle)) < 0.25


def test_flows_out_of_a_cell_that_counts_tell_are_surer_in_sum(learned):
    """Who begins in a cell is known, so those who go and those who stay err against each other."""
    everybody, away = np.zeros((N_CELLS,) * 3), np.zeros((N_CELLS,) * 3)
    for cell in range(N_CELLS):
        everybody[cell, cell] = away[cell, cell] = 1.0
        away[cell, cell, cell] = 0.0
    low, high = learned.interval(WHOLE_DAY, ESTIMATE, everybody)
    assert (high - low).max() < 0.05
    low, high = learned.interval(WHOLE_DAY, ESTIMATE, away)
    assert (high - low).min() > 0.1


def test_intervals_of_sums_hold_what_was(city, learned):
    _, moves = city
    weights = []
    for cell in range(N_CELLS):
        into = np.zeros((N_CELLS, N_CELLS))
        into[:, cell], into[cell, cell] = 1.0, 0.0
        weights += [into, into.T]
    weights = np.stack([*weights, 1 - np.eye(N_CELLS)])
    held = []
    for source in SOURCES:
        for hour, time in enumerate(learned.times_of_day):
            low, high = learned.interval(time, source, weights)
            truth = np.tensordot(weights, moves[hour], axes=2) / N_DAYS
            held += [(low <= truth) & (truth <= high)]
        low, high = learned.interval(WHOLE_DAY, source, weights)
        truth = np.tensordot(weights, moves.sum(axis=0), axes=2) / (N_DAYS * (N_HOURS - 1))
        held += [(low <= truth) & (truth <= high)]
    assert 0.8 < np.mean(held) <= 1.0


def test_the_mean_draw_is_the_estimate_and_what_is_missed_on_average(learned):
    for source in SOURCES:
        for time in learned.times_of_draws:
            draws = learned.draws(time, source)
            assert draws.shape == (16, N_CELLS, N_CELLS)
            low, high = learned.interval(time, source, 1 - np.eye(N_CELLS))
            middle = (draws.mean(axis=0) * (1 - np.eye(N_CELLS))).sum()
            assert (low + high) / 2 == pytest.approx(middle, abs=1e-6)
