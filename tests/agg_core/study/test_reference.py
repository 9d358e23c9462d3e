"""Learned flows held against known ones, with figures that were calculated by hand."""

from dataclasses import replace

import pandas as pd
import pytest

from agg_core.io.flow_tables import FlowTable
from agg_core.study.reference import ReferenceComparison, compare_by_day, compare_reference
from agg_core.study.result import States
from agg_core.study.settings import WindowSettings
from tests.agg_core import counted, tiny
from tests.faults import refused

STEPS = (2, 0, 2)
"""Steps in the morning, at noon and at night of flows of `counted`."""
TIMES = (counted.MORNING, "12:00", counted.NIGHT)
OUT = 9


def known(*rows, times=(), **aside):
    """A reference of rows (time, origin, dest, count), each of one row of its file."""
    flows = pd.DataFrame(rows, columns=["time", "origin", "dest", "count"]).assign(rows=1)
    return FlowTable(flows, times, aside)


@pytest.fixture
def result():
    return replace(counted.both(), steps=STEPS)


def test_sums_over_the_period_are_compared(result):
    """Learned: 0 to 1 16 (12 to 20), 4 to 0 14 (12 to 16), 5 to 2 9 people in 4 steps."""
    found = compare_reference(
        result, known((0, 0, 1, 12.0), (0, 4, 0, 14.0), (0, 2, 3, 6.0), (0, 8, 8, 5.0), twins=4)
    )
    assert found == ReferenceComparison(
        cpc=pytest.approx(2 * (12 + 14) / (39 + 32)),
        cpc_by_time=pytest.approx(float("nan"), nan_ok=True),
        total_ratio=pytest.approx(39 / 32),
        coverage_90=pytest.approx(2 / 3),
        n_flows=3,
        n_times=None,
        set_aside={"twins": 4, "stay: origin is dest": 1},
    )
    assert found.to_dict()["cpc_by_time"] is None


def test_times_of_day_are_compared_one_by_one(result):
    """Learned: 0 to 1 16 (13 to 19), 1 to 0 1, 5 to 2 8 (6 to 10); at night 4 to 0 14 (12 to 16).

    At noon nothing was learned from.
    """
    rows = [(0, 0, 1, 13.0), (0, 5, 2, 10.0), (2, 4, 0, 17.0), (2, 1, 2, 4.0), (1, 1, 0, 9.0)]
    found = compare_reference(result, known(*rows, times=TIMES))
    assert found.cpc_by_time == pytest.approx(2 * (13 + 8 + 14) / (39 + 44))
    assert found.cpc == pytest.approx(2 * (13 + 9 + 14) / (39 + 44))
    assert found.total_ratio == pytest.approx(39 / 44)
    assert (found.coverage_90, found.n_flows) == (pytest.approx(2 / 3), 3)
    assert (found.n_times, found.set_aside) == (2, {"no such time of day": 1})


def test_an_interval_holds_what_comes_within_half_a_person(result):
    for count, held in ((20.5, 1), (20.6, 0), (11.5, 1), (11.4, 0)):
        found = compare_reference(result, known((0, 0, 1, count)))
        assert (found.coverage_90, found.n_flows) == (held, 1)


def test_the_outside_is_compared_where_the_reference_has_it(result):
    rows = [(0, 0, 1, 13.0), (0, 0, OUT, 7.5)]
    found = compare_reference(result, known(*rows, times=TIMES))
    # Flows to the outside, 5 (3 to 7), are among the learned ones then.
    assert found.cpc_by_time == pytest.approx(2 * (13 + 5) / (44 + 20.5))
    assert (found.coverage_90, found.n_flows) == (1.0, 2)
    inside = replace(result, has_outside=False, transmats=result.transmats[:, :9, :9])
    found = compare_reference(inside, known(*rows, times=TIMES))
    assert found.cpc_by_time == pytest.approx(2 * 13 / (39 + 13))
    assert found.set_aside == {"no such cell": 1}


def test_without_intervals_nothing_is_covered():
    found = compare_reference(replace(counted.unsure(), steps=STEPS), known((0, 0, 1, 12.0)))
    # What is usual: 0 to 1 12, 4 to 0 18.
    assert found.cpc == pytest.approx(2 * 12 / (30 + 12))
    assert (found.to_dict()["coverage_90"], found.n_flows) == (None, 1)


def test_figures_without_a_meaning_are_none(result):
    figures = compare_reference(result, known((0, 3, 3, 12.0))).to_dict()
    assert (figures["cpc"], figures["total_ratio"], figures["coverage_90"]) == (0, None, None)


def test_a_run_without_its_numbers_of_steps_has_no_sums():
    with refused("steps-unknown"):
        compare_reference(counted.both(), known((0, 0, 1, 12.0)))


@pytest.fixture(scope="module")
def study():
    window = WindowSettings(step_minutes=60, length=3, times=("06:00", "12:00"))
    return tiny.run(tiny.people(), tiny.settings(window))[1]


def test_flows_of_people_are_compared_as_their_tables_show_them(study):
    """Held against the counted flows that is what the study itself says of these."""
    rows = [
        (number, o, d, count)
        for number, time in enumerate(study.times)
        for o, d, count in study.rows(time, "counted").itertuples(index=False)
    ]
    found = compare_reference(study, known(*rows, times=study.times))
    assert found.cpc_by_time == pytest.approx(study.vs_counted.cpc)
    assert found.total_ratio == pytest.approx(study.vs_counted.total_ratio)
    assert found.to_dict()["coverage_90"] is None
    learned, true = (
        sum(study.matrix(time, source) for time in study.times)
        for source in ("estimate", "counted")
    )
    d = study.n_states
    moves = [(a, b) for a in range(d) for b in range(d) if a != b]
    common = sum(min(learned[move], true[move]) for move in moves)
    both = sum(learned[move] + true[move] for move in moves)
    for times in (study.times, ()):
        summed = compare_reference(study, known(*rows, times=times))
        assert summed.cpc == pytest.approx(2 * common / both)


class Days:
    """A stand-in that tells which days were asked for; each has a known table of moves."""

    def __init__(self, moves, days, chosen=None):
        self.moves, self.days, self.chosen = moves, days, chosen

    def __getattr__(self, name):
        found = {"has_intervals": False, "times_of_day": ("08:00",), "times": ("whole day",)}
        return found[name]

    @property
    def states(self):
        return States(("a", "b", "c"), None, has_outside=False)

    def of_days(self, days):
        return Days(self.moves, self.days, days[0])

    def rows(self, time):
        return pd.DataFrame([self.moves[self.chosen]], columns=["origin", "dest", "count"])

    def steps_summed(self, time):
        return 1


def test_days_are_held_against_the_same_days():
    """On the first day 6 of 10 and 8, on the second 4 of 4 and 4; the third is not kept."""
    moves = {"2024-05-01": (0, 1, 8.0), "2024-05-02": (1, 2, 4.0)}
    table = known((0, 0, 1, 6.0), (0, 0, 2, 4.0), (0, 1, 2, 4.0), (0, 0, 1, 9.0))
    table.flows["date"] = [0, 0, 1, 2]
    dated = replace(table, dates=("2024-05-01", "2024-05-02", "2024-05-03"))
    found = compare_by_day(Days(moves, tuple(moves)), dated)
    assert found.by_day == pytest.approx({"2024-05-01": 2 * 6 / 18, "2024-05-02": 1.0})
    assert found.cpc == pytest.approx((2 * 6 / 18 + 1) / 2)
    assert found.total_ratio == pytest.approx(12 / 14)
    assert found.set_aside == {"no such day": 1}
