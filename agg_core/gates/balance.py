"""Trips of a day that meet both its entries and its exits, by a pattern of who goes where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["PEOPLE", "Trips", "balanced"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

PEOPLE = 0.5
"""People that the entries, or the exits, of a station in a step are thought to be off by: factors
have a gamma distribution of mean 1 before anything is counted (Poisson counts, so that the factor
is (counted + PEOPLE) / (expected + PEOPLE)). Without it exits that nobody can have made, as nobody
entered in time, would send a factor to infinity."""

SWEEPS, TOLERANCE = 200, 1e-5
SWEEPS_OF_STEPS = 30
BY_LAG = 3
"""Dimensions of a pattern that is the same all day."""


@dataclass(frozen=True)
class Trips:
    """People by step of entry h, lag l and pair i, j, of one day.

    They are ``enter[h, i] * chances[p, l, i, j] * leave[h + l, j]``, p being the ``period`` (H,) of
    a step; ``enter`` and ``leave`` are (H, S). Steps after the last one count as the last.
    """

    enter: FloatArray
    leave: FloatArray
    chances: FloatArray
    period: IntArray

    def by_entry(self) -> FloatArray:
        """People (H, S, S) who entered in each step."""
        total = np.zeros((len(self.enter), *self.chances.shape[2:]))
        leaving = _later(self.leave, self.chances.shape[1])
        for rows, chances in _periods(self.chances, self.period):
            for chance, after in zip(chances, leaving, strict=True):
                total[rows] += chance[None] * after[rows][:, None, :]
        return np.asarray(self.enter[:, :, None] * total)

    def by_exit(self) -> FloatArray:
        """People (H, S, S) who left in each step."""
        n_steps = len(self.enter)
        total = np.zeros((n_steps, *self.chances.shape[2:]))
        for rows, chances in _periods(self.chances, self.period):
            for lag, chance in enumerate(chances):
                moved = self.enter[rows][:, :, None] * chance[None]
                np.add.at(total, np.minimum(rows + lag, n_steps - 1), moved)
        return np.asarray(total * self.leave[:, None, :])

    def entries(self) -> FloatArray:
        """Entries (H, S) that these trips make."""
        return np.asarray(self.enter * _reached(self.leave, self.chances, self.period))

    def exits(self) -> FloatArray:
        """Exits (H, S) that these trips make."""
        return np.asarray(self.leave * _sent(self.enter, self.chances, self.period))


def balanced(
    chances: FloatArray,
    entries: FloatArray,
    exits: FloatArray,
    *,
    period: IntArray | None = None,
    start: FloatArray | None = None,
    people: float = PEOPLE,
    sweeps: int = SWEEPS,
    tolerance: float = TOLERANCE,
) -> Trips:
    """Trips of one day by a pattern ``chances``, scaled to entries and exits (H, S).

    The pattern is (L, S, S) by lag and pair, or (P, L, S, S) with the ``period`` (H,) of each step.
    Iterative proportional fitting over steps and lags (Deming & Stephan 1940), of the trips that
    are nearest to the pattern among those that meet the counts. Factors of whole steps are fitted
    in between, without which people would be passed on from step to step slowly. ``start`` is
    ``leave`` (H, S) of trips that were found for a pattern near this one. With ``people`` = 0 the
    counts are met exactly, which needs counts that trips can make.
    """
    if chances.ndim == BY_LAG:
        chances, period = chances[None], None
    if period is None:
        period = np.zeros(len(entries), dtype=np.int64)
    of_step, by_step = entries.sum(axis=1), exits.sum(axis=1)
    leave = exits / max(exits.mean(), 1e-300) if start is None else start.copy()
    enter = _ratio(entries, _reached(leave, chances, period))
    base_in, base_out = enter, leave
    at_in, at_out = np.ones_like(enter), np.ones_like(leave)
    of_in, of_out = np.ones(len(enter)), np.ones(len(leave))
    for _ in range(sweeps):
        before = leave
        flows = _of_steps(base_in * at_in, base_out * at_out, chances, period)
        of_in, of_out = _steps(flows, of_step, by_step, people, of_in)
        step_in, step_out = base_in * of_in[:, None], base_out * of_out[:, None]
        sent = _sent(step_in * at_in, chances, period)
        at_out = _factor(exits, step_out * sent, people)
        leave = step_out * at_out
        at_in = _factor(entries, step_in * _reached(leave, chances, period), people)
        enter = step_in * at_in
        if (np.abs(leave - before) * sent).sum() <= tolerance * max(by_step.sum(), 1e-300):
            break
    return Trips(enter, leave, chances, period)


def _factor(counted: FloatArray, expected: FloatArray, people: float) -> FloatArray:
    return _ratio(counted + people, expected + people)


def _ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)


def _periods(chances: FloatArray, period: IntArray) -> Iterator[tuple[IntArray, FloatArray]]:
    """Steps of each period that has some, and its chances (L, S, S)."""
    for number, each in enumerate(chances):
        rows = np.flatnonzero(period == number)
        if len(rows):
            yield rows, each


def _later(values: FloatArray, n_lags: int) -> FloatArray:
    """Values (H, S) of each step and the ones after it, (L, H, S)."""
    n_steps = len(values)
    at = np.minimum(np.arange(n_steps) + np.arange(n_lags)[:, None], n_steps - 1)
    return np.asarray(values[at])


def _reached(leave: FloatArray, chances: FloatArray, period: IntArray) -> FloatArray:
    """What each who enters meets (H, S): chances times the factors of where they leave."""
    found, leaving = np.zeros_like(leave), _later(leave, chances.shape[1])
    for rows, each in _periods(chances, period):
        found[rows] = np.matmul(leaving[:, rows], each.swapaxes(1, 2)).sum(axis=0)
    return found


def _sent(enter: FloatArray, chances: FloatArray, period: IntArray) -> FloatArray:
    """The same of each who leaves, (H, S)."""
    total, last = np.zeros_like(enter), len(enter) - 1
    for rows, each in _periods(chances, period):
        for lag, part in enumerate(np.matmul(enter[rows][None], each)):
            np.add.at(total, np.minimum(rows + lag, last), part)
    return total


def _of_steps(
    enter: FloatArray, leave: FloatArray, chances: FloatArray, period: IntArray
) -> FloatArray:
    """People (L, H) by lag and step of entry, of all stations together."""
    leaving = _later(leave, chances.shape[1])
    found = np.empty(leaving.shape[:2])
    for rows, each in _periods(chances, period):
        met = np.matmul(leaving[:, rows], each.swapaxes(1, 2))
        found[:, rows] = (met * enter[rows]).sum(axis=2)
    return found


def _steps(
    flows: FloatArray, entries: FloatArray, exits: FloatArray, people: float, of_in: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Factors (H,) of whole steps by which flows (L, H) by lag and step of entry meet both.

    ``of_in`` (H,) are those of entries to begin with.
    """
    n_lags, n_steps = flows.shape
    at = np.minimum(np.arange(n_steps) + np.arange(n_lags)[:, None], n_steps - 1)
    of_out = np.ones(n_steps)
    for _ in range(SWEEPS_OF_STEPS):
        come = np.bincount(at.ravel(), (flows * of_in).ravel(), n_steps).astype(np.float64)
        of_out = _factor(exits, come, people)
        go = (flows * of_out[at]).sum(axis=0)
        of_in = _factor(entries, go, people)
    return of_in, of_out
