"""Descent to the least value of a smooth function: L-BFGS, a step at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import repeat

import numpy as np
import numpy.typing as npt

from agg_core.learn.esteps._descent_kernels import add_curvature

__all__ = ["Point", "Steps", "lbfgs"]

FloatArray = npt.NDArray[np.float64]

MEMORY = 20
"""Steps that L-BFGS remembers."""

FARTHEST = 30.0
"""Largest change of a scaled logit that the first trial of a step may make."""

SUFFICIENT_FALL = 1e-4
ENOUGH_CURVATURE = 0.9
MOST_TRIALS = 30
"""The weak Wolfe conditions, and how many trials a search along a line may take."""

ROUNDING = 1e-13
"""A promised fall below this part of the objective is noise."""


@dataclass(frozen=True)
class Point:
    """A place of a descent, the value there and the gradient."""

    x: FloatArray
    value: float
    gradient: FloatArray


_Function = Callable[[FloatArray], tuple[float, FloatArray]]


class Steps:
    """The last ``most`` steps, how the gradient turned along each, and the product of both."""

    def __init__(self, most: int = MEMORY) -> None:
        self.most = most
        self.clear()

    def __len__(self) -> int:
        return self._n

    @property
    def kept(self) -> tuple[int, list[tuple[FloatArray, FloatArray, float]]]:
        """What a checkpoint keeps: how many are remembered at most, and all, the oldest first."""
        at = [(self._newest - back) % self.most for back in reversed(range(self._n))]
        return self.most, [
            (self._steps[i], self._turns[i], float(self._bends[i])) for i in at
        ]  # fmt: skip

    @classmethod
    def of(cls, kept: tuple[int, list[tuple[FloatArray, FloatArray, float]]]) -> Steps:
        """Those that `kept` told, by which a descent goes on as if it had not stopped."""
        most, steps = kept
        found = cls(most)
        for step in steps:
            found.append(*step)
        return found

    def clear(self) -> None:
        """Forget all of them."""
        self._n, self._newest = 0, -1

    def append(self, step: FloatArray, turn: FloatArray, bend: float) -> None:
        """Remember a step more, and forget the oldest where there is no room."""
        if self._n == 0:
            shape = (self.most, len(step))
            self._steps, self._turns, self._bends = (
                np.empty(shape),
                np.empty(shape),
                np.ones(self.most),
            )
        self._newest = (self._newest + 1) % self.most
        self._n = min(self._n + 1, self.most)
        at = self._newest
        self._steps[at], self._turns[at], self._bends[at] = step, turn, bend

    def direction(self, gradient: FloatArray) -> FloatArray:
        """Minus the gradient times the inverse Hessian that the steps tell of."""
        found = -gradient
        if self._n:
            add_curvature(found, self._steps, self._turns, self._bends, self._newest, self._n)
        return found


def lbfgs(
    function: _Function, x: FloatArray, steps: Steps | None = None, *, reached: Point | None = None
) -> Iterator[Point]:
    """The start, then the points that L-BFGS reaches; at the bottom the same one for ever.

    ``steps`` are those that a descent of nearly the same function made before: they tell how it
    bends, so that this one does not find that out again. Steps from here on are added to them. With
    ``reached`` and its steps a descent that was stopped goes on: that point takes the place of the
    start, which is not asked for again.
    """
    point = Point(x, *function(x)) if reached is None else reached
    yield point
    steps = Steps() if steps is None else steps
    while True:
        found = _line_search(function, point, steps.direction(point.gradient))
        if found is None and len(steps):
            # Rounding may have spoilt what is remembered: the steepest way decides.
            steps.clear()
            continue
        if found is None:
            break
        step, turn = found.x - point.x, found.gradient - point.gradient
        bend = float(step @ turn)
        if bend > 0:
            steps.append(step, turn, bend)
        point = found
        yield point
    yield from repeat(point)


def _line_search(function: _Function, point: Point, direction: FloatArray) -> Point | None:
    """A point that meets the weak Wolfe conditions, by bisection; None if it cannot fall."""
    slope = float(point.gradient @ direction)
    largest = float(np.abs(direction).max(initial=0.0))
    low, high, length = 0.0, np.inf, min(1.0, FARTHEST / largest) if largest else 0.0
    if -slope * length <= ROUNDING * abs(point.value):
        return None
    best = None
    for _ in range(MOST_TRIALS):
        x = point.x + length * direction
        trial = Point(x, *function(x))
        if not trial.value <= point.value + SUFFICIENT_FALL * length * slope:
            high = length
        else:
            best, low = trial, length
            if trial.gradient @ direction >= ENOUGH_CURVATURE * slope:
                break
        length = 2 * low if high == np.inf else (low + high) / 2
    return best
