"""The paper's generator with its emission known: what is lost on other people's sequences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from agg_core.learn.learners import log_likelihood
from agg_core.made.people import random_hmm
from agg_core.model.aggregates import Aggregates, aggregate
from agg_core.model.hmm import HMM, random_probs
from benchmarks.group_sizes.learners import DEFAULT_LEARNERS, Learner, ready
from benchmarks.group_sizes.tables import Row, Table, attempted

__all__ = ["PAPER", "PaperSettings", "measure"]


@dataclass(frozen=True)
class PaperSettings:
    """Each seed draws a model, people to learn from, as many to test on, and a random start."""

    learners: tuple[str, ...] = DEFAULT_LEARNERS
    n_seeds: int = 10
    group_sizes: tuple[int, ...] = (1, 10, 50, 100)
    n_states: tuple[int, ...] = (3, 5, 10)
    n_individuals: int = 5_000
    length: int = 5
    iterations: int = 300


def measure(settings: PaperSettings) -> Iterator[Row]:
    """ΔNLL in nats per person of the test set; groups and start are the same for all learners."""
    learners = ready(settings.learners)
    n, length = settings.n_individuals, settings.length
    for d, seed in product(settings.n_states, range(settings.n_seeds)):
        truth = HMM.categorical(*random_hmm(d, random_state=np.random.default_rng([seed, d, 1])))
        people = np.random.default_rng([seed, d, 2])
        symbols = truth.sample(n, length, people)[0]
        test = aggregate(truth.sample(n, length, people)[0], 1, d)
        chain = np.random.default_rng([seed, d, 3])
        start = HMM(random_probs((d,), chain), random_probs((d, d), chain), truth.emission)
        for size in settings.group_sizes:
            groups = aggregate(symbols, size, d, np.random.default_rng([seed, d, size, 4]))
            for learner in learners:
                case: Row = {"n_states": d, "group_size": size, "seed": seed}
                yield attempted(
                    {**case, "learner": learner.label},
                    _figures, learner, groups, start, truth, test, settings.iterations,
                )  # fmt: skip


def _figures(
    learner: Learner, groups: Aggregates, start: HMM, truth: HMM, test: Aggregates, iterations: int
) -> Row:
    fitted = learner.fit(groups, start, iterations)
    lost = log_likelihood(truth, test) - log_likelihood(fitted.hmm, test)
    return {"delta_nll": lost / test.n_sequences, **fitted.course()}


PAPER = Table(
    name="paper",
    title="The paper's generator, emission known: ΔNLL in nats per person of a test set",
    settings=PaperSettings,
    measure=measure,
    case=("n_states", "group_size", "seed"),
    groupings=(("n_states", "group_size"),),
    figures=("delta_nll", "iterations", "converged", "seconds"),
    ratio_of="delta_nll",
)
