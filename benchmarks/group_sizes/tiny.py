"""E-steps against exact enumeration on tiny random problems."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from agg_core.base.errors import InputError
from agg_core.learn.learners import inference_named
from agg_core.learn.table import learner_named
from agg_core.made.people import random_hmm
from agg_core.model.aggregates import Aggregates
from agg_core.model.emissions import CategoricalEmission
from agg_core.model.hmm import HMM, random_probs
from benchmarks.group_sizes.exact import exact_transitions
from benchmarks.group_sizes.learners import DEFAULT_E_STEPS, Learner, ready
from benchmarks.group_sizes.tables import FloatArray, IntArray, Row, Table, attempted

__all__ = ["TINY", "TinySettings", "measure"]


@dataclass(frozen=True)
class TinySettings:
    """Problems are drawn evenly from these sizes; each has a model and one group of its own.

    ``models`` are by the paper's generator ("paper": most stay, most seen right), or have rows
    uniform on the simplex ("uniform": little can be known). There are ``n_seeds`` of each.
    """

    learners: tuple[str, ...] = DEFAULT_E_STEPS
    n_seeds: int = 50
    models: tuple[str, ...] = ("paper", "uniform")
    group_sizes: tuple[int, ...] = (2, 3, 4, 5)
    lengths: tuple[int, ...] = (2, 3, 4)
    n_states: tuple[int, ...] = (2, 3, 4)
    tol: float = 1e-9
    max_sweeps: int = 5_000


def measure(settings: TinySettings) -> Iterator[Row]:
    """L1 error of the expected moves under the true parameters, in people."""
    learners = ready(settings.learners)
    ranges = (settings.group_sizes, settings.lengths, settings.n_states)
    dealer = np.random.default_rng(0)
    decks = [_dealt(values, settings.n_seeds, dealer) for values in ranges]
    for model, seed in product(settings.models, range(settings.n_seeds)):
        rng = np.random.default_rng([seed, 0])
        size, length, d = (int(deck[seed]) for deck in decks)
        hmm = _drawn(model, d, rng)
        symbols = hmm.sample(size, length, rng)[0]
        counts = np.stack([np.bincount(seen, minlength=d) for seen in symbols.T])
        assert isinstance(hmm.emission, CategoricalEmission)
        group = Aggregates.from_dense(counts[None])
        exact = exact_transitions(hmm, hmm.emission.emissionprob, counts)
        for learner in learners:
            case: Row = {"model": model, "group_size": size, "length": length, "n_states": d}
            yield attempted(
                {**case, "seed": seed, "learner": learner.label},
                _figures, learner, hmm, group, exact, settings,
            )  # fmt: skip


def _dealt(values: tuple[int, ...], n: int, rng: np.random.Generator) -> IntArray:
    """Each value equally often, in random order, (n,)."""
    return rng.permutation(np.resize(values, n))


def _drawn(model: str, d: int, rng: np.random.Generator) -> HMM:
    if model not in ("paper", "uniform"):
        raise InputError(f"Models are 'paper' or 'uniform', not {model!r}.")
    if model == "paper":
        return HMM.categorical(*random_hmm(d, random_state=rng))
    return HMM.categorical(*(random_probs(shape, rng) for shape in ((d,), (d, d), (d, d))))


def _figures(
    learner: Learner, hmm: HMM, group: Aggregates, exact: FloatArray, settings: TinySettings
) -> Row:
    if learner.calibrated or not learner_named(learner.name).e_step:
        raise InputError(f"{learner.label} has no E-step of its own to hold against the exact one.")
    began = time.perf_counter()
    found = inference_named(learner.name)(
        hmm, group, hmm.emission.likelihoods(group), tol=settings.tol,
        max_sweeps=settings.max_sweeps,
    )  # fmt: skip
    error = float(np.abs(found.transitions - exact).sum())
    return {
        "error": error,
        "error_per_move": error / exact.sum(),
        "sweeps": found.sweeps,
        "unconverged": float(found.n_unconverged),
        "seconds": time.perf_counter() - began,
    }


TINY = Table(
    name="tiny",
    title="E-steps against exact enumeration: L1 error of expected moves (people, and per move)",
    settings=TinySettings,
    measure=measure,
    case=("model", "group_size", "length", "n_states", "seed"),
    groupings=(
        ("model",),
        ("model", "group_size"),
        ("model", "length"),
        ("model", "n_states"),
    ),
    figures=("error", "error_per_move", "sweeps", "unconverged", "seconds"),
    ratio_of="error",
)
