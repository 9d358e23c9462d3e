"""What happened on chosen days where people were observed in groups."""

import io
import json
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest

from agg_core.cli.main import main
from agg_core.counts import pair_tables
from agg_core.exports import EXPORTS, ExportInput, days_in
from agg_core.io import read_trajectories
from agg_core.learn.table import LEARNERS
from agg_core.model.aggregates import Aggregates
from agg_core.model.hmm import HMM
from agg_core.store.codec import load_result, save_result
from agg_core.study.days import ObservedDays, moves_by_day, shared_out
from agg_core.study.people import SOURCES, StudyResult
from agg_core.study.result import ESTIMATE
from agg_core.study.settings import WindowSettings
from agg_core.tables.sequences import to_sequences
from tests.agg_core import tiny
from tests.agg_core.cli.told import only_sentence
from tests.agg_core.sealing import unseal
from tests.faults import refused

DAYS = ("2024-05-01", "2024-05-02")
GRAIN = 0.05
"""People below which the sum of a flow over the steps of a window is none or as many."""

# ------------------------------------------------------------------------- moves of single days


def by_enumeration(hmm, symbols):
    """Expected moves of a group of two people given what was shown of both, in either order."""
    d, (first, second) = hmm.n_states, np.array(symbols)
    shown, total, moves = hmm.emission.emissionprob, 0.0, np.zeros((d, d))
    for a, b, x, y in product(range(d), repeat=4):
        chance = hmm.startprob[a] * hmm.transmat[a, x] * hmm.startprob[b] * hmm.transmat[b, y]
        each = [
            shown[a, first[i]]
            * shown[b, first[1 - i]]
            * shown[x, second[j]]
            * shown[y, second[1 - j]]
            for i in range(2)
            for j in range(2)
        ]
        total += chance * sum(each)
        np.add.at(moves, ([a, b], [x, y]), chance * sum(each))
    return moves / total


def test_moves_of_a_day_are_those_expected_of_its_groups():
    """Against all paths of two people on each of two days."""
    hmm = HMM.categorical(
        [0.5, 0.3, 0.2],
        [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4]],
        0.8 * np.eye(3) + 0.2 / 3,
    )
    shown = [[[0, 1], [1, 2]], [[0, 0], [0, 2]]]
    counts = [[np.bincount(at, minlength=3) for at in group] for group in shown]
    groups = Aggregates.from_dense(counts)
    expected = np.stack([by_enumeration(hmm, symbols) for symbols in shown])
    found = moves_by_day(
        hmm, groups, np.array([4, 1]), expected.sum(axis=0), rounds=500, random_state=0
    )
    tables = dict(found)
    assert list(tables) == [1, 4]
    # Noise of 500 rounds, of which each moves two people.
    np.testing.assert_allclose([tables[4], tables[1]], expected, atol=0.12)
    np.testing.assert_allclose(tables[1] + tables[4], expected.sum(axis=0))


def test_days_are_fitted_to_both_sums_and_keep_how_they_differ():
    rng = np.random.default_rng(0)
    d, people = 4, np.array([10.0, 30.0, 20.0])
    moves = rng.gamma(1.0, size=(3, d, d)) * (rng.random((3, d, d)) < 0.8)
    total = rng.gamma(2.0, size=(d, d))
    total *= people.sum() / total.sum()
    moves[:, 2, 3] = 0.0
    day, origin, dest = np.nonzero(moves)
    tables = np.stack(
        [*shared_out(origin * d + dest, day, moves[day, origin, dest], total, people)]
    )
    np.testing.assert_allclose(tables.sum(axis=0), total)
    np.testing.assert_allclose(tables.sum(axis=(1, 2)), people, rtol=1e-6)
    # What nobody knows a day of is shared by people.
    np.testing.assert_allclose(tables[:, 2, 3], total[2, 3] * people / 60)
    # Odds ratios between days and moves are left alone.
    (a, b), (x, y) = [(i, j) for i, j in product(range(d), repeat=2) if moves[:2, i, j].all()][:2]
    odds = [t[0, a, b] * t[1, x, y] / (t[1, a, b] * t[0, x, y]) for t in (tables, moves)]
    assert odds[0] == pytest.approx(odds[1])


# ------------------------------------------------------------------------- two days, by hand


def placed(days, start="2024-05-01T00:10Z"):
    """Trajectories of people of whom each has a state at each hour of each of some days."""
    frames = []
    for number, states in enumerate(days):
        person, hour = (a.ravel() for a in np.indices(states.shape))
        row, col = np.divmod(states.ravel(), 3)
        since = pd.Timestamp(start) + pd.Timedelta(days=number)
        frames.append(
            pd.DataFrame(
                {
                    "user_id": [f"p{i:03d}" for i in person],
                    "time": since + pd.to_timedelta(hour, unit="h"),
                    "lon": 139.05 + 0.1 * col,
                    "lat": 35.05 + 0.1 * row,
                }
            )
        )
    return read_trajectories(pd.concat(frames))


WINDOW = WindowSettings(step_minutes=60, length=2, times=("01:00", "03:00"))


@cache
def two_days():
    """At one all of twelve go from cell 0 to 1 on the first day, on the second all of eight stay.

    At three nobody is left on the second day, on the first they stay in 1.
    """
    first = np.zeros((12, 5), dtype=int)
    first[:, 2:] = 1
    second = np.zeros((8, 3), dtype=int)
    settings = tiny.settings(WINDOW, group_size=4, misclassify=0.0, sigma_m=0.0, iterations=30)
    return tiny.run(placed([first, second]), settings)[1]


@cache
def of_one_day():
    """A study of people of a single day."""
    return tiny.run(tiny.people(), tiny.settings(WINDOW))[1]


BY_HAND = {
    ("01:00", 0): {(0, 1): 12},
    ("01:00", 1): {(0, 0): 8},
    ("03:00", 0): {(1, 1): 12},
}


@pytest.mark.parametrize("days", [(0,), (1,), (1, 0)])
@pytest.mark.parametrize("source", SOURCES)
def test_two_days_by_hand(days, source):
    result = two_days().of_days([DAYS[day] for day in days])
    assert result.chosen_days == tuple(DAYS[day] for day in sorted(days))
    assert result.days == two_days().days == DAYS
    assert result.times == (("01:00",) if days == (1,) else ("01:00", "03:00"))
    for time in result.times:
        flows = np.zeros((9, 9))
        for day in days:
            for at, people in BY_HAND.get((time, day), {}).items():
                flows[at] += people
        np.testing.assert_allclose(result.matrix(time, source), flows, atol=2 * GRAIN)
        assert set(
            map(tuple, result.rows(time, source, least=1)[["origin", "dest"]].to_numpy())
        ) == {*zip(*np.nonzero(flows), strict=True)}


def test_people_groups_and_words_are_those_of_the_days():
    whole, second = two_days(), two_days().of_days(DAYS[1:])
    assert (whole.n_sequences, whole.n_groups) == (32, 8)
    assert (second.n_sequences, second.n_groups) == (8, 2)
    expected = np.zeros((2, 9))
    expected[:, 0] = 8
    np.testing.assert_array_equal(second.observed("01:00"), expected)
    assert second.vs_counted.cpc != second.vs_counted.cpc  # nobody moves
    first = second.of_days(DAYS[:1])
    assert first.vs_counted.total_ratio == pytest.approx(1, abs=0.02)
    assert first.summary()["movers"] == pytest.approx(12, abs=2 * GRAIN)
    for source in SOURCES:
        assert DAYS[1] in second.source_words(source)
        assert DAYS[1] in second.source_label(source)
        assert DAYS[1] not in whole.source_label(source)
    assert DAYS[1] in second.evidence
    told = second.summary()
    assert (told["days"], told["n_days_kept"], len(told["times"])) == ([DAYS[1]], 2, 1)
    assert whole.summary()["days"] == []
    json.dumps(told, allow_nan=False)
    np.testing.assert_allclose(second.parameters()["happened"][0], second.matrix("01:00"))
    assert "happened" not in whole.parameters()


def test_steps_are_not_told_apart_on_chosen_days():
    one = two_days().of_days(DAYS[:1])
    assert (two_days().n_steps, one.n_steps) == (1, 0)
    for asked in (one.rows, one.matrix):
        with refused("unknown-step"):
            asked("01:00", step=0)


def test_days_that_are_not_there_are_refused():
    for days, code in (([], "day-missing"), (["2024-05-03"], "unknown-day")):
        with refused(code):
            two_days().of_days(days)
    assert of_one_day().days == ()
    assert of_one_day().by_day is None
    with refused("days-not-kept"):
        of_one_day().of_days(["2024-05-01"])


def test_days_of_too_many_flows_are_not_kept(monkeypatch):
    monkeypatch.setattr(
        pair_tables.PairTables.__init__, "__kwdefaults__", {"grain": 0.05, "most": 1}
    )
    full = tiny.run(placed([DAY_STATES[0], DAY_STATES[1]]), tiny.settings(WINDOW, replicates=2))[1]
    assert full.days == ()
    assert full.by_day is not None
    assert full.ensemble is not None
    with refused("days-not-kept"):
        full.of_days(DAYS[:1])


def test_a_day_is_local_and_that_on_which_a_window_begins():
    trajectories = placed(DAY_STATES, start="2024-05-01T15:10Z")
    trajectories = replace(trajectories, timezone="Asia/Tokyo")
    window = WindowSettings(step_minutes=60, length=3, times=("01:00", "04:00"))
    sequences = to_sequences(
        trajectories, tiny.GRID.make(), step=window.step, length=3, start=list(window.times)
    )
    parts = [sequences.at_time(time) for time in window.times]
    days = ObservedDays.of(parts)
    assert days.dates == ("2024-05-02", "2024-05-03", "2024-05-04")
    assert [list(of) for of in days.of_window] == [[0, 1, 2]] * 2


# ------------------------------------------------------------------------- the whole way


def chain(seed=0):
    rng = np.random.default_rng(seed)
    return 0.6 * np.eye(9) + 0.4 * rng.dirichlet(np.ones(9), 9)


def walked(n_people, n_days, n_hours, seed):
    """States of people who begin each day in their own way and move by one chain."""
    rng, moves = np.random.default_rng(seed), chain()
    for _ in range(n_days):
        states = np.empty((n_people, n_hours), dtype=int)
        states[:, 0] = rng.choice(9, n_people, p=rng.dirichlet(np.full(9, 2.0)))
        for hour in range(1, n_hours):
            states[:, hour] = [rng.choice(9, p=moves[at]) for at in states[:, hour - 1]]
        yield states


DAY_STATES = tuple(walked(24, 3, 9, seed=1))
THREE = ("2024-05-01", "2024-05-02", "2024-05-03")
LONGER = replace(WINDOW, length=3, times=("01:00", "04:00"))


@cache
def study(**learn):
    settings = tiny.settings(LONGER, **{"group_size": 4, "replicates": 3, **learn})
    return tiny.run(placed(DAY_STATES), settings)[1]


KINDS = [
    {"inference": row.name, "replicates": 0}
    for row in LEARNERS.own.values()
    if row.groups and row.name != "auto"
] + [{}, {"group_size": 1}, {"observed": "positions", "inference": "sampling"}]


@pytest.mark.parametrize("learn", KINDS, ids=str)
def test_all_days_together_are_what_is_shown(learn):
    whole = study(**learn)
    assert whole.days == THREE
    together = whole.of_days(THREE)
    assert (together.n_sequences, together.n_groups) == (whole.n_sequences, whole.n_groups)
    for time in whole.times:
        for source in SOURCES:
            found, shown = together.matrix(time, source), whole.matrix(time, source)
            # What is below a grain on a day is none or a grain.
            np.testing.assert_allclose(found, shown, atol=3 * GRAIN / 2)
            assert found.sum() == pytest.approx(shown.sum(), abs=3 * GRAIN)
            ones = [whole.of_days([day]).matrix(time, source) for day in THREE]
            np.testing.assert_allclose(np.sum(ones, axis=0), found, atol=1e-5)
            # Twenty-four people each day.
            np.testing.assert_allclose([one.sum() for one in ones], 24, atol=0.1)
        if whole.observed(time) is not None:
            observed = [whole.of_days([day]).observed(time) for day in THREE]
            np.testing.assert_array_equal(np.sum(observed, axis=0), whole.observed(time))


def test_errors_of_all_days_are_those_of_the_whole():
    whole = study()
    together = whole.of_days(THREE)
    for time in whole.times:
        drawn = [result.draws(time) - result.matrix(time) for result in (whole, together)]
        np.testing.assert_allclose(*drawn, atol=3 * GRAIN)
    away = 1 - np.eye(9)
    assert whole.of_days(THREE[:1]).summary()["movers_low"] is not None
    for result in (whole, together):
        # Over all times a sum of two sums.
        errors = sum(
            ((result.draws(t) - result.matrix(t)) * away).sum(axis=(1, 2)) for t in whole.times
        )
        movers = sum((result.matrix(t) * away).sum() for t in whole.times)
        middle = np.mean([result.summary()[end] for end in ("movers_low", "movers_high")])
        assert middle == pytest.approx(movers + errors.mean(), abs=0.02)


def test_without_worlds_there_is_no_interval():
    one = study(inference="sampling", replicates=0).of_days(THREE[:1])
    assert not one.has_intervals
    assert one.interval("01:00", ESTIMATE, np.eye(9)) is one.draws("01:00") is None
    assert "low" not in one.rows("01:00")
    assert one.summary()["ensemble_by_day"] is None


def test_intervals_of_chosen_days_hold_what_happened():
    flows, sums = [], []
    for seed in (3, 4):
        days = tuple(walked(100, 4, 4, seed))
        window = replace(WINDOW, length=3, times=("01:00",))
        settings = tiny.settings(
            window, group_size=5, replicates=4, inference="sampling", iterations=20
        )
        whole = tiny.run(placed(days), settings)[1]
        for n_days in (1, 2):
            for first in range(0, 4, n_days):
                one = whole.of_days(whole.days[first : first + n_days])
                truth, found = one.matrix("01:00", "counted"), one.matrix("01:00")
                low, high = (one.matrix("01:00", column=end) for end in ("low", "high"))
                flows.append(((low <= truth) & (truth <= high))[found > 2])
                out = np.eye(9)[:, :, None] * (1 - np.eye(9))
                low, high = one.interval("01:00", ESTIMATE, out)
                true = np.tensordot(out, truth, axes=2)
                sums.append((low <= true) & (true <= high))
    # As those of all days do: of eight such cities 0.84 of the flows, on chosen days and on all.
    assert 0.75 <= np.concatenate(flows).mean() <= 0.99
    assert 0.8 <= np.concatenate(sums).mean() <= 0.99


def test_a_day_unlike_others_is_told_apart():
    """On one day people move twice as much: flows of days are nearer to it than the mean is."""
    rng = np.random.default_rng(8)
    days = []
    for stay in (0.9, 0.9, 0.3):
        moves = stay * np.eye(9) + (1 - stay) * chain(5)
        states = np.empty((120, 4), dtype=int)
        states[:, 0] = rng.integers(0, 9, 120)
        for hour in range(1, 4):
            states[:, hour] = [rng.choice(9, p=moves[at]) for at in states[:, hour - 1]]
        days.append(states)
    window = replace(WINDOW, length=3, times=("01:00",))
    whole = tiny.run(
        placed(days), tiny.settings(window, group_size=4, inference="sampling", iterations=20)
    )[1]
    away = 1 - np.eye(9)
    for day in THREE:
        one = whole.of_days([day])
        moved, counted, mean = (
            (flows * away).sum()
            for flows in (
                one.matrix("01:00"), one.matrix("01:00", "counted"), whole.matrix("01:00") / 3
            )
        )  # fmt: skip
        assert abs(moved - counted) < 0.7 * abs(mean - counted)


# ------------------------------------------------------------------------- files


@pytest.mark.parametrize("days", [(), THREE[:2]])
def test_days_come_back_to_the_bit(days, tmp_path):
    whole = study().of_days(days) if days else study()
    save_result(whole, tmp_path / "run")
    back = load_result(tmp_path / "run")
    assert isinstance(back, StudyResult)
    assert (back.days, back.chosen_days) == (THREE, days)
    for chosen in (back, back.of_days(THREE[2:])):
        same = whole if chosen is back else whole.of_days(THREE[2:])
        assert chosen.summary() == same.summary()
        for time in same.times:
            for source in SOURCES:
                pd.testing.assert_frame_equal(
                    chosen.rows(time, source), same.rows(time, source), check_exact=True
                )
            np.testing.assert_array_equal(chosen.draws(time), same.draws(time))
            np.testing.assert_array_equal(chosen.observed(time), same.observed(time))
    (tmp_path / "run" / "flows_by_day.parquet").unlink()
    with refused("result-damaged"):
        load_result(tmp_path / "run")


def test_runs_saved_before_days_were_kept_open(tmp_path):
    save_result(study(), tmp_path / "run")
    unseal(tmp_path / "run")
    path = tmp_path / "run" / "result.json"
    about = json.loads(path.read_text(encoding="utf-8"))
    del about["by_day"], about["chosen_days"]
    path.write_text(json.dumps(about), encoding="utf-8")
    for file in ("flows_by_day.parquet", "ensemble_by_day.parquet"):
        (tmp_path / "run" / file).unlink()
    back = load_result(tmp_path / "run")
    assert (back.days, back.chosen_days) == ((), ())
    np.testing.assert_array_equal(back.matrix("01:00"), study().matrix("01:00"))


@pytest.mark.parametrize("key", EXPORTS)
def test_every_format_takes_chosen_days(key):
    export, one = EXPORTS[key], study().of_days(THREE[1:2])
    assert export.available(one) == export.available(study())
    if not export.available(one):
        return
    of_draws = key in ("ensemble", "draws-netcdf", "omx-draws")  # which the estimate alone has
    for source in one.sources if export.one_source and not of_draws else (ESTIMATE,):
        for at in one.times:
            asked = ExportInput(one, at, "Week", source)
            assert export.make(asked)
            assert days_in(export, asked) == (THREE[1:2] if key != "parameters-csv" else ())


@pytest.mark.parametrize("source", SOURCES)
def test_matrices_of_chosen_days_on_the_command_line(source, tmp_path, capsys):
    save_result(two_days(), tmp_path / "run")
    asked = ["flows", str(tmp_path / "run"), "--format", "od-csv", "--time", "01:00"]
    words = ["--source", source, "--day", DAYS[1], "--out", "-"]
    assert main([*asked, *words]) == 0
    table = pd.read_csv(io.StringIO(capsys.readouterr().out), index_col="origin")
    expected = two_days().of_days(DAYS[1:]).matrix("01:00", source)
    np.testing.assert_allclose(table.to_numpy(), expected, atol=1e-6)
    assert table.iloc[0, 0] == pytest.approx(8, abs=2 * GRAIN)


@pytest.mark.parametrize("words", [["--day", "2024-05-03"], ["--day", DAYS[1], "--time", "03:00"]])
def test_days_that_cannot_be_told_are_one_sentence(words, tmp_path, capsys):
    save_result(two_days(), tmp_path / "run")
    asked = ["flows", str(tmp_path / "run"), "--format", "od-csv", *words, "--out", "-"]
    assert main(asked) == 2
    assert tiny.is_one_sentence(only_sentence(capsys.readouterr().err))
