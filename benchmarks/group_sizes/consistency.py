"""Does the movement that is learned come to the truth as groups become many?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from agg_core.base.errors import InputError
from agg_core.model.aggregates import Aggregates
from agg_core.model.hmm import HMM
from benchmarks.group_sizes.learners import DEFAULT_LEARNERS, Learner, ready
from benchmarks.group_sizes.tables import FloatArray, Row, Table, attempted, simulated_counts

__all__ = ["CONSISTENCY", "ConsistencySettings", "measure", "movement", "staying"]


@dataclass(frozen=True)
class ConsistencySettings:
    """``truths``: those who leave go anywhere alike ("even"), or as a Dirichlet draw ("random")."""

    learners: tuple[str, ...] = DEFAULT_LEARNERS
    n_seeds: int = 3
    group_sizes: tuple[int, ...] = (5, 20, 100, 1_000)
    truths: tuple[str, ...] = ("even", "random")
    n_states: int = 5
    stay: float = 0.8
    starts: tuple[float, ...] = (0.6, 0.95)
    length: int = 2
    n_groups: int = 2_000
    iterations: int = 150


def staying(d: int, stay: float, rng: np.random.Generator | None = None) -> FloatArray:
    """Transitions (d, d) that stay with one chance; others alike, or as ``rng`` draws them."""
    split = np.ones((d, d - 1)) / (d - 1) if rng is None else rng.dirichlet(np.ones(d - 1), size=d)
    transmat = np.full((d, d), stay)
    transmat[~np.eye(d, dtype=bool)] = (1 - stay) * split.ravel()
    return transmat


def movement(startprob: FloatArray, transmat: FloatArray) -> float:
    """Chance that a person moves in the first step."""
    return float(startprob @ (1 - np.diag(transmat)))


def measure(settings: ConsistencySettings) -> Iterator[Row]:
    """Movement under what was learned over the true one, and L1 error of rows, pi the true one."""
    unknown = set(settings.truths) - {"even", "random"}
    if unknown:
        raise InputError(f"A truth is 'even' or 'random', not {sorted(unknown)}.")
    learners = ready(settings.learners)
    d = settings.n_states
    pi = np.full(d, 1 / d)
    for truth, seed in product(settings.truths, range(settings.n_seeds)):
        rng = np.random.default_rng([seed, 1])
        true = staying(d, settings.stay, rng if truth == "random" else None)
        for size in settings.group_sizes:
            counts, _ = simulated_counts(
                pi, true, np.full(settings.n_groups, size), settings.length,
                np.random.default_rng([seed, size, 2]),
            )  # fmt: skip
            groups = Aggregates.from_dense(counts)
            for stay, learner in product(settings.starts, learners):
                start = HMM.categorical(pi, staying(d, stay), np.eye(d))
                case: Row = {"truth": truth, "group_size": size, "start": stay, "seed": seed}
                yield attempted(
                    {**case, "learner": learner.label},
                    _figures, learner, groups, start, true, settings.iterations,
                )  # fmt: skip


def _figures(
    learner: Learner, groups: Aggregates, start: HMM, true: FloatArray, iterations: int
) -> Row:
    fitted = learner.fit(groups, start, iterations)
    pi, found = start.startprob, fitted.hmm.transmat
    return {
        "movement_ratio": movement(pi, found) / movement(pi, true),
        "row_error": float(pi @ np.abs(found - true).sum(axis=1)),
        **fitted.course(),
    }


CONSISTENCY = Table(
    name="consistency",
    title="Consistency without noise: movement learned over the true one, L1 error of rows",
    settings=ConsistencySettings,
    measure=measure,
    case=("truth", "group_size", "start", "seed"),
    groupings=(("truth", "group_size", "start"),),
    figures=("movement_ratio", "row_error", "iterations", "converged", "seconds"),
)
