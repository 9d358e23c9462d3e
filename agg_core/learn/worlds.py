"""Simulated worlds: people who may have been, in groups as they might have been formed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from agg_core.base.moves import AnyMoves, counted_like
from agg_core.learn.esteps.sampling import sampled_paths
from agg_core.model.aggregates import Aggregates
from agg_core.model.hmm import HMM

__all__ = ["SimulatedWorlds", "grouped_like"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

FIRST_ROUNDS, ROUNDS = 30, 10
"""Rounds of the sampler before the people of the first world, and of each other one, are drawn."""


class SimulatedWorlds:
    """Groups like given ones, of people who may have been, in one world after the other.

    The people of a world are drawn given all that was observed of the real ones, by the chances of
    ``hmm``: as many are at each place at each step as were, and where counts tell that people do
    not follow a chain, these do not, either. Then they are observed again, with new noise, and come
    into other groups, of the same sizes and observed at the same steps: at random among the people
    of groups of equal ``within`` (K,), for example of one time window. ``paths`` (N, T) are the
    states of the people of the last world, and ``part_of_path`` (N,) is that number of each.

    Raises
    ------
    InputError
        If groups hold parts of people.
    """

    def __init__(
        self,
        hmm: HMM,
        observed: Aggregates,
        within: npt.ArrayLike | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.hmm, self.observed = hmm, observed
        self.rng = np.random.default_rng(random_state)
        sizes = observed.sizes.astype(np.int64)
        parts = np.zeros(len(sizes), dtype=np.int64) if within is None else np.asarray(within)
        self.part = np.repeat(parts, sizes)
        # People are mixed part by part, so their new places are those of groups in that order.
        groups = np.argsort(parts, kind="stable")
        place = np.repeat(groups, sizes[groups])
        self.step = place[:, None] * observed.length + np.arange(observed.length)
        self.likelihoods = hmm.emission.likelihoods(observed)
        self.seed = int(self.rng.integers(2**31))
        self.messages: Any = None
        self.part_of_path = np.sort(self.part)
        self.paths: IntArray = np.zeros((0, observed.length), dtype=np.int64)

    def drawn(self, transmat: AnyMoves | None = None) -> tuple[Aggregates, Sequence[AnyMoves]]:
        """Groups of the next world, and the moves (d, d) of their people themselves at each step.

        Those of whole transitions are one array (T - 1, d, d).

        People are drawn by other transitions (d, d) than those of ``hmm`` where these are given.
        """
        hmm = self.hmm if transmat is None else replace(self.hmm, transmat=transmat)
        rounds = FIRST_ROUNDS if self.messages is None else ROUNDS
        paths, self.messages = sampled_paths(
            hmm, self.observed, self.likelihoods, messages=self.messages, max_sweeps=rounds,
            seed=self.seed,
        )  # fmt: skip
        paths = paths[np.lexsort((self.rng.random(len(paths)), self.part))]
        seen = (np.diff(self.observed.indptr) > 0)[self.step]
        shown = hmm.emission.sample(paths, self.rng)
        again, _ = grouped_like(shown[seen], self.step[seen], self.observed)
        self.paths = paths
        d, steps = hmm.n_states, zip(paths.T[:-1], paths.T[1:], strict=True)
        moves = [counted_like(hmm.transmat, origin, dest) for origin, dest in steps]
        if isinstance(hmm.transmat, np.ndarray):
            return again, cast(Sequence[AnyMoves], np.array(moves).reshape(-1, d, d))
        return again, moves


def grouped_like(
    observations: npt.NDArray[np.generic], step: IntArray, like: Aggregates
) -> tuple[Aggregates, IntArray]:
    """Aggregates of observations (n,) or (n, s), and the table row of each of them.

    ``step`` (n,) is the place of each among the K x T steps of given groups, sequence by sequence.
    """
    n_steps = len(like.indptr) - 1
    if like.points is None:
        symbol = observations.astype(np.int64)
        key, counted = np.unique(step * like.n_symbols + symbol, return_counts=True)
        tokens, shown = key % like.n_symbols, counted.astype(np.float64)
        step, points, n_symbols, row = key // like.n_symbols, None, like.n_symbols, symbol
    else:
        order = np.argsort(step, kind="stable")
        row = np.argsort(order)
        tokens, shown, n_symbols = np.arange(len(step)), np.ones(len(step)), len(step)
        points = observations[order].astype(np.float64)
    per_step = np.bincount(step, minlength=n_steps)
    indptr = np.concatenate([[0], np.cumsum(per_step)]).astype(np.int64)
    return Aggregates(indptr, tokens, shown, like.length, n_symbols, points), row
