"""What happened on chosen days: a result like that of all of them."""

import io
import json
import zipfile
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest

from agg_core.cli.main import main
from agg_core.counts import pair_tables
from agg_core.exports import EXPORTS, ExportInput
from agg_core.store.codec import load_result, save_result
from agg_core.study.counts import USUAL, CountStudy, count_study_steps
from agg_core.study.result import ESTIMATE, WHOLE_DAY
from agg_core.study.settings import CountLearnSettings
from tests.agg_core import counted, tiny
from tests.agg_core.cli.told import only_sentence
from tests.agg_core.counted import DAYS, MORNING, NIGHT, OUT
from tests.agg_core.counts import made
from tests.agg_core.exports import by_hand
from tests.faults import refused

WHOLE = counted.by_day()


def matrix_of(flows):
    matrix = np.zeros((10, 10))
    for pair, count in flows.items():
        matrix[pair] = count
    return matrix


CHOSEN = {
    # People per step, of the steps in `counted.DAY_STEPS`.
    (0,): {
        MORNING: {(0, 1): 12 / 2, (5, 2): 4 / 2},
        NIGHT: {(4, 0): 6.0},
        WHOLE_DAY: {(0, 1): 12 / 3, (5, 2): 4 / 3, (4, 0): 6 / 3},
    },
    (1, 0): {
        MORNING: {(0, 1): 16 / 3, (5, 2): 4 / 3},
        NIGHT: {(4, 0): 14 / 2, (3, 3): 32 / 2},
        WHOLE_DAY: {(0, 1): 16 / 5, (5, 2): 4 / 5, (4, 0): 14 / 5, (3, 3): 32 / 5},
    },
    (2,): {MORNING: {(0, OUT): 2.5}, WHOLE_DAY: {(0, OUT): 2.5}},
}


@pytest.mark.parametrize("days", CHOSEN)
def test_flows_are_means_over_the_steps_of_these_days(days):
    result = WHOLE.of_days([DAYS[day] for day in days])
    assert isinstance(result, CountStudy)
    assert result.chosen_days == tuple(DAYS[day] for day in sorted(days))
    assert result.days == WHOLE.days == DAYS
    assert result.times == tuple(at for at in (WHOLE_DAY, MORNING, NIGHT) if at in CHOSEN[days])
    for at, flows in CHOSEN[days].items():
        np.testing.assert_allclose(result.matrix(at), matrix_of(flows))
        np.testing.assert_array_equal(result.matrix(at, USUAL), WHOLE.matrix(at, USUAL))
    steps = np.array(counted.DAY_STEPS)[list(days)].sum(axis=0)
    assert result.steps == tuple(steps)
    assert result.steps_summed(WHOLE_DAY) == steps.sum()
    # From chosen days others can be chosen.
    again = result.of_days([DAYS[0]])
    np.testing.assert_allclose(again.matrix(WHOLE_DAY), matrix_of(CHOSEN[0,][WHOLE_DAY]))


def test_intervals_of_single_flows():
    one = WHOLE.of_days(DAYS[:1])
    assert one.has_intervals
    # Of two steps with 12 people: (root 12 - 1)^2 and (root 12 + 2)^2 over two.
    row = one.rows(MORNING).set_index(["origin", "dest"]).loc[0, 1]
    assert row["low"] == pytest.approx((12**0.5 - 1) ** 2 / 2)
    assert row["high"] == pytest.approx((12**0.5 + 2) ** 2 / 2)
    assert not one.rows(MORNING).set_index(["origin", "dest"]).loc[5, 2]["resolved"]
    of_day = one.rows(WHOLE_DAY).set_index(["origin", "dest"]).loc[0, 1]
    assert of_day["high"] == pytest.approx((12**0.5 + 4) ** 2 / 3)
    all_of_them = WHOLE.of_days(DAYS).rows(MORNING).set_index(["origin", "dest"]).loc[0, 1]
    assert all_of_them["high"] == pytest.approx((16**0.5 + 1) ** 2 / 4)


AWAY = 1 - np.eye(10)
REACH = 2.91999 * (4 / 3) ** 0.5
"""Student's quantile of 95 % with two degrees of freedom, times the root of 1 + 1/3."""


@pytest.mark.parametrize(
    ("days", "at", "steps", "errors"),
    [
        # All who move: sums of `counted.DAY_ERRORS` in each of three worlds.
        ((0,), MORNING, 2, [1, -6 + 4, 0]),
        ((0,), WHOLE_DAY, 3, [1, -6 + 4, 0]),
        ((0, 1), MORNING, 3, [1 + 3, -6 + 4, 0]),
        ((0, 1), WHOLE_DAY, 5, [1 + 3 - 5, -6 + 4, 0]),
        ((1, 2), WHOLE_DAY, 3, [3 - 5, 0, 1]),
    ],
)
def test_intervals_of_sums_by_hand(days, at, steps, errors):
    result = WHOLE.of_days([DAYS[day] for day in days])
    movers = (result.matrix(at) * AWAY).sum()
    centre = movers + np.mean(errors) / steps
    reach = REACH * np.std(errors, ddof=1) / steps
    found = result.interval(at, ESTIMATE, AWAY)
    np.testing.assert_allclose(found, [max(centre - reach, 0), centre + reach], rtol=1e-4)
    drawn = ((result.draws(at) - result.matrix(at)) * AWAY).sum(axis=(1, 2))
    np.testing.assert_allclose(drawn, np.array(errors) / steps)
    if at == WHOLE_DAY:
        told = result.summary()
        np.testing.assert_allclose([told["movers_low"], told["movers_high"]], found)


def test_what_is_usual_keeps_its_intervals():
    one = WHOLE.of_days(DAYS[:1])
    for at in one.times:
        found = one.interval(at, USUAL, AWAY)
        np.testing.assert_array_equal(found, WHOLE.interval(at, USUAL, AWAY))
        np.testing.assert_array_equal(one.draws(at, USUAL), WHOLE.draws(at, USUAL))


def test_where_errors_were_not_kept_by_day_sums_have_no_interval():
    before = counted.by_day(sums=False).of_days(DAYS[:1])
    assert before.has_intervals
    assert before.interval(WHOLE_DAY, ESTIMATE, AWAY) is before.draws(WHOLE_DAY) is None
    assert before.times_of_draws == ()
    assert "no interval" in before.evidence
    for result in (WHOLE, WHOLE.of_days(DAYS[:1])):
        assert "no interval" not in result.evidence
        assert result.summary()["ensemble_by_day"]["draws"] == 3
    assert before.summary()["ensemble_by_day"] is None
    # By day alone, where errors of single times were too many.
    kept = WHOLE.happened.by_day
    table = kept.errors.table.assign(slot=np.int32(-1))
    of_day = replace(kept, errors=replace(kept.errors, table=table))
    one = replace(WHOLE, happened=replace(WHOLE.happened, by_day=of_day)).of_days(DAYS[:1])
    assert one.times_of_draws == (WHOLE_DAY,)
    assert one.interval(MORNING, ESTIMATE, AWAY) is None
    np.testing.assert_array_equal(one.draws(WHOLE_DAY), WHOLE.of_days(DAYS[:1]).draws(WHOLE_DAY))


def test_without_worlds_there_is_no_interval():
    one = counted.by_day(sure=False).of_days(DAYS[:1])
    assert not one.has_intervals
    assert one.rows(MORNING)[["low", "high"]].isna().all(axis=None)
    assert one.value_columns == ("count", USUAL)


def test_words_and_figures_say_which_days():
    one, many = WHOLE.of_days(DAYS[:1]), WHOLE.of_days(DAYS)
    assert DAYS[0] in one.source_words(ESTIMATE)
    assert DAYS[0] in one.source_label(ESTIMATE)
    assert DAYS[0] in one.evidence
    assert all(day in many.source_label(ESTIMATE) for day in DAYS)
    for told in ("source_words", "source_label", "source_name"):
        assert getattr(one, told)(USUAL) == getattr(WHOLE, told)(USUAL)
    assert one.summary()["days"] == [DAYS[0]]
    assert WHOLE.summary()["days"] == []
    assert one.summary()["n_days_kept"] == WHOLE.summary()["n_days_kept"] == 3
    assert one.summary()["movers"] == pytest.approx(12 / 3 + 4 / 3 + 6 / 3)
    json.dumps(one.summary(), allow_nan=False)


@pytest.mark.parametrize(
    ("result", "days", "code"),
    [
        (WHOLE, [], "day-missing"),
        (WHOLE, ["2024-05-03"], "unknown-day"),
        (counted.both(), ["2024-05-01"], "days-not-kept"),
        (counted.study(), ["2024-05-01"], "days-not-kept"),
        (by_hand.result(), ["2024-05-01"], "days-not-kept"),
        (by_hand.result(), [], "days-not-kept"),
    ],
)
def test_days_that_are_not_there_are_refused(result, days, code):
    with refused(code):
        result.of_days(days)


@pytest.mark.parametrize("key", EXPORTS)
def test_every_format_takes_chosen_days(key):
    export, one = EXPORTS[key], WHOLE.of_days(DAYS[1:2])
    if not export.available(one):
        assert not export.available(WHOLE)
        return
    for source in one.sources if export.one_source else (ESTIMATE,):
        for at in one.times:
            assert export.make(ExportInput(one, at, "Week", source))


@pytest.mark.parametrize(
    "whole",
    [WHOLE, counted.by_day(sure=False), counted.by_day(sums=False), WHOLE.of_days(DAYS[:2])],
)
def test_days_come_back_to_the_bit(whole, tmp_path):
    save_result(whole, tmp_path / "run")
    back = load_result(tmp_path / "run")
    assert isinstance(back, CountStudy)
    assert (back.days, back.chosen_days) == (whole.days, whole.chosen_days)
    assert back.steps == whole.steps
    for day in DAYS:
        for at in whole.of_days([day]).times:
            pd.testing.assert_frame_equal(
                back.of_days([day]).rows(at), whole.of_days([day]).rows(at), check_exact=True
            )
            for source in (ESTIMATE, USUAL):
                drawn = back.of_days([day]).draws(at, source)
                np.testing.assert_array_equal(drawn, whole.of_days([day]).draws(at, source))
    (tmp_path / "run" / "happened_by_day.parquet").unlink()
    with refused("result-damaged"):
        load_result(tmp_path / "run")


# -------------------------------------------------------------------------------- the command line


def told(*words):
    return main([*map(str, words), "--out", "-"])


@pytest.mark.parametrize("days", CHOSEN)
def test_matrices_of_chosen_days_on_the_command_line(days, tmp_path, capsys):
    save_result(WHOLE, tmp_path / "run")
    words = [word for day in days for word in ("--day", DAYS[day])]
    for at, flows in CHOSEN[days].items():
        asked = ("flows", tmp_path / "run", "--format", "od-csv", "--time", at, *words)
        assert told(*asked) == 0
        table = pd.read_csv(io.StringIO(capsys.readouterr().out), index_col="origin")
        np.testing.assert_allclose(table.to_numpy(), matrix_of(flows), atol=1e-6)


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (WHOLE, ["--format", "od-csv", "--day", "2024-05-03"]),
        (WHOLE, ["--format", "od-csv", "--day", DAYS[0], "--source", USUAL]),
        (WHOLE, ["--format", "parameters-csv", "--day", DAYS[0]]),
        (counted.by_day(sums=False), ["--format", "ensemble", "--day", DAYS[0]]),
        (WHOLE, ["--format", "ensemble", "--day", DAYS[0], "--source", USUAL]),
        (WHOLE, ["--format", "od-csv", "--day", DAYS[2], "--time", NIGHT]),
        (counted.both(), ["--format", "od-csv", "--day", DAYS[0]]),
        (by_hand.result(), ["--format", "od-csv", "--day", DAYS[0]]),
    ],
)
def test_days_that_cannot_be_told_are_one_sentence(result, words, tmp_path, capsys):
    save_result(result, tmp_path / "run")
    assert told("flows", tmp_path / "run", *words) == 2
    assert tiny.is_one_sentence(only_sentence(capsys.readouterr().err))


def test_files_say_which_days(tmp_path, monkeypatch, capsys):
    save_result(WHOLE, tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    words = ["flows", "run", "--format", "html", "--day", DAYS[0]]
    assert main([*words, "--day", DAYS[1]]) == 0
    assert "2-days-from-2024-05-01" in capsys.readouterr().out
    (page,) = tmp_path.glob("*.html")
    assert f"on {DAYS[0]} and {DAYS[1]}" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("days", "source", "date"),
    [
        (DAYS[:1], ESTIMATE, DAYS[0]),
        (DAYS[:1], USUAL, "2000-01-01"),
        (DAYS, ESTIMATE, "2000-01-01"),
    ],
)
def test_the_timeline_of_one_day_is_of_its_date(days, source, date):
    one = WHOLE.of_days(days)
    content = EXPORTS["flowmap-blue-times"].make(ExportInput(one, WHOLE_DAY, "Week", source))
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        times = pd.read_csv(archive.open("flows.csv"))["time"]
        about = archive.read("properties.csv").decode()
    assert set(times.str[:10]) == {date}
    assert date in about
    assert ("any day" in about) is (date == "2000-01-01")


# ---------------------------------------------------------------------------------- the whole way

QUICK = CountLearnSettings(strength="given", prior=5.0, time="one", replicates=6)
N_CELLS, N_DAYS, N_HOURS, N_PEOPLE = 6, 10, 6, 90


def city_of(seed, error):
    """Counts of people who move by one chain on ten days, and their moves (days, hours, d, d).

    Counts err by the given share of themselves, or not at all.
    """
    rng = np.random.default_rng(seed)
    chain = 0.6 * np.eye(N_CELLS) + 0.4 * rng.dirichlet(np.ones(N_CELLS), N_CELLS)
    counts, moves = [], []
    for _ in range(N_DAYS):
        counts.append(rng.multinomial(N_PEOPLE, rng.dirichlet(np.ones(N_CELLS))))
        for _ in range(N_HOURS - 1):
            pairs = zip(counts[-1], chain, strict=True)
            moves.append(np.stack([rng.multinomial(n, row) for n, row in pairs]))
            counts.append(moves[-1].sum(axis=0))
    runs = np.repeat(np.arange(N_DAYS), N_HOURS)
    wrong = 1 + error * rng.standard_normal(np.shape(counts))
    table = made.table(np.array(counts) * wrong, steps=N_HOURS, runs=runs)
    return table, np.array(moves).reshape(N_DAYS, N_HOURS - 1, N_CELLS, N_CELLS)


def study_of(table):
    whole = (table.counts == np.rint(table.counts)).all()
    *_, study = count_study_steps(table, replace(QUICK, count_error=0.0 if whole else 0.03))
    assert study.happened.method == ("drawn" if whole else "normal")
    return study


@pytest.fixture(scope="module", params=[0.0, 0.03], ids=["exact", "erring"])
def cities(request):
    """Six of them, as what intervals of one hold varies much, and what is learned of each."""
    found = [city_of(seed, request.param) for seed in range(5, 11)]
    return [(table, moves, study_of(table)) for table, moves in found]


@pytest.fixture
def city(cities):
    return cities[0][:2]


@pytest.fixture
def learned(cities):
    return cities[0][2]


def test_all_days_together_are_what_happened(city, learned):
    assert learned.days == tuple(f"2024-04-{day:02d}" for day in range(1, N_DAYS + 1))
    together = learned.of_days(learned.days)
    assert together.steps == learned.steps
    for at in learned.times:
        # What is below a grain of a pair is none or a grain; below 0.005 people none is listed.
        np.testing.assert_allclose(together.matrix(at), learned.matrix(at), atol=0.02)


def test_a_day_meets_its_own_counts(city, learned):
    # Where counts err they are met but for their error.
    near = 0.1 if learned.happened.method == "drawn" else 2.0
    counts = city[0].counts.reshape(N_DAYS, N_HOURS, N_CELLS)
    for number, day in enumerate(learned.days[:3]):
        one = learned.of_days([day])
        for hour, at in enumerate(one.times_of_day):
            flows = one.matrix(at)
            np.testing.assert_allclose(flows.sum(axis=1), counts[number, hour], atol=near)
            np.testing.assert_allclose(flows.sum(axis=0), counts[number, hour + 1], atol=near)


@pytest.mark.parametrize("n_days", [1, 2, 5])
def test_intervals_of_chosen_days_hold_what_happened(cities, n_days):
    held = {True: [], False: []}
    for (_, moves, study), first in product(cities, range(0, N_DAYS, n_days)):
        one = study.of_days(study.days[first : first + n_days])
        truth = moves[first : first + n_days].sum(axis=0)
        tables = {True: one.happened.flows, False: one.happened.day_flows.assign(slot=0)}
        for by_time, table in tables.items():
            at = tuple(table[name].to_numpy() for name in ("slot", "origin", "dest"))
            happened = (truth if by_time else truth.sum(axis=0)[None])[at]
            steps = n_days if by_time else n_days * (N_HOURS - 1)
            some = (table["count"] * steps > 3).to_numpy()
            low, high = table["low"] * steps, table["high"] * steps
            held[by_time].append(((low <= happened) & (happened <= high))[some])
    for by_time, parts in held.items():
        every = np.concatenate(parts)
        # Of few flows nine in ten may hold some more by chance: three standard errors.
        by_chance = 3 * np.sqrt(0.9 * 0.1 / len(every))
        assert 0.85 <= every.mean() <= max(0.97, 0.9 + by_chance), (by_time, every.mean())


def test_errors_of_all_days_are_those_of_the_whole(learned):
    together = learned.of_days(learned.days)
    for at in (*learned.times_of_day, WHOLE_DAY):
        steps, d = learned.steps_summed(at), N_CELLS
        whole, of_days = ((r.draws(at) - r.matrix(at)) * steps for r in (learned, together))
        assert whole.shape == (QUICK.replicates, d, d)
        # Estimates of single pairs are off by a grain at most, which does not add up.
        np.testing.assert_allclose(of_days.mean(axis=0), whole.mean(axis=0), atol=0.3)
        np.testing.assert_allclose(of_days.sum(axis=(1, 2)), whole.sum(axis=(1, 2)), atol=0.3)


SUMS = {
    "out of a cell": [
        np.eye(N_CELLS)[at][:, None] * (1 - np.eye(N_CELLS)) for at in range(N_CELLS)
    ],
    "into an area": [np.outer(area == 0, area) for area in np.eye(N_CELLS) + np.eye(N_CELLS, k=1)],
    "all moves": [1 - np.eye(N_CELLS)],
    "a difference": [
        np.eye(N_CELLS)[at][:, None] * (1 - np.eye(N_CELLS)) - np.eye(N_CELLS)[at][None]
        for at in (0, 3)
    ],
}


@pytest.mark.parametrize("n_days", [1, 2, 5])
def test_intervals_of_sums_of_chosen_days_hold(cities, n_days):
    held = []
    for (_, moves, learned), first in product(cities, range(0, N_DAYS, n_days)):
        one = learned.of_days(learned.days[first : first + n_days])
        of_days = moves[first : first + n_days]
        truths = {at: of_days[:, hour] for hour, at in enumerate(one.times_of_day)}
        truths[WHOLE_DAY] = of_days.reshape(-1, N_CELLS, N_CELLS)
        for at, truth in truths.items():
            for weights in SUMS.values():
                low, high = one.interval(at, ESTIMATE, np.array(weights))
                true = np.tensordot(weights, truth.mean(axis=0), axes=2)
                held += list((low <= true + 1e-9) & (true - 1e-9 <= high))
    assert 0.85 <= np.mean(held) <= 0.98, np.mean(held)


def test_days_of_too_many_flows_are_not_kept(city, monkeypatch):
    monkeypatch.setattr(
        pair_tables.PairTables.__init__, "__kwdefaults__", {"grain": 0.05, "most": 9}
    )
    *_, study = count_study_steps(city[0], replace(QUICK, replicates=0))
    assert study.days == ()
    assert study.happened.by_day is not None
    assert study.summary()["n_days_kept"] == 0
    with refused("days-not-kept"):
        study.of_days(["2024-04-01"])
