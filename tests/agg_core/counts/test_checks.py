"""Checks of learned flows: silent where people move as was learned, right where they do not."""

import re
from collections import Counter

import numpy as np
import pytest

from agg_core.counts.checks import CODES, doubts_of
from agg_core.counts.choosing import DENSE, learn_flows
from agg_core.counts.erring import CountError, erring_pairs
from agg_core.counts.held_out import held_out_days
from agg_core.counts.pairs import pairs_of
from agg_core.counts.rows import Strength
from tests.agg_core.counts.made import table

HOURS, DAYS = 24, 7
D = 8


def rows(rng, d=D, n=1, staying=0.7):
    """Chances of moves (n, d, d), of which none is like another."""
    return staying * np.eye(d) + (1 - staying) * rng.dirichlet(np.ones(d), size=(n, d))


def chances(counts, rng, A):
    """The next counts of each moment (d,), drawn."""
    return rng.multinomial(counts, A).sum(axis=0)


def walk(rng, A, people, days=DAYS):
    """Counts (n, d) of people who move by chances (H or 1, d, d), each hour."""
    counts = [rng.multinomial(people, np.linalg.matrix_power(A.mean(axis=0), 99)[0])]
    for hour in range(days * HOURS - 1):
        counts.append(chances(counts[-1], rng, A[hour % len(A)]))
    return np.array(counts)


def event(rng, A, people):
    """At six on the fourth day two in five of all go to cell 2."""
    counts = walk(rng, A, people)
    crowd = 0.6 * A[0] + 0.4 * (np.arange(D) == 2)
    for t in range(3 * HOURS + 18, len(counts) - 1):
        counts[t + 1] = chances(counts[t], rng, crowd if t == 3 * HOURS + 18 else A[0])
    return counts


def growth(rng, A, people):
    """A fiftieth more of the people each six hours, who come from nowhere."""
    counts = [rng.multinomial(people, np.full(D, 1 / D))]
    for _ in range(DAYS * HOURS - 1):
        counts.append(chances(counts[-1], rng, A[0]) + rng.poisson(people / 300 / D, D))
    return np.array(counts)


def movers_and_stayers(rng, A, people):
    """Three in ten of the people move a lot, and the others do not at all."""
    moving = int(0.3 * people)
    stay = rng.multinomial(people - moving, rng.dirichlet(np.full(D, 5.0)))
    return walk(rng, 0.5 * A + 0.5 / D, moving) + stay


def round_trips(rng, A, people, back=6):
    """Everybody who left home is back after six hours, wherever they went."""
    home = rng.integers(D, size=people)
    at, due, counts = home.copy(), np.full(people, -1), []
    ends = np.cumsum(0.3 * A[0] + 0.7 * np.eye(D), axis=1)
    for t in range((DAYS + 1) * HOURS):
        counts.append(np.bincount(at, minlength=D))
        there = np.minimum((rng.random(people)[:, None] > ends[at]).sum(axis=1), D - 1)
        goes, returns = (due < 0) & (there != at), due == t
        at = np.where(returns, home, np.where(goes, there, at))
        due = np.where(returns, -1, np.where(goes, t + back, due))
    # All begin at home, which is an event of its own.
    return np.array(counts[HOURS:])


def groups(rng, A, people):
    """People move by fives."""
    return 5 * walk(rng, A, people // 5)


def learned(pairs, hours=None):
    """Parts kept aside, and what is learned without them."""
    d = pairs.n_states
    shape = 0.6 * np.eye(d) + 0.4 / (d - 1) * (1 - np.eye(d))
    kept = []
    for aside in held_out_days(pairs):
        strength = Strength(20.0, hours=hours)
        *_, last = learn_flows(pairs.take(~aside), shape, DENSE, strength, n_iter=40)
        kept.append((aside, last.transmats))
    return kept


def found(counts, transmats=None, **options):
    """Doubts of counts by their code, with given transitions or those learned."""
    counted = table(counts)
    pairs = pairs_of(counted)
    kept = (
        learned(pairs) if transmats is None
        else [(aside, transmats) for aside in held_out_days(pairs)]
    )  # fmt: skip
    return {doubt.code: doubt for doubt in doubts_of(pairs, kept, counted.cells, **options)}


@pytest.mark.parametrize(
    ("d", "n", "people", "days"),
    [(5, 1, 40, 4), (5, 1, 4_000, 4), (6, 24, 60, 7), (6, 24, 6_000, 7), (4, 1, 100, 2),
     (20, 24, 20_000, 14), (20, 1, 60, 6)],
)  # fmt: skip
def test_people_who_move_as_was_learned_raise_no_doubt(d, n, people, days):
    """One in twenty may: of twenty, more than two have a chance of 8 % at that rate."""
    doubted = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        A = rows(rng, d, n, staying=0.8)
        doubted += bool(found(walk(rng, A, people, days), A))
    assert doubted <= 1


@pytest.mark.parametrize("people", [300, 3_000])
def test_neither_do_they_where_transitions_are_learned(people):
    doubted = Counter()
    for seed in range(6):
        rng = np.random.default_rng(seed)
        doubted[bool(found(walk(rng, rows(rng), people)))] += 1
    assert doubted[True] <= 1


@pytest.mark.parametrize("people", [300, 3_000])
@pytest.mark.parametrize(
    ("fault", "code", "others"),
    [(event, "event", ("persistence",)), (growth, "growth", ()),
     (movers_and_stayers, "movers-stayers", ()), (round_trips, "round-trips", ()),
        # What moves many at once is taken for movement of each, and a group may be an event.
     (groups, "more-varied", ("event", "persistence"))],
)  # fmt: skip
def test_each_fault_is_called_by_its_name(fault, code, others, people):
    for seed in range(2):
        rng = np.random.default_rng(seed)
        doubts = found(fault(rng, rows(rng), people))
        assert code in doubts
        assert doubts.keys() <= {code, *others}
        assert all(0 < doubt.p < 0.05 / len(CODES) for doubt in doubts.values())


def test_an_event_is_told_with_its_day_time_and_cell():
    rng = np.random.default_rng(0)
    (doubt,) = found(event(rng, A := rows(rng), 3_000), A).values()
    assert "on 2024-04-04 at 18:00" in doubt.sentence
    assert "people more in cell c2" in doubt.sentence


def test_people_of_a_sample_stand_for_others():
    """Of 3,000 some 900 more come to a cell than usual; each of them is ten."""
    rng = np.random.default_rng(0)
    A = rows(rng)
    counts = event(rng, A, 3_000)
    (doubt,) = found(counts, A, expansion=10.0).values()
    more = re.search(r"([\d,.]+) people more in cell c2", doubt.sentence)[1]
    expected = counts[3 * HOURS + 19, 2] - counts[3 * HOURS + 18] @ A[0][:, 2]
    assert float(more.replace(",", "")) == pytest.approx(10 * expected, rel=0.02)


def test_a_time_of_day_that_differs_is_told_with_its_cell():
    """At eight cell 3 draws three in ten of everybody, which one matrix for all times has not."""
    rng = np.random.default_rng(1)
    A = rows(rng)
    by_hour = np.repeat(A, HOURS, axis=0)
    by_hour[8] = 0.7 * A[0] + 0.3 * (np.arange(D) == 3)
    counts = walk(rng, by_hour, 1_000)
    doubts = found(counts, A)
    assert doubts.keys() == {"time-and-cell"}
    (doubt,) = doubts.values()
    assert doubt.sentence.startswith("In the step from 08:00 cell c3 comes out with ")
    at = np.arange(8, len(counts) - 1, HOURS)
    p = A[0][:, 3]
    off = (counts[at + 1, 3] - counts[at] @ p) / np.sqrt(counts[at] @ (p * (1 - p)))
    assert doubt.value == pytest.approx(off.mean(), rel=1e-5)
    assert "time-and-cell" not in found(counts, by_hour)


def test_the_variance_of_groups_is_their_size():
    rng = np.random.default_rng(2)
    doubts = found(groups(rng, A := rows(rng), 3_000), A)
    assert doubts["more-varied"].value == pytest.approx(5.0, rel=0.1)


def test_growth_is_that_of_the_people_from_day_to_day():
    counts = growth(rng := np.random.default_rng(3), rows(rng), 3_000)
    of_day = counts[:-1].sum(axis=1)
    of_day = [of_day[at : at + HOURS].mean() for at in range(0, len(of_day), HOURS)]
    doubt = found(counts)["growth"]
    assert doubt.value == pytest.approx((of_day[-1] - of_day[0]) / np.mean(of_day))
    falling = found(counts[::-1])["growth"]
    assert falling.value < 0


def test_those_who_return_are_told_with_how_long_they_were_away():
    rng = np.random.default_rng(4)
    doubt = found(round_trips(rng, rows(rng), 1_000, back=4))["round-trips"]
    assert " leave 4 steps later " in doubt.sentence
    assert -1 < doubt.value < -0.2


def test_what_lies_between_gaps_does_not_hang_together():
    """Every other moment is missing a count: no pair follows another one."""
    rng = np.random.default_rng(5)
    counts = round_trips(rng, rows(rng), 1_000, back=1).astype(float)
    assert "movers-stayers" in found(counts)
    counts[2::3] = np.nan
    assert "movers-stayers" not in found(counts)


def miscounted(counts, A, rng, error=0.05):
    """Codes of doubts of the same counts, of which each errs by so much."""
    wrong = np.rint(np.maximum(counts * (1 + error * rng.standard_normal(counts.shape)), 0.0))
    counted = table(wrong)
    pairs = erring_pairs(counted, CountError(error, 1.0), outside=False)
    kept = [(aside, A) for aside in held_out_days(pairs)]
    return {doubt.code for doubt in doubts_of(pairs, kept, counted.cells)}


@pytest.mark.parametrize("people", [400, 4_000])
def test_counts_that_err_as_told_raise_no_doubt(people):
    doubted = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        A = rows(rng, staying=0.8)
        doubted += bool(miscounted(walk(rng, A, people), A, rng))
    assert doubted <= 1


@pytest.mark.parametrize(
    ("fault", "code"), [(event, "event"), (growth, "growth"), (groups, "more-varied")]
)
def test_faults_are_found_among_errors(fault, code):
    rng = np.random.default_rng(6)
    A = rows(rng, staying=0.8)
    assert code in miscounted(fault(rng, A, 3_000), A, rng)


def test_a_few_moments_tell_nothing():
    rng = np.random.default_rng(7)
    assert not found(groups(rng, rows(rng), 3_000)[:5])


def test_suppressed_counts_are_not_held_against_what_fills_them():
    """Whatever fills them: only cells that were counted are looked at."""
    rng = np.random.default_rng(8)
    A = rows(rng, staying=0.8)
    counts = walk(rng, A, 400).astype(float)
    counts[counts < np.quantile(counts, 0.2)] = np.inf
    counted = table(counts, below=float(counts[np.isfinite(counts)].min()))
    pairs = pairs_of(counted)
    assert pairs.n_filled > 100
    B = np.zeros((1, pairs.n_states, pairs.n_states))
    B[0, :D, :D] = A[0]
    B[0, D:, D:] = 1.0
    assert "event" not in {
        d.code for d in doubts_of(pairs, [(a, B) for a in held_out_days(pairs)], counted.cells)
    }
