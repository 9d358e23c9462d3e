"""Rows to a matrix, against a slow and plain way of doing it."""

from collections import defaultdict

import numpy as np
import pytest

from agg_core.io.counts.dense import CountRows, dense, latest_in_step
from agg_core.tables.counts import MISSING, PUBLISHED, SUPPRESSED

EPOCH = np.datetime64("2024-01-01T00:00", "us")
MINUTE = np.timedelta64(1, "m")


def random_rows(seed, n=60, moments=4, cells=3, parts=2):
    random = np.random.default_rng(seed)
    status = random.choice([PUBLISHED, SUPPRESSED, MISSING], n, p=[0.7, 0.15, 0.15])
    status = status.astype(np.uint8)
    values = np.where(status == PUBLISHED, random.integers(0, 4, n).astype(float), np.nan)
    return CountRows(
        EPOCH + random.integers(0, moments, n) * MINUTE,
        random.integers(0, cells, n),
        random.integers(0, parts, n),
        values,
        status,
        np.arange(n),
    )


def chosen(group, rule):
    """Status and count of twins in their order: what is known best counts, then the rule."""
    best = min(state for state, _ in group)
    values = [value for state, value in group if state == best]
    if best != PUBLISHED:
        return best, np.nan
    return best, {"last": values[-1], "first": values[0], "largest": max(values),
                  "sum": sum(values)}[rule]  # fmt: skip


@pytest.mark.parametrize("rule", ["last", "first", "largest", "sum"])
@pytest.mark.parametrize("seed", range(6))
def test_twins_and_parts_as_by_hand(rule, seed):
    rows = random_rows(seed)
    groups = defaultdict(list)
    for i in range(len(rows.time)):
        key = rows.time[i], int(rows.cell[i]), int(rows.detail[i])
        groups[key].append((int(rows.status[i]), float(rows.counts[i])))
    found = dense(rows, 3, rule)
    assert found.times.tolist() == sorted({key[0] for key in groups})
    for t, time in enumerate(found.times):
        for cell in range(3):
            parts = [chosen(group, rule) for key, group in groups.items()
                     if key[:2] == (time, cell)]  # fmt: skip
            assert found.present[t, cell] == bool(parts)
            state = min((state for state, _ in parts), default=MISSING)
            assert found.status[t, cell] == state
            total = sum(value for state, value in parts if state == PUBLISHED)
            np.testing.assert_equal(found.counts[t, cell], total if state == PUBLISHED else np.nan)
    n_twins = len(rows.time) - len(groups)
    assert len(found.repeated) + len(found.conflicting) == (0 if rule == "sum" else n_twins)


@pytest.mark.parametrize("seed", range(6))
def test_the_last_of_a_step_as_by_hand(seed):
    rows = random_rows(seed, moments=9)
    steps = EPOCH + (rows.time - EPOCH) // (3 * MINUTE) * (3 * MINUTE)
    last = defaultdict(lambda: EPOCH - MINUTE)
    keys = list(zip(steps.tolist(), rows.cell.tolist(), rows.detail.tolist(), strict=True))
    for key, time in zip(keys, rows.time, strict=True):
        last[key] = max(last[key], time)
    expected = [time == last[key] for key, time in zip(keys, rows.time, strict=True)]
    assert latest_in_step(rows, steps).tolist() == expected
    assert 0 < sum(expected) < len(expected)


def test_parts_that_lack_at_a_moment():
    rows = CountRows(
        EPOCH + np.array([0, 0, 1, 1]) * MINUTE, np.array([0, 0, 0, 1]), np.array([0, 1, 0, 0]),
        np.array([10.0, 20.0, 11.0, 5.0]), np.zeros(4, dtype=np.uint8), np.arange(4),
    )  # fmt: skip
    found = dense(rows, 2, "auto")
    assert found.lacking.tolist() == [[0, 0], [1, 0]]
    assert found.counts[0, 0] == 30


@pytest.mark.parametrize("status", [PUBLISHED, SUPPRESSED, MISSING])
def test_parts_are_counted_however_many(status):
    """A row per person is a part per person: 70,000 in one cell now, one fewer a minute later."""
    n = 70_000
    detail = np.concatenate([np.arange(n), np.arange(n - 1)])
    later = np.repeat([0, 1], [n, n - 1])
    found = dense(
        CountRows(
            EPOCH + later * MINUTE, np.zeros_like(detail), detail,
            np.full(len(detail), 1.0 if status == PUBLISHED else np.nan),
            np.full(len(detail), status, dtype=np.uint8), np.arange(len(detail)),
        ),
        1, "last",
    )  # fmt: skip
    assert found.n_parts.tolist() == [[n], [n - 1]]
    assert found.lacking.tolist() == [[0], [1]]
    of = {SUPPRESSED: found.hidden, MISSING: found.unknown}
    for kind, number in of.items():
        assert number.tolist() == ([[n], [n - 1]] if kind == status else [[0], [0]])
    if status == PUBLISHED:
        assert found.counts.tolist() == [[n], [n - 1]]
