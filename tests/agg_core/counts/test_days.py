"""Flows by pair and by day: sums that stay right, days by name, errors by size."""

import numpy as np
import pandas as pd
import pytest

from agg_core.counts.days import OF_DAY, OF_TIME, DayErrors, Spread, flows_by_day
from agg_core.counts.pair_tables import PairFlows, PairTables
from agg_core.counts.pairs import pairs_of
from agg_core.tables.certainty import LEVEL, SIZES
from tests.agg_core import counted
from tests.agg_core.counts import made
from tests.faults import refused

D = 4


def kept_of(tables, **options):
    kept = PairTables(tables.shape[1], **options)
    for number, table in enumerate(tables):
        kept.add(number, table)
    return kept.made()


def dense(flows, n_pairs):
    """Tables (P, d, d) of flows of pairs."""
    tables = np.zeros((n_pairs, flows.n_states**2))
    np.add.at(tables, (flows.pair, flows.at), flows.people)
    return tables.reshape(n_pairs, flows.n_states, flows.n_states)


def test_small_entries_are_nobody_or_a_grain_and_sums_stay_right():
    rng = np.random.default_rng(0)
    small = rng.random((200, D, D)) * 0.04
    tables = np.where(rng.random(small.shape) < 0.2, rng.random(small.shape) * 9 + 0.05, small)
    found = dense(kept_of(tables), 200)
    large = tables >= 0.05
    np.testing.assert_array_equal(found[large], tables[large])
    assert np.isin(found[~large], (0.0, 0.05)).all()
    # A table of any size is off by a grain at most, and so are the first entries of it.
    for some in (slice(None), slice(2)):
        off = (found - tables)[:, some].sum(axis=(1, 2))
        assert np.abs(off).max() <= 0.05 + 1e-9
    # Over many pairs no flow is favoured: a mean of n is off by much less than a grain.
    same = np.repeat(small[:1], 500, axis=0)
    np.testing.assert_allclose(dense(kept_of(same), 500).mean(axis=0), small[0], atol=0.002)


def test_too_many_flows_are_not_kept():
    tables = np.ones((3, D, D))
    assert len(kept_of(tables, most=3 * D * D).at) == 48
    assert kept_of(tables, most=3 * D * D - 1) is None
    assert len(kept_of(tables[:0]).at) == 0


def test_sums_by_group_of_pairs():
    tables = np.random.default_rng(1).integers(0, 3, (5, D, D))
    keys, people = kept_of(tables, grain=0.0).summed(np.array([1, 0, -1, 1, 0]))
    found = np.zeros(2 * D * D)
    found[keys] = people
    by_hand = np.stack([tables[1] + tables[4], tables[0] + tables[3]])
    np.testing.assert_array_equal(found.reshape(2, D, D), by_hand)


def dated(n_days=3, n_hours=4):
    """Pairs of counts of three hours of some days, and a table of flows of each pair."""
    rng = np.random.default_rng(2)
    counts = np.full((n_days * n_hours, D), 5.0)
    table = made.table(
        counts, steps=n_hours, start="2024-03-30", runs=np.repeat(np.arange(n_days), n_hours),
        zone="Asia/Tokyo",
    )  # fmt: skip
    pairs = pairs_of(table)
    return pairs, rng.integers(0, 3, (pairs.n_pairs, D, D)).astype(float)


def test_flows_by_local_day_and_time():
    pairs, tables = dated()
    found = flows_by_day(pairs, kept_of(tables), len(pairs.slots), expansion=2.0)
    assert found.dates == ("2024-03-30", "2024-03-31", "2024-04-01")
    assert found.steps.tolist() == [[1, 1, 1, 0]] * 3
    by_day = 2 * tables.reshape(3, 3, D, D)
    for chosen in ([0], [1, 2], [0, 1, 2]):
        rows = found.summed(np.array(chosen), by_time=True)
        matrix = np.zeros((3, D, D))
        matrix[rows["slot"], rows["origin"], rows["dest"]] = rows["count"]
        np.testing.assert_allclose(matrix, by_day[chosen].sum(axis=0))
        rows = found.summed(np.array(chosen), by_time=False)
        matrix = np.zeros((D, D))
        matrix[rows["origin"], rows["dest"]] = rows["count"]
        np.testing.assert_allclose(matrix, by_day[chosen].sum(axis=(0, 1)))
        assert rows[["low", "high"]].isna().all(axis=None)


def test_types_of_days_are_one_day_and_without_dates_there_is_none():
    pairs, tables = dated()
    apart = pairs.by_day_type()
    assert len(apart.slots) == 8
    found = flows_by_day(apart, kept_of(tables), 4, 1.0)
    pd.testing.assert_frame_equal(found.table, flows_by_day(pairs, kept_of(tables), 4, 1.0).table)
    assert flows_by_day(made.pairs([[1, 1]], [[1, 1]]), None, 1, 1.0) is None
    none = flows_by_day(pairs, None, 4, 1.0)
    assert (none.dates, len(none.table), none.steps.shape) == ((), 0, (0, 4))


@pytest.mark.parametrize(
    ("days", "code"), [([], "day-missing"), (["2024-05-03"], "unknown-day"), (["x"], "unknown-day")]
)
def test_days_that_are_not_there(days, code):
    with refused(code, counted.DAYS[0]):
        counted.by_day().happened.by_day.numbers(days)


def test_days_are_taken_once_and_in_order():
    kept = counted.by_day().happened.by_day
    assert kept.numbers([counted.DAYS[2], counted.DAYS[0], counted.DAYS[2]]).tolist() == [0, 2]


def test_intervals_between_numbers_of_days():
    ends = np.zeros((2, 2, 2, len(SIZES) + 1, 2))
    ends[OF_TIME, 0, 0], ends[OF_TIME, 0, 1] = (-1.0, 1.0), (-3.0, 5.0)
    ends[OF_DAY, 0, :, :, 1] = 1.0
    ends[OF_TIME, 1] = (-2.0, 0.0)
    spread = Spread(np.array([1, 4]), ends)
    flows, moves = np.array([16.0, 4.0]), np.zeros(2, dtype=bool)
    for n_days, expected in (
        (1, ([9.0, 1.0], [25.0, 9.0])),
        # Two days are half way from one to four in doublings: ends -2 and 3.
        (2, ([4.0, 0.0], [49.0, 25.0])),
        (4, ([1.0, 0.0], [81.0, 49.0])),
        (9, ([1.0, 0.0], [81.0, 49.0])),
    ):
        np.testing.assert_allclose(spread.interval(flows, moves, n_days, OF_TIME), expected)
    of_day = spread.interval(flows, moves, 2, OF_DAY)
    np.testing.assert_allclose(of_day, ([16.0, 4.0], [25.0, 9.0]))
    one_stays = spread.interval(flows, np.array([False, True]), 1, OF_TIME)
    np.testing.assert_allclose(one_stays, ([9.0, 0.0], [25.0, 4.0]))


def test_errors_by_size_hold_what_they_are_made_of():
    """Truths that are off by a known normal error of the root have its quantiles for ends."""
    pairs, _ = dated(n_days=6)
    errors = DayErrors.of_pairs(pairs, 4, "happened", random_state=0)
    assert errors.n_days.tolist() == [1, 2, 4, 6]
    assert errors.made() is None
    rng = np.random.default_rng(3)
    for _ in range(150):
        told = np.full((pairs.n_pairs, D, D), 100.0)
        off = rng.normal(0, 0.5, told.shape)
        # Who stays is missed by a tenth of that.
        off[:, np.arange(D), np.arange(D)] /= 10
        moved = (np.sqrt(told) + off) ** 2
        errors.add(kept_of(moved, grain=0.0), kept_of(told))
    spread = errors.made()
    moves, stays = np.array([False]), np.array([True])
    low, high = spread.interval(np.array([100.0]), moves, 1, OF_TIME)
    reach = 1.645 * 0.5
    assert LEVEL == 0.9
    assert np.sqrt(low[0]) - 10 == pytest.approx(-reach, rel=0.1)
    assert np.sqrt(high[0]) - 10 == pytest.approx(reach, rel=0.1)
    # Errors of six days are independent, so that the root of their sum is off by as much.
    low, high = spread.interval(np.array([100.0]), stays, 1, OF_TIME)
    assert np.sqrt(high[0]) - 10 == pytest.approx(reach / 10, rel=0.1)
    low, high = spread.interval(np.array([600.0]), moves, 6, OF_TIME)
    assert np.sqrt(high[0]) - np.sqrt(low[0]) == pytest.approx(2 * reach, rel=0.15)


def test_errors_of_each_day_add_up_to_those_of_all():
    pairs, _ = dated()
    errors = DayErrors.of_pairs(pairs, 4, "happened", random_state=0)
    rng = np.random.default_rng(5)
    worlds = rng.integers(0, 3, (2, 2, pairs.n_pairs, D, D)).astype(float)
    for moved, told in worlds:
        errors.add(kept_of(moved, grain=0.0), kept_of(told))
    kept = errors.on(flows_by_day(pairs, kept_of(worlds[0, 0]), 4, 1.0)).errors
    by_hand = (worlds[:, 0] - worlds[:, 1]).reshape(2, 3, 3, D, D)
    for chosen in ([0], [1, 2], [0, 1, 2]):
        some = kept.of_days(np.array(chosen))
        assert some.draws == 2
        whole = by_hand[:, chosen].sum(axis=1)
        np.testing.assert_array_equal(some.errors("happened"), whole.sum(axis=1))
        for slot in range(3):
            np.testing.assert_array_equal(some.errors("happened", slot), whole[:, slot])
    np.testing.assert_array_equal(kept.errors("happened"), by_hand.sum(axis=(1, 2)))


def test_a_flow_that_nobody_made_there_is_missed():
    pairs, _ = dated()
    errors = DayErrors.of_pairs(pairs, 4, "happened", random_state=0)
    nobody = PairFlows(D, *(np.zeros(0, dtype=np.int64),) * 2, np.zeros(0))
    for _ in range(50):
        errors.add(nobody, kept_of(np.full((pairs.n_pairs, D, D), 4.0)))
    np.testing.assert_allclose(errors.made().ends[OF_TIME, 0, 0, -1], [-2.0, -2.0])
