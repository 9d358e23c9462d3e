"""`AggregateHMM`: the learners behind one face, with hmmlearn's names."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from agg_core.aggregates import Aggregates, aggregate
from agg_core.emissions import CategoricalEmission
from agg_core.errors import InputError, UnreachableError
from agg_core.learning import PARTS, ConvergenceMonitor, inference_named, learn
from agg_core.parameters import HMM, check_probs, random_probs

__all__ = ["AggregateHMM", "ModelCounts"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

EXACT_TOL = 1e-10
EXACT_SWEEPS = 3_000


@dataclass(frozen=True)
class ModelCounts:
    """Expected counts under a fitted model, summed over sequences.

    ``start`` (d,) people per state at the first step, ``transitions`` (d, d) moves summed over the
    T - 1 steps, ``log_likelihood`` minus the free energy: exact at M = 1, the large-population
    approximation of the paper above.
    """

    start: FloatArray
    transitions: FloatArray
    log_likelihood: float


class AggregateHMM:
    """A hidden Markov model learned from aggregate observations.

    Parameters
    ----------
    n_states : int
        Hidden states d.
    emission : "categorical"
        Kind of observations: symbols 0..S-1.
    inference : "auto" or "cfb"
        The E-step. "auto" takes the best there is.
    n_iter, tol : int, float
        Most iterations, and the change of the parameters below which the fit has converged.
    fixed : collection of "startprob", "transmat", "emission"
        Parts that are known and not updated; each needs a value in ``init``.
    init : mapping, optional
        Starting values: "startprob" (d,), "transmat" (d, d), "emissionprob" (d, S). What is left
        out is drawn at random.
    n_init : int
        Random starts; the fit of lowest free energy is kept.
    random_state : int, Generator or None
        For the random starts.

    Attributes
    ----------
    startprob_, transmat_, emissionprob_ : the learned parameters
    monitor_ : `ConvergenceMonitor` with history, converged and reason
    """

    def __init__(
        self,
        n_states: int,
        emission: str = "categorical",
        inference: str = "auto",
        n_iter: int = 100,
        tol: float = 1e-5,
        fixed: Collection[str] = (),
        init: Mapping[str, npt.ArrayLike] | None = None,
        n_init: int = 1,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.n_states = n_states
        self.emission = emission
        self.inference = inference
        self.n_iter = n_iter
        self.tol = tol
        self.fixed = fixed
        self.init = init
        self.n_init = n_init
        self.random_state = random_state

    def fit(self, aggregates: Aggregates) -> Self:
        """Learn from aggregates; see `agg_core.learning.em_steps`.

        Raises
        ------
        InputError
            If a parameter is out of range, a fixed part has no value, or the observations cannot
            happen under the start.
        """
        self._check()
        rng = np.random.default_rng(self.random_state)
        best: tuple[float, HMM, ConvergenceMonitor] | None = None
        for _ in range(self.n_init):
            hmm, monitor = learn(
                aggregates,
                self._start(aggregates.n_symbols, rng),
                inference=self.inference,
                fixed=self.fixed,
                n_iter=self.n_iter,
                tol=self.tol,
            )
            energy = monitor.history[-1] if monitor.history else 0.0
            if best is None or energy < best[0]:
                best = energy, hmm, monitor
        assert best is not None
        _, self.hmm_, self.monitor_ = best
        return self

    @property
    def startprob_(self) -> FloatArray:
        """Learned start distribution (d,)."""
        return self._fitted().startprob

    @property
    def transmat_(self) -> FloatArray:
        """Learned transition matrix (d, d)."""
        return self._fitted().transmat

    @property
    def emissionprob_(self) -> FloatArray:
        """Learned emission matrix (d, S)."""
        emission = self._fitted().emission
        assert isinstance(emission, CategoricalEmission)
        return emission.emissionprob

    def expected_counts(self, aggregates: Aggregates) -> ModelCounts:
        """Expected counts of people and moves under the fitted model, to convergence."""
        hmm = self._fitted()
        expected = inference_named(self.inference)(
            hmm, aggregates, hmm.emission.likelihoods(aggregates),
            tol=EXACT_TOL, max_sweeps=EXACT_SWEEPS,
        )  # fmt: skip
        return ModelCounts(expected.start, expected.transitions, -expected.free_energy)

    def score(self, observations: npt.ArrayLike) -> float:
        """Mean log-likelihood of individual sequences (N, T); -inf if one cannot happen."""
        hmm = self._fitted()
        singles = aggregate(observations, 1, self.emissionprob_.shape[1])
        try:
            expected = inference_named("cfb")(hmm, singles, hmm.emission.likelihoods(singles))
        except UnreachableError:
            return -np.inf
        return -expected.free_energy / singles.n_sequences

    def sample(
        self, n: int, length: int, random_state: int | np.random.Generator | None = None
    ) -> tuple[IntArray, IntArray]:
        """Draw n individuals: their observations and their states, both (n, length)."""
        return self._fitted().sample(n, length, random_state)

    def _fitted(self) -> HMM:
        if not hasattr(self, "hmm_"):
            raise InputError("This model has learned nothing yet; call fit first.")
        return self.hmm_

    def _check(self) -> None:
        if self.emission != "categorical":
            raise InputError(f"emission must be 'categorical'; it was {self.emission!r}.")
        for name, least in (("n_states", 1), ("n_iter", 0), ("n_init", 1)):
            if getattr(self, name) < least:
                raise InputError(f"{name} must be {least} or more; it was {getattr(self, name)}.")
        values = dict(self.init or {})
        names = {"startprob": "startprob", "transmat": "transmat", "emission": "emissionprob"}
        unknown = set(values) - set(names.values())
        if unknown:
            raise InputError(f"init holds {sorted(unknown)}; it takes {list(names.values())}.")
        for part in self.fixed:
            if part not in PARTS:
                raise InputError(f"fixed holds {part!r}; it takes any of {PARTS}.")
            if names[part] not in values:
                raise InputError(f"{part} is fixed but has no value; give init[{names[part]!r}].")

    def _start(self, n_symbols: int, rng: np.random.Generator) -> HMM:
        d = self.n_states
        given = dict(self.init or {})
        shapes = {"startprob": (d,), "transmat": (d, d), "emissionprob": (d, n_symbols)}
        values = {}
        for name, shape in shapes.items():
            if name in given:
                values[name] = check_probs(given[name], name, ndim=len(shape))
                if values[name].shape != shape:
                    raise InputError(
                        f"init[{name!r}] must have shape {shape}; it has {values[name].shape}."
                    )
            else:
                values[name] = random_probs(shape, rng)
        return HMM.categorical(**values)
