"""Suppressed counts: what is to be expected of a number that is only known to be small."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from agg_core.tables.counts import expected_of_hidden

__all__ = ["fill", "share_out", "shared_sums", "sums_by", "whole_pairs"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

ROUNDS = 30
NEIGHBOUR = 0.5
"""Weight of the time of day before and after in what is expected of a cell."""

BISECTIONS = 60
LEAST = 1e-290


def fill(
    counts: FloatArray,
    hidden: BoolArray,
    known: BoolArray,
    slot: IntArray,
    n_slots: int,
    below: float,
) -> FloatArray:
    """Counts (n, c) in which suppressed ones are what a censored Poisson model expects of them.

    A cell has a rate for each time of day, the mean of its counts then and, with half the weight,
    just before and after; a suppressed count is the mean of a Poisson count of that rate that is
    known to be below ``below`` (EM for censored counts). So a cell that is near the limit is
    filled with nearly the limit, and one that never reaches it with what such cells hold at
    first sight (`agg_core.tables.counts.expected_of_hidden`).
    """
    if not hidden.any():
        return counts
    from scipy.special import pdtr  # noqa: PLC0415

    seen, n_hidden = counts[known][~hidden[known]], int(hidden[known].sum())
    values = np.where(hidden, expected_of_hidden(seen, n_hidden, below), counts)
    whole = np.ceil(below) - 1
    for _ in range(ROUNDS):
        rate = np.maximum(_rates(values, known, slot, n_slots)[slot], 1e-9)
        # The mean of a Poisson count that is at most m is the rate times P(m - 1) / P(m), which
        # is m where the rate is so large that both are too small for a number.
        below_most, most = pdtr(np.maximum(whole - 1, 0), rate), pdtr(whole, rate)
        share = np.where(most > LEAST, below_most / np.maximum(most, LEAST), 1.0)
        expected = np.minimum(rate * share, whole) if whole > 0 else np.zeros_like(rate)
        values = np.where(hidden, expected, counts)
    return np.asarray(values)


def sums_by(group: IntArray, n_groups: int, values: FloatArray) -> FloatArray:
    """Sums (n_groups, ...) of rows of ``values`` by their group."""
    total = np.zeros((n_groups, *values.shape[1:]))
    np.add.at(total, group, values)
    return total


def _rates(values: FloatArray, known: BoolArray, slot: IntArray, n_slots: int) -> FloatArray:
    """Mean per time of day and cell (H, c), smoothed over the times beside."""
    total = sums_by(slot[known], n_slots, values[known])
    number = np.bincount(slot[known], minlength=n_slots).astype(np.float64)[:, None]
    sums, numbers = total.copy(), number.copy()
    for shift in (-1, 1):
        # The first and the last time of day have one neighbour: a day may be cut anywhere.
        sums += NEIGHBOUR * _shifted(total, shift)
        numbers += NEIGHBOUR * _shifted(number, shift)
    return np.asarray(sums / np.maximum(numbers, 1e-12))


def _shifted(values: FloatArray, shift: int) -> FloatArray:
    moved = np.zeros_like(values)
    if shift > 0:
        moved[shift:] = values[:-shift]
    else:
        moved[:shift] = values[-shift:]
    return moved


def shared_sums(
    filled: FloatArray, hidden: BoolArray, known: BoolArray, day: IntArray, below: float
) -> tuple[FloatArray, FloatArray]:
    """The same people at all moments of a day: fills scaled to that, or people outside, (n,).

    Where the published counts and the bounds of the suppressed ones allow one total for a day,
    the fills are scaled to it. If on any day they do not, people come and go, and those who are
    missing from the fullest moment of a day are outside.
    """
    most = max(np.ceil(below) - 1, 0.0)
    whole = bool((filled[~hidden] == np.floor(filled[~hidden])).all())
    published = np.where(hidden, 0.0, filled).sum(axis=1)
    reach = published + most * hidden.sum(axis=1)
    totals = filled.sum(axis=1)
    days = [np.flatnonzero((day == number) & known) for number in np.unique(day[known])]
    tolerance = 1e-6
    closed = all(
        published[rows].max() <= reach[rows].min() * (1 + tolerance) + tolerance for rows in days
    )
    people, outside = totals.copy(), np.zeros(len(filled))
    for rows in days:
        if closed:
            low, high = published[rows].max(), reach[rows].min()
            mean = totals[rows].mean()
            people[rows] = np.clip(np.rint(mean) if whole else mean, low, max(low, high))
        else:
            fullest = totals[rows].max()
            people[rows] = np.rint(fullest) if whole else fullest
    for row in np.flatnonzero(known & hidden.any(axis=1)):
        wanted = people[row] if closed else totals[row]
        wanted = np.rint(wanted) if whole else wanted
        open_cells = hidden[row]
        filled[row, open_cells] = _scaled(
            filled[row, open_cells], wanted - published[row], most, whole=whole
        )
    if not closed:
        outside[known] = np.maximum(people[known] - filled[known].sum(axis=1), 0.0)
    return filled, outside


def _scaled(values: FloatArray, total: float, most: float, *, whole: bool) -> FloatArray:
    """Values in proportion, none above ``most``, that add up to ``total`` or as near as can be."""
    total = float(np.clip(total, 0.0, most * len(values)))
    values = np.maximum(values, 1e-9)
    low, high = 0.0, 2 * most / values.min() if most > 0 else 1.0
    for _ in range(BISECTIONS):
        factor = (low + high) / 2
        if np.minimum(values * factor, most).sum() < total:
            low = factor
        else:
            high = factor
    scaled = np.minimum(values * high, most)
    return share_out(scaled, round(total)) if whole else scaled


def share_out(values: FloatArray, total: float) -> FloatArray:
    """Whole numbers next to ``values`` that add up to ``total``: the largest remainders go up."""
    lower = np.floor(values)
    left = round(float(total - lower.sum()))
    if left == 0:
        return np.asarray(lower)
    order = np.argsort(lower - values, kind="stable")
    if left < 0:
        order = order[::-1]
        order = order[lower[order] > 0]
    steps = np.zeros_like(lower)
    np.add.at(steps, np.resize(order, abs(left)) if len(order) else [], np.sign(left))
    return np.asarray(lower + steps)


def whole_pairs(before: FloatArray, after: FloatArray) -> FloatArray:
    """Counts of pairs (P, 2, d) as whole people, as many after as before."""
    both = np.stack([before, after], axis=1)
    if (both == np.floor(both)).all():
        return both
    totals = np.rint(both[:, 0].sum(axis=1))
    return np.array(
        [[share_out(row, total) for row in rows] for rows, total in zip(both, totals, strict=True)]
    )
