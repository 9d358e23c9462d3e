"""How sure flows from counts are: a parametric bootstrap of the error."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from agg_core.counting.choosing import DENSE, DRAWN, learn_flows
from agg_core.counting.pairs import CountPairs
from agg_core.counting.rows import Strength

__all__ = ["LEVEL", "Interval", "RootErrors", "flows_by_slot", "replicates"]

FloatArray = npt.NDArray[np.float64]

LEVEL = 0.9
"""Chance with which an interval is meant to hold what really happened."""

REPLICATE_ITERATIONS = {
    (DRAWN, False): 20, (DRAWN, True): 20, (DENSE, False): 60, (DENSE, True): 20
}  # fmt: skip
"""Most iterations in a simulated world, by learner and whether it learns by time of day."""


SIZES = np.arange(-10, 25)
"""Borders between sizes of flows that are thought to err alike, in doublings of a person."""

COMMON = 10.0
"""Replicates that the errors of flows of like size count for."""


@dataclass(frozen=True)
class Interval:
    """Ends of an interval around each flow, and whether it is resolved: told from nothing."""

    low: FloatArray
    high: FloatArray
    resolved: npt.NDArray[np.bool_]


def flows_by_slot(pairs: CountPairs, transmats: FloatArray) -> FloatArray:
    """People from each state to each at every time of day (H, d, d), a sum over the days."""
    return np.asarray(pairs.people[:, :, None] * transmats)


@dataclass
class RootErrors:
    """Errors of the roots of flows over replicates: their number, sums and sums of squares.

    An error is the root of what happened minus the root of what was learned. Roots make errors of
    small and large flows alike: that of a Poisson count has variance 1/4.
    """

    n: int
    total: FloatArray
    squares: FloatArray

    @classmethod
    def none(cls, shape: tuple[int, ...]) -> RootErrors:
        """Before the first replicate."""
        return cls(0, np.zeros(shape), np.zeros(shape))

    def add(self, happened: FloatArray, learned: FloatArray) -> None:
        """Take in a replicate."""
        error = np.sqrt(happened) - np.sqrt(learned)
        self.n += 1
        self.total += error
        self.squares += error**2

    def at(self, slot: int) -> RootErrors:
        """Those of one time of day."""
        return RootErrors(self.n, self.total[slot], self.squares[slot])

    def interval(self, flows: FloatArray) -> Interval:
        """An interval of `LEVEL` around flows of the same shape.

        Errors of a root are taken to be normal, with a bias and a spread of each flow. Few
        replicates tell the two poorly, so that both are drawn towards those of flows of like size:
        the spread by `COMMON` replicates, the bias by what the biases of such flows differ beyond
        chance (empirical Bayes), and what is not known of it widens the interval.
        """
        mean = self.total / self.n
        spread = np.maximum(self.squares / self.n - mean**2, 0.0) * self.n / max(self.n - 1, 1)
        size = np.digitize(np.log2(np.maximum(flows, 1e-9)), SIZES)
        spread = (self.n * spread + COMMON * _mean_of_like(spread, size)) / (self.n + COMMON)
        common, chance = _mean_of_like(mean, size), spread / self.n
        differ = np.maximum(_mean_of_like((mean - common) ** 2 - chance, size), 0.0)
        known = differ / np.maximum(differ + chance, 1e-300)
        bias = common + known * (mean - common)
        width = stdtrit(self.n + COMMON, (1 + LEVEL) / 2) * np.sqrt(spread + known * chance)
        root = np.sqrt(flows) + bias
        low, high = (np.maximum(end, 0.0) ** 2 for end in (root - width, root + width))
        return Interval(low, high, (high - low) / 2 < flows)


def _mean_of_like(values: FloatArray, size: npt.NDArray[np.intp]) -> FloatArray:
    """For each of values (...) the mean over those of the same size class."""
    number = np.bincount(size.ravel(), minlength=len(SIZES) + 1)
    total = np.bincount(size.ravel(), values.ravel(), minlength=len(SIZES) + 1)
    return np.asarray((total / np.maximum(number, 1))[size])


def replicates(
    pairs: CountPairs,
    shape: FloatArray,
    transmats: FloatArray,
    learner: str,
    strength: Strength,
    *,
    random_state: int | np.random.Generator | None = None,
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Flows (H, d, d) that happened and flows learned, in one simulated world after the other.

    In each the people of every first count move by ``transmats``; from the first and the next
    counts, and nothing else, transitions are learned as the real ones were (a parametric
    bootstrap). So the difference holds what counts do not tell, the learner's own bias and noise,
    and chance in who moves; not that people may follow other laws than these.
    """
    rng = np.random.default_rng(random_state)
    whole = np.rint(pairs.before).astype(np.int64)
    while True:
        happened = np.zeros((len(pairs.slots), pairs.n_states, pairs.n_states))
        after = np.empty_like(pairs.after)
        for p, slot in enumerate(pairs.slot):
            moved = rng.multinomial(whole[p], transmats[slot if len(transmats) > 1 else 0])
            happened[slot] += moved
            after[p] = moved.sum(axis=0)
        again = replace(pairs, before=whole.astype(np.float64), after=after)
        *_, last = learn_flows(
            again, shape, learner, strength, n_iter=REPLICATE_ITERATIONS[learner, strength.by_time],
            random_state=rng,
        )  # fmt: skip
        yield happened, flows_by_slot(again, last.transmats)
