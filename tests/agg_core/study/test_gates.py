import numpy as np
import pytest

from agg_core.io.gates import read_gates
from agg_core.store.codec import load_result, save_result
from agg_core.study.gates import GateProgress, GateStudy, gate_study_steps
from agg_core.study.result import ESTIMATE, WHOLE_DAY
from agg_core.study.settings import GateLearnSettings
from tests.agg_core.gates.made import long_table, places, trips
from tests.faults import refused

DAYS = 21


@pytest.fixture(scope="module")
def known():
    """Entries, exits and who went where."""
    return trips(DAYS, seed=5)


def learned(known, **settings):
    table = read_gates(long_table(known[0]), long_table(known[1]), places())
    steps = list(gate_study_steps(table, GateLearnSettings(**settings)))
    assert all(isinstance(step, GateProgress) for step in steps[:-1])
    shares = [step.share for step in steps[:-1]]
    assert shares == sorted(shares)
    assert isinstance(steps[-1], GateStudy)
    return steps[-1]


@pytest.fixture(scope="module")
def study(known):
    return learned(known, draws=12, minutes_per_km=1.2)


def test_flows_of_a_day_add_up_to_its_gates(study, known) -> None:
    entries, exits, _ = known
    for day in (0, 9):
        of_day = study.of_days([study.days[day]])
        flows = of_day.matrix(WHOLE_DAY) * of_day.steps_summed(WHOLE_DAY)
        assert flows.sum(axis=1) == pytest.approx(entries[day].sum(axis=0), rel=0.01, abs=2)
        assert flows.sum(axis=0) == pytest.approx(exits[day].sum(axis=0), rel=0.01, abs=2)


def test_times_add_up_to_the_day(study) -> None:
    whole = study.matrix(WHOLE_DAY) * study.steps_summed(WHOLE_DAY)
    times = sum(study.matrix(time) * study.steps_summed(time) for time in study.times_of_day)
    assert times == pytest.approx(whole, rel=1e-3, abs=0.5)


def test_nearer_to_the_truth_than_what_gates_alone_allow(study, known) -> None:
    entries, exits, went = known
    truth, flat = went.sum(axis=0), np.ones((8, 8)) - np.eye(8)
    for _ in range(200):
        flat *= (entries.sum(axis=(0, 1)) / flat.sum(axis=1))[:, None]
        flat *= exits.sum(axis=(0, 1)) / flat.sum(axis=0)
    flows = study.matrix(WHOLE_DAY) * study.steps_summed(WHOLE_DAY)

    def cpc(one) -> float:
        return float(2 * np.minimum(one, truth).sum() / (one.sum() + truth.sum()))

    assert cpc(flows) > cpc(flat) + 0.05


def test_intervals_hold_the_truth(study, known) -> None:
    truth = known[2].sum(axis=0)
    steps = study.steps_summed(WHOLE_DAY)
    low, high = (study.matrix(WHOLE_DAY, column=end) * steps for end in ("low", "high"))
    pairs = ~np.eye(8, dtype=bool)
    held = (low <= truth) & (truth <= high)
    assert held[pairs].mean() >= 0.8
    ends = study.interval(WHOLE_DAY, ESTIMATE, 1 - np.eye(8))
    assert ends is not None
    # All who move are known from the gates.
    assert float(ends[1] - ends[0]) < 0.05 * float(study.matrix(WHOLE_DAY).sum())


def test_days_have_intervals_too(study) -> None:
    of_day = study.of_days(study.days[:2])
    assert of_day.has_intervals
    rows = of_day.rows(WHOLE_DAY)
    moves = rows[rows["origin"] != rows["dest"]]
    assert (moves["high"] > moves["low"]).all()
    assert of_day.chosen_days == study.days[:2]
    with refused("unknown-day"):
        study.of_days(["1999-01-01"])


def test_a_trip_counts_at_its_exit_if_that_is_asked(known) -> None:
    entry = learned(known, draws=0, minutes_per_km=1.2)
    leave = learned(known, draws=0, minutes_per_km=1.2, hour_of="exit")
    assert not entry.has_intervals
    assert leave.matrix(WHOLE_DAY) == pytest.approx(entry.matrix(WHOLE_DAY), rel=0.02, abs=0.5)
    of_exit = known[1].mean(axis=0)
    for time in ("12:00", "22:00"):
        hour = int(time[:2])
        assert leave.matrix(time).sum() == pytest.approx(of_exit[hour].sum(), rel=0.05)


def test_saved_and_opened_again(study, tmp_path) -> None:
    save_result(study, tmp_path / "run")
    again = load_result(tmp_path / "run")
    assert isinstance(again, GateStudy)
    assert again.summary() == study.summary()
    assert again.rows(WHOLE_DAY).equals(study.rows(WHOLE_DAY))
    assert (
        again.of_days([study.days[3]])
        .rows(WHOLE_DAY)
        .equals(study.of_days([study.days[3]]).rows(WHOLE_DAY))
    )
    assert again.evidence == study.evidence


def test_the_same_seed_gives_the_same_figures(known, study) -> None:
    assert (
        learned(known, draws=12, minutes_per_km=1.2).rows(WHOLE_DAY).equals(study.rows(WHOLE_DAY))
    )
