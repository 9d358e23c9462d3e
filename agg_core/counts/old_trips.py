"""Trips of an old matrix beside counts: what they tell of where those go who leave a cell.

How many leave is told by the counts alone, since the level of an old matrix is of another time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["OldTrips"]

FloatArray = npt.NDArray[np.float64]

LEAST = 1e-300


@dataclass(frozen=True, eq=False)
class OldTrips:
    """Trips (1, d, d), or (H, d, d) by times of day, from each state to each other.

    Their sum is the number of rows that have some: a weight of so many people is then that of a
    row on average. Stays are none.
    """

    trips: FloatArray

    @classmethod
    def of(cls, trips: FloatArray) -> OldTrips:
        """Trips of any level."""
        own = np.arange(trips.shape[-1])
        trips = np.array(trips, dtype=np.float64)
        trips[:, own, own] = 0.0
        rows = np.count_nonzero(trips.sum(axis=(0, 2)))
        return cls(trips * rows / max(float(trips.sum()), LEAST))

    def shared(self, leaving: FloatArray) -> FloatArray:
        """The trips by time of day, (H, d, d).

        Those without times are shared among times as people are expected to leave, ``leaving``
        (H, d, d). Days of several types, H being a multiple of the times, share those of a time.
        """
        n, (times, d, _) = len(leaving), self.trips.shape
        if n == 1:
            return np.asarray(self.trips.sum(axis=0, keepdims=True))
        by_type = leaving.reshape(-1, n if times == 1 else times, d, d)
        axis = (0, 1) if times == 1 else 0
        total = by_type.sum(axis=axis, keepdims=True)
        share = np.divide(by_type, total, out=np.zeros_like(by_type), where=total > 0)
        return np.asarray((share * self.trips).reshape(leaving.shape))

    def log_likelihood(self, transmats: FloatArray, people: FloatArray) -> tuple[float, FloatArray]:
        """Of dests given origins that are left, and its slope in ``transmats`` (H, d, d).

        ``people`` (H, d) are in each cell at each time. With q(i, j) the sum over the times that a
        trip may be of, of N_h(i) A_h(i, j), it is the sum of T(i, j) log(q(i, j) / sum_k q(i, k)),
        k not being i.
        """
        n, (times, d, _) = len(transmats), self.trips.shape
        own = np.arange(d)
        leaving = people[:, :, None] * transmats
        leaving[:, own, own] = 0.0
        trips = self.trips.sum(axis=0, keepdims=True) if n == 1 else self.trips
        groups = 1 if n == 1 else times
        # Times that a trip may be of: all, or the same time of each type of days.
        spread = leaving.reshape((1, n, d, d) if groups == 1 else (-1, groups, d, d))
        axis = 1 if groups == 1 else 0
        q = spread.sum(axis=axis)
        rows, told = np.maximum(q.sum(axis=-1, keepdims=True), LEAST), trips.sum(-1, keepdims=True)
        some = (trips > 0) & (q > 0)
        value = float((trips[some] * np.log((q / rows)[some])).sum())
        by_move = np.divide(trips, q, out=np.zeros_like(q), where=q > 0) - told / rows
        by_move[:, own, own] = 0.0
        tiled = np.broadcast_to(np.expand_dims(by_move, axis), spread.shape).reshape(n, d, d)
        return value, np.asarray(people[:, :, None] * tiled)
