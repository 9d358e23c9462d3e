"""Averages of the recent past of a noisy iteration."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from agg_core.base.moves import at_origin, entries
from agg_core.learn.mstep import Statistics, distance
from agg_core.model.hmm import HMM

__all__ = ["RecentMean", "Settling"]


TELLING = 5
"""Values that a block needs for its mean to say something."""


@dataclass
class RecentMean:
    """The mean of the last third to two thirds of all values so far, in memory for two.

    Values are summed in blocks; a block is full when it holds a third of all values, and the one
    before the last full block is forgotten. What an iteration did before it settled drops out by
    itself, and the noise of the mean still falls with the number of values.
    """

    n: int = 0
    n_open: int = 0
    n_full: int = 0
    opened: Statistics | None = None
    full: Statistics | None = None

    def add(self, value: Statistics) -> bool:
        """Take in one value; True when it filled a block long enough to be held against others."""
        self.n += 1
        self.n_open += 1
        self.opened = value if self.opened is None else self.opened + value
        if self.n_open < self.n / 3:
            return False
        self.full, self.n_full = self.opened, self.n_open
        self.opened, self.n_open = None, 0
        return self.n_full >= TELLING

    @property
    def last_block(self) -> Statistics:
        """The mean of the last full block."""
        assert self.full is not None, "a block is full after the first value"
        return self.full * (1 / self.n_full)

    @property
    def mean(self) -> Statistics:
        """The mean of the last full block and the values since."""
        assert self.full is not None, "a block is full after the first value"
        total = self.full if self.opened is None else self.full + self.opened
        return total * (1 / (self.n_full + self.n_open))


@dataclass
class Settling:
    """How far the parameters of successive blocks are from where they settle.

    What is left of a settled iteration is noise, and the steps from block to block point one way
    and then the other. While it drifts they go on in one direction. So each step is held against
    the one before as a part q of it, along it: where q is at most 0 nothing drifts and the last
    step is all; where q is below 1 the steps to come add up to step / (1 - q); else they grow, as
    blocks do, and nothing can be said: 2, the largest distance. ``change`` is the larger of the
    last two answers: while fast parts settle they may hide that slow ones drift.
    """

    block: HMM | None = None
    moved: npt.NDArray[np.float64] | None = None
    latest: float = 2.0
    change: float = 2.0

    def report(self, block: HMM, row_people: npt.NDArray[np.float64]) -> None:
        """Take in the parameters of the next block; four are needed to say anything."""
        last, self.block = self.block, block
        if last is None:
            return
        before, self.moved = self.moved, _moves(last, block, row_people)
        if before is None:
            return
        step, square = distance(last, block, row_people), float(before @ before)
        part = float(self.moved @ before) / square if square > 0 else 0.0
        farthest = max(2.0, step)
        before_that, self.latest = self.latest, farthest
        if part < 1:
            self.latest = min(step / (1 - max(part, 0.0)), farthest)
        self.change = max(before_that, self.latest)


def _moves(before: HMM, after: HMM, row_people: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The step between two models as one vector, rows of transmat by the people in them."""
    weight = at_origin(after.transmat, row_people / max(row_people.sum(), 1.0))
    moved = (entries(after.transmat) - entries(before.transmat)) * weight
    parts = [after.startprob - before.startprob, moved]
    if after.emission is not before.emission:
        parts.append((after.emission.values - before.emission.values) / after.n_states)
    return np.concatenate([part.ravel() for part in parts])
