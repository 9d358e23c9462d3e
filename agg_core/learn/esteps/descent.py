"""Descent to the least value of a smooth function: L-BFGS, a step at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import repeat

import numpy as np
import numpy.typing as npt

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

Steps = deque[tuple[FloatArray, FloatArray, float]]
"""Steps, how the gradient turned along each, and the product of both; its ``maxlen`` says how many
are remembered."""


def lbfgs(function: _Function, x: FloatArray, steps: Steps | None = None) -> Iterator[Point]:
    """The start, then the points that L-BFGS reaches; at the bottom the same one for ever.

    ``steps`` are those that a descent of nearly the same function made before: they tell how it
    bends, so that this one does not find that out again. Steps from here on are added to them.
    """
    point = Point(x, *function(x))
    yield point
    steps = deque(maxlen=MEMORY) if steps is None else steps
    while True:
        reached = _line_search(function, point, _direction(point.gradient, steps))
        if reached is None and steps:
            # Rounding may have spoilt what is remembered: the steepest way decides.
            steps.clear()
            continue
        if reached is None:
            break
        step, turn = reached.x - point.x, reached.gradient - point.gradient
        bend = float(step @ turn)
        if bend > 0:
            steps.append((step, turn, bend))
        point = reached
        yield point
    yield from repeat(point)


def _direction(gradient: FloatArray, steps: Steps) -> FloatArray:
    """Minus the gradient times the inverse Hessian of the remembered steps (two loops)."""
    direction = -gradient
    if not steps:
        return direction
    # In place: with a hundred steps this takes as long as a slope of few cells.
    shares, room = [], np.empty_like(direction)
    for step, turn, bend in reversed(steps):
        share = (step @ direction) / bend
        direction -= np.multiply(turn, share, out=room)
        shares.append(share)
    _, turn, bend = steps[-1]
    direction *= bend / (turn @ turn)
    for (step, turn, bend), share in zip(steps, reversed(shares), strict=True):
        direction += np.multiply(step, share - (turn @ direction) / bend, out=room)
    return direction


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
