"""How far flows may be off: errors of whole worlds, pooled over flows of like size."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from agg_core.base.moves import AnyMoves, at_origin, moves_like, origin_sums

__all__ = [
    "COMMON",
    "LEVEL",
    "SIZES",
    "Interval",
    "RootErrors",
    "SizedErrors",
    "interval_by_size",
    "mean_of_like",
    "pooled_squares",
    "size_class",
    "sum_interval",
    "varied_rows",
]

FloatArray = npt.NDArray[np.float64]

LEVEL = 0.9
"""Chance with which an interval is meant to hold what really happened."""

SIZES = np.arange(-6, 25)
"""Borders between sizes of flows that are thought to err alike, in doublings of a person."""

ENOUGH, MOST = 40, 20_000
"""Errors that tell the ends of an interval, and how many of a size are kept of each world."""

COMMON = 10.0
"""Worlds that the errors of flows of like size count for beside those of a flow itself."""

CHANCE = 0.25
"""Variance of the root of a Poisson count."""


@dataclass(frozen=True)
class Interval:
    """Ends of an interval around each flow, and whether it is resolved: told from nothing."""

    low: FloatArray
    high: FloatArray
    resolved: npt.NDArray[np.bool_]


class SizedErrors:
    """Errors of the roots of flows by the size of what was learned (see `size_class`)."""

    def __init__(self) -> None:
        self.of_size: list[list[FloatArray]] = [[] for _ in range(len(SIZES) + 1)]

    def add(self, errors: FloatArray, sizes: npt.NDArray[np.intp]) -> None:
        """Take in those of a world, of which some are kept where there are very many."""
        for number in np.unique(sizes):
            here = errors[sizes == number]
            self.of_size[number].append(here[:: len(here) // MOST + 1])

    def like(self, size: int) -> FloatArray:
        """Errors of flows of that size, and of the sizes beside it as far as they are few."""
        for reach in range(len(self.of_size)):
            near = self.of_size[max(size - reach, 0) : size + reach + 1]
            if sum(len(part) for parts in near for part in parts) >= ENOUGH:
                break
        found = [part for parts in near for part in parts]
        return np.concatenate(found) if found else np.zeros(1)

    def ends(self, sizes: Iterable[int] = range(len(SIZES) + 1)) -> FloatArray:
        """Ends of intervals around roots of flows of each size, (2, sizes); 0 of other sizes."""
        ends = np.zeros((2, len(SIZES) + 1))
        for number in sizes:
            ends[:, number] = np.quantile(self.like(number), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        return ends


class RootErrors:
    """Errors of the roots of flows over replicates, by the size of what was learned.

    An error is the root of what happened minus the root of what was learned. Roots make errors of
    small and large flows alike: that of a Poisson count has variance 1/4. Flows of which as much
    was *learned* err alike: what they miss on average, as a learner that ties flows together takes
    from the large and gives to the small, is among their errors then.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.n = 0
        self.sized = SizedErrors()
        self.squares = np.zeros(shape)
        self.usual = np.zeros(shape)

    def add(self, happened: FloatArray, learned: FloatArray) -> None:
        """Take in a replicate."""
        error = np.sqrt(happened) - np.sqrt(learned)
        size = size_class(learned)
        self.sized.add(error, size)
        self.n += 1
        self.squares += error**2
        self.usual += mean_of_like(error**2, size)

    def at(self, slot: int) -> RootErrors:
        """Those of one time of day, among all the others of like size."""
        part = RootErrors(())
        part.n, part.sized = self.n, self.sized
        part.squares, part.usual = self.squares[slot], self.usual[slot]
        return part

    def interval(self, flows: FloatArray) -> Interval:
        """An interval of `LEVEL` around flows of the same shape.

        Its ends are quantiles of the errors of flows of like size, farther apart or nearer where
        a flow errs more or less than such flows do; as few replicates tell little of one flow,
        `COMMON` usual errors are counted with its own.
        """
        usual = self.usual / max(self.n, 1)
        own = pooled_squares(self.squares, usual, self.n) / np.maximum(usual, 1e-300)
        apart = np.where(usual > 0, np.sqrt(own), 1.0)
        return interval_by_size(flows, self.sized.ends(np.unique(size_class(flows))), apart)

    def varied(self, flows: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Flows as they may be where these ones were learned, chance in who moves left out."""
        size, roots = size_class(flows), np.sqrt(flows)
        for number in np.unique(size):
            errors = self.sized.like(number)
            beyond = np.sqrt(max(1 - CHANCE / max(float((errors**2).mean()), CHANCE), 0.0))
            here = size == number
            roots[here] += beyond * rng.choice(errors, int(here.sum()))
        return np.asarray(np.maximum(roots, 0.0) ** 2)


def interval_by_size(
    flows: FloatArray, ends: FloatArray, apart: FloatArray | float = 1.0
) -> Interval:
    """The interval around flows whose roots are off by `SizedErrors.ends`, times ``apart``."""
    size, root = size_class(flows), np.sqrt(flows)
    low, high = (np.maximum(root + apart * end[size], 0.0) ** 2 for end in ends)
    return Interval(low, high, (high - low) / 2 < flows)


def varied_rows(
    transmats: FloatArray,
    flows: FloatArray,
    seen: RootErrors,
    rng: np.random.Generator,
    like: AnyMoves | None = None,
) -> FloatArray:
    """Transitions whose flows differ from the given ones as errors that were seen say they may.

    Flows (1, d, d) are varied alike at all times of day, (H, d, d) at each on its own. Of sparse
    tables they are the entries (H, n) of those that are ``like`` one.
    """
    varied = seen.varied(flows, rng)
    rows = transmats * np.divide(varied, flows, out=np.ones_like(flows), where=flows > 0)
    if like is None or isinstance(like, np.ndarray):
        total = rows.sum(axis=-1, keepdims=True)
    else:
        total = np.stack([at_origin(like, origin_sums(moves_like(like, row))) for row in rows])
    return np.asarray(np.where(total > 0, rows / np.where(total > 0, total, 1.0), transmats))


def size_class(flows: FloatArray) -> npt.NDArray[np.intp]:
    """Number of the size that flows (...) are of, by `SIZES`."""
    return np.digitize(np.log2(np.maximum(flows, 1e-9)), SIZES)


def mean_of_like(values: FloatArray, size: npt.NDArray[np.intp]) -> FloatArray:
    """For each of values (...) the mean over those of the same size class."""
    number = np.bincount(size.ravel(), minlength=len(SIZES) + 1)
    total = np.bincount(size.ravel(), values.ravel(), minlength=len(SIZES) + 1)
    return np.asarray((total / np.maximum(number, 1))[size])


def pooled_squares(squares: FloatArray, usual: FloatArray, n: int) -> FloatArray:
    """Squares of errors of one world (...), of ``n`` worlds of one's own and of those of like size.

    ``squares`` are sums over the worlds, ``usual`` squares of one world in the mean over what is of
    like size: as few worlds tell little of one thing, `COMMON` usual errors are counted with its
    own. A spread by them has n + COMMON - 1 degrees of freedom.
    """
    return np.asarray((squares + COMMON * usual) / (n + COMMON))


def sum_interval(
    sums: npt.ArrayLike, errors: npt.ArrayLike, *, positive: bool = True, level: float = LEVEL
) -> tuple[FloatArray, FloatArray]:
    """An interval of ``level`` around sums (...) of flows, whose errors in B worlds are (..., B).

    That of a next world: the mean of the errors, which is what the learner misses on average, and
    t s sqrt(1 + 1/B) on either side of it, s being their standard deviation and t the quantile of
    Student's distribution of B - 1 degrees of freedom. The ends are 0 at the least where weights
    of the sum are ``positive`` (not negative).
    """
    centre, missed = np.asarray(sums, dtype=np.float64), np.asarray(errors, dtype=np.float64)
    n = missed.shape[-1]
    reach = stdtrit(n - 1, (1 + level) / 2) * np.sqrt(1 + 1 / n)
    middle, half = centre + missed.mean(axis=-1), reach * missed.std(axis=-1, ddof=1)
    low, high = middle - half, middle + half
    if positive:
        low, high = np.maximum(low, 0.0), np.maximum(high, 0.0)
    return low, high
