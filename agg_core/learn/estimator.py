"""`AggregateHMM`: the learners behind one face, with hmmlearn's names and scikit-learn's ways."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from agg_core.base.checkpoints import Course
from agg_core.base.engine import Engine, use_engine
from agg_core.base.errors import InputError, UnreachableError
from agg_core.base.moves import AnyMoves, as_moves
from agg_core.learn.em import LearnState
from agg_core.learn.learners import (
    NOISE_MAPS,
    ConvergenceMonitor,
    NoiseMap,
    choose_learner,
    inference_named,
    learn_steps,
    least_squares_start,
    log_likelihood,
)
from agg_core.learn.mstep import PARTS
from agg_core.learn.paths import most_likely_paths, state_probs
from agg_core.learn.table import LEARNERS, LEAST_SQUARES, PRIOR, learner_named
from agg_core.model.aggregates import Aggregates, aggregate, aggregate_points
from agg_core.model.emissions import CategoricalEmission
from agg_core.model.gaussian import (
    COVARIANCE_TYPES,
    GaussianEmission,
    covariance_floor,
    kmeans_centres,
    shaped_covariance,
)
from agg_core.model.hmm import HMM, check_probs, check_rows, random_probs

__all__ = ["AggregateHMM", "ModelCounts", "Observations", "held_out_nll"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

Observations = Aggregates | npt.ArrayLike
"""What a model is learned from and scored on; see `AggregateHMM.fit`."""

EMISSIONS = ("categorical", "gaussian")
STARTS = ("random", LEAST_SQUARES)

EXACT_TOL = 1e-10
EXACT_SWEEPS = 3_000


@dataclass(frozen=True)
class ModelCounts:
    """Expected counts under a fitted model, summed over sequences.

    ``start`` (d,) people per state at the first step, ``transitions`` (d, d) moves summed over the
    T - 1 steps, ``log_likelihood`` minus the free energy: exact at M = 1; for larger M that of the
    counts, nearly, for cavity, the large-population approximation of the paper for cfb, and the
    learner's own objective for the others.
    """

    start: FloatArray
    transitions: AnyMoves
    log_likelihood: float


class AggregateHMM(BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """A hidden Markov model learned from aggregate observations.

    >>> import numpy as np
    >>> import agg_core
    >>> counts = np.array([[[8, 2], [6, 4]], [[2, 8], [4, 6]]])  # groups, steps, symbols
    >>> known = {"transmat": [[0.9, 0.1], [0.1, 0.9]], "emissionprob": np.eye(2)}
    >>> model = agg_core.AggregateHMM(n_states=2, fixed=("emission",), init=known, random_state=0)
    >>> model = model.fit(counts)
    >>> model.transmat_.shape, model.predict([[0, 0, 1]]).tolist()
    ((2, 2), [[0, 0, 1]])

    Parameters
    ----------
    n_states : int
        Hidden states d.
    emission : "categorical" or "gaussian"
        Kind of observations: symbols 0..S-1, or places with s coordinates.
    inference : str
        The learner: any of `agg_core.learn.table.LEARNERS`. "auto" takes the best for the data
        (see `agg_core.learn.learners.choose_learner`); ``choice_`` then says which and why.
    n_iter, tol : int, float
        Most iterations, and the change of the parameters below which the fit has converged.
    fixed : collection of "startprob", "transmat", "emission"
        Parts that are known and not updated; each needs a value in ``init``.
    init : mapping or HMM, optional
        Starting values: "startprob" (d,), "transmat" (d, d), and "emissionprob" (d, S), these two
        also sparse, or "means" (d, s) and "covars" (d, s, s). Means left out are found by k-means,
        started by k-means++; covariances left out are that of all observations. An `HMM` gives
        them all.
    n_init : int
        Starts; see ``validation_fraction``.
    random_state : int, Generator, RandomState or None
        For the random starts.
    init_params : "random" or "least_squares"
        Where startprob and transmat come from if ``init`` leaves them out: drawn at random, or,
        for a known categorical emission, conditional least squares (at the first start). Least
        squares also moves what an `HMM` gives, but for the parts in ``fixed``.
    covariance_type : "full", "diag", "spherical" or "fixed"
        Shape of learned Gaussian covariances; "fixed" keeps them and learns the means.
    noise_map : "emission" or "identity"
        For the learners with Poisson noise: whether counts are of symbols or of the states.
    prior : float
        People that pull each row of transmat towards what all rows together predict (see
        `agg_core.learn.mstep.Pull`); used by sampling, cavity and gaussian_pairs.
    calibrate : int
        Simulated replicates per iteration that take the bias of cfb and cavity away; 0 for none.
    validation_fraction : float
        With several starts this part of the sequences is kept aside, the start whose model makes
        it most likely is chosen, and that model is then learned on with all sequences. With 0,
        or too few sequences, the start of lowest free energy is kept.
    engine : str, Engine or None
        Who does the work of `fit`: "local", "dask" or "dask://host:port"; None is the engine in
        use (see `agg_core.base.engine.use_engine`). What is learned is the same with any.

    Attributes
    ----------
    startprob_, transmat_ : learned chain
    emissionprob_, or means_ (d, s) and covars_ (d, s, s) : learned emission
    monitor_ : `ConvergenceMonitor` with history, converged and reason
    choice_ : `Choice`, the learner that was taken and why
    n_features_in_ : columns of the array that the model was learned from, if it was one
    """

    def __init__(
        self,
        n_states: int = 2,
        emission: str = "categorical",
        inference: str = "auto",
        n_iter: int = 100,
        tol: float = 1e-5,
        fixed: Collection[str] = (),
        init: Mapping[str, npt.ArrayLike] | HMM | None = None,
        n_init: int = 1,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
        init_params: str = "random",
        covariance_type: str = "diag",
        noise_map: str = "emission",
        prior: float = PRIOR,
        calibrate: int = 0,
        validation_fraction: float = 0.2,
        engine: str | Engine | None = None,
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
        self.init_params = init_params
        self.covariance_type = covariance_type
        self.noise_map = noise_map
        self.prior = prior
        self.calibrate = calibrate
        self.validation_fraction = validation_fraction
        self.engine = engine

    def fit(self, X: Observations, y: object = None) -> Self:  # noqa: ARG002  # scikit-learn's way
        """Learn from observations; see `agg_core.learn.learners.learner_steps`.

        ``X`` is an `Aggregates`, or an array: counts (K, T, S) or people's symbols (N, T) for a
        categorical emission; samples (K, T, M, s), people's places (N, T, s), or (N, T) if there
        is one coordinate, for a Gaussian one. ``y`` is there for scikit-learn and not looked at.

        Raises
        ------
        InputError
            If a parameter is out of range, a fixed part has no value, the observations cannot
            happen under any start, or the engine cannot be used.
        """
        with use_engine(self.engine):
            for _ in self.fit_steps(X):
                pass
        return self

    def fit_steps(self, X: Observations, course: Course | None = None) -> Iterator[LearnState]:
        """Learn as `fit` does, and yield every iteration, so that a caller can tell or stop it.

        With a ``course`` that was stopped (see `agg_core.base.checkpoints`) it goes on from there,
        if there is one start.

        The model is fitted once the iterations have come to their end. They are made by the engine
        in use where each is asked for.

        Raises
        ------
        InputError
            As `fit`.
        """
        self._check()
        aggregates = self._as_aggregates(X, learning=True)
        rng = _generator(self.random_state)
        # A single start draws as the learner called by itself does.
        splitter, draws = rng.spawn(2) if self.n_init > 1 else (rng, rng)
        train, held_out = self._split(aggregates, splitter)
        best: tuple[float, HMM, ConvergenceMonitor] | None = None
        fault: UnreachableError | None = None
        for number in range(self.n_init):
            try:
                start = self._start(train, rng, first=number == 0)
                hmm, monitor = yield from self._learn_steps(
                    train, start, draws, course if self.n_init == 1 else None
                )
            except UnreachableError as error:
                fault = error
                continue
            loss = monitor.history[-1] if monitor.history else 0.0
            if held_out is not None:
                loss = -log_likelihood(hmm, held_out)
            elif LEARNERS[self.choice_.learner].drawn and self.n_init > 1:
                # Its energy is of the people drawn, no likelihood of what was observed.
                loss = -log_likelihood(hmm, train)
            if best is None or loss < best[0]:
                best = loss, hmm, monitor
        if best is None:
            assert fault is not None
            raise fault
        _, hmm, monitor = best
        if held_out is not None:
            hmm, monitor = yield from self._learn_steps(aggregates, hmm, draws)
        self.hmm_, self.monitor_ = hmm, monitor

    def _learn_steps(
        self,
        aggregates: Aggregates,
        start: HMM,
        draws: np.random.Generator,
        course: Course | None = None,
    ) -> Generator[LearnState, None, tuple[HMM, ConvergenceMonitor]]:
        self.choice_ = choose_learner(self.inference, aggregates, start, fixed=self.fixed)
        return (
            yield from learn_steps(
                aggregates, start, inference=self.inference, fixed=self.fixed,
                n_iter=self.n_iter, tol=self.tol, noise_map=cast(NoiseMap, self.noise_map),
                prior=self.prior, calibrate=self.calibrate, random_state=draws, course=course,
            )
        )  # fmt: skip

    def _split(
        self, aggregates: Aggregates, rng: np.random.Generator
    ) -> tuple[Aggregates, Aggregates | None]:
        """Sequences to learn from and sequences to choose the start by, if there is a choice."""
        n_held = round(self.validation_fraction * aggregates.n_sequences)
        if self.n_init == 1 or n_held in (0, aggregates.n_sequences):
            return aggregates, None
        order = rng.permutation(aggregates.n_sequences)
        return aggregates.take(np.sort(order[n_held:])), aggregates.take(np.sort(order[:n_held]))

    @property
    def startprob_(self) -> FloatArray:
        """Learned start distribution (d,)."""
        return self._fitted().startprob

    @property
    def transmat_(self) -> AnyMoves:
        """Learned transition matrix (d, d), sparse if what was given is."""
        return self._fitted().transmat

    @property
    def emissionprob_(self) -> AnyMoves:
        """Learned emission matrix (d, S) of a categorical emission, sparse if what was given is."""
        emission = self._fitted().emission
        if not isinstance(emission, CategoricalEmission):
            raise self._not_there()
        return emission.emissionprob

    @property
    def means_(self) -> FloatArray:
        """Learned means (d, s) of a Gaussian emission."""
        return self._gaussian().means

    @property
    def covars_(self) -> FloatArray:
        """Covariances (d, s, s) of a Gaussian emission, whatever their type."""
        return self._gaussian().covars

    def expected_counts(self, X: Observations) -> ModelCounts:
        """Expected counts of people and moves under the fitted model, to convergence.

        By the E-step of ``inference``, or by that of cavity if it has none or is "auto".
        """
        hmm = self._fitted()
        aggregates = self._as_aggregates(X)
        expected = inference_named(self.inference, cast(NoiseMap, self.noise_map))(
            hmm, aggregates, hmm.emission.likelihoods(aggregates),
            tol=EXACT_TOL, max_sweeps=EXACT_SWEEPS,
        )  # fmt: skip
        return ModelCounts(expected.start, expected.transitions, -expected.free_energy)

    def score(self, X: Observations, y: object = None) -> float:  # noqa: ARG002
        """Mean log-likelihood per sequence of individuals, or per person of groups.

        Exact for individuals, -inf if one cannot happen: what to choose learners and settings by.
        For groups it is the log-probability of their counts, nearly (see
        `agg_core.learn.learners.log_likelihood`): it compares models on the same groups only.
        ``X`` is as in `fit`.
        """
        hmm = self._fitted()
        aggregates = self._as_aggregates(X)
        return log_likelihood(hmm, aggregates) / aggregates.n_individuals

    def decode(self, X: Observations) -> tuple[float, IntArray]:
        """Log-probability of the most likely states of single people, all together, and these.

        By Viterbi's recursion; the states are (N, T). ``X`` is as in `fit`, of single people.

        Raises
        ------
        InputError
            If the observations are of groups; `UnreachableError` if a sequence cannot happen.
        """
        log_probs, states = most_likely_paths(self._fitted(), self._as_aggregates(X))
        return float(log_probs.sum()), states

    def predict(self, X: Observations) -> IntArray:
        """The most likely states of single people, (N, T); see `decode`."""
        return self.decode(X)[1]

    def predict_proba(self, X: Observations) -> FloatArray:
        """Chance of each state of single people at each step, (N, T, d), given all they showed.

        Raises
        ------
        InputError
            As `decode`.
        """
        return state_probs(self._fitted(), self._as_aggregates(X))

    def aic(self, X: Observations) -> float:
        """Akaike's criterion on single people, as in hmmlearn: the lower the better.

        Minus twice the log-likelihood of all, plus twice the number of learned parameters.

        Raises
        ------
        InputError
            If the observations are of groups, whose likelihood is known nearly only.
        """
        log_prob, n_free, _ = self._evidence(X)
        return -2 * log_prob + 2 * n_free

    def bic(self, X: Observations) -> float:
        """Schwarz's criterion on single people, as in hmmlearn: the lower the better.

        Minus twice the log-likelihood of all, plus the number of learned parameters times the
        logarithm of the number of observations (people times steps that were seen).

        Raises
        ------
        InputError
            If the observations are of groups, whose likelihood is known nearly only.
        """
        log_prob, n_free, n_seen = self._evidence(X)
        return float(-2 * log_prob + n_free * np.log(n_seen))

    def _evidence(self, X: Observations) -> tuple[float, int, int]:
        """Log-likelihood, number of free parameters, number of observations."""
        hmm, people = self._fitted(), self._as_aggregates(X)
        if people.n_individuals != people.n_sequences:
            raise InputError(
                "The criteria need the exact likelihood of single people, but these are counts of "
                "groups; choose models of groups by score on groups held out.",
                code="single-people-needed",
            )
        d, n_free = hmm.emission.n_states, 0
        if "startprob" not in self.fixed:
            n_free += d - 1
        if "transmat" not in self.fixed:
            n_free += d * (d - 1)
        if "emission" not in self.fixed:
            n_free += self._n_of_emission()
        return log_likelihood(hmm, people), n_free, len(people.symbol)

    def _n_of_emission(self) -> int:
        if self.emission == "categorical":
            d, n_symbols = self.emissionprob_.shape
            return int(d * (n_symbols - 1))
        d, s = self.means_.shape
        of_covariance = {"full": s * (s + 1) // 2, "diag": s, "spherical": 1, "fixed": 0}
        return int(d * (s + of_covariance[self.covariance_type]))

    def sample(
        self, n: int, length: int, random_state: int | np.random.Generator | None = None
    ) -> tuple[IntArray | FloatArray, IntArray]:
        """Draw n individuals: symbols (n, length) or places (n, length, s), and their states."""
        return self._fitted().sample(n, length, random_state)

    def _fitted(self) -> HMM:
        check_is_fitted(self, "hmm_", msg="This model has learned nothing yet; call fit first.")
        return self.hmm_

    def _gaussian(self) -> GaussianEmission:
        emission = self._fitted().emission
        if not isinstance(emission, GaussianEmission):
            raise self._not_there()
        return emission

    def _not_there(self) -> AttributeError:
        return AttributeError(f"a model with {self.emission} emission has no such parameter")

    def _as_aggregates(self, X: Observations, *, learning: bool = False) -> Aggregates:
        """Observations in any of the shapes that `fit` takes."""
        if isinstance(X, Aggregates):
            return X
        array = check_array(
            X, dtype="numeric", allow_nd=True, ensure_2d=False, ensure_all_finite=False
        )
        if self.emission == "gaussian":
            if array.ndim == 4:
                return Aggregates.from_samples(array)
            if array.ndim == 3:
                return aggregate_points(array, 1)
            people = validate_data(self, array, reset=learning, dtype=np.float64)
            return aggregate_points(people[:, :, None], 1)
        if array.ndim == 3:
            return Aggregates.from_dense(array)
        people = validate_data(self, array, reset=learning)
        return aggregate(people, 1, self._n_symbols(people, learning=learning))

    @property
    def _given(self) -> dict[str, Any]:
        """Starting values by name."""
        if not isinstance(self.init, HMM):
            return dict(self.init or {})
        emission = self.init.emission
        given = {"startprob": self.init.startprob, "transmat": self.init.transmat}
        if isinstance(emission, CategoricalEmission):
            return {**given, "emissionprob": emission.emissionprob}
        assert isinstance(emission, GaussianEmission), "the two kinds that there are"
        return {**given, "means": emission.means, "covars": emission.covars}

    def _n_symbols(self, people: npt.NDArray[Any], *, learning: bool) -> int:
        """Symbols that there are: those of the emission if it is known, else those seen."""
        if not learning:
            return int(self.emissionprob_.shape[1])
        known = self._given.get("emissionprob")
        shape = () if known is None else as_moves(known).shape
        return int(shape[1]) if len(shape) == 2 else int(np.max(people)) + 1

    def _check(self) -> None:
        """Every parameter in range, each fault told in one sentence."""
        for name, least in (("n_states", 1), ("n_iter", 0), ("n_init", 1), ("calibrate", 0)):
            value = getattr(self, name)
            if not isinstance(value, Integral) or value < least:
                raise InputError(
                    f"{name} must be a whole number of {least} or more, not {value}.",
                    code="value-out-of-range",
                )
        for name, most in (("tol", np.inf), ("prior", np.inf), ("validation_fraction", 0.9)):
            value = getattr(self, name)
            if not isinstance(value, Real) or not 0 <= float(value) <= most:
                raise InputError(
                    f"{name} must be a number from 0 to {most}, not {value}.",
                    code="value-out-of-range",
                )
        for name, choices in (
            ("emission", EMISSIONS),
            ("init_params", STARTS),
            ("covariance_type", COVARIANCE_TYPES),
            ("noise_map", NOISE_MAPS),
        ):
            if getattr(self, name) not in choices:
                raise InputError(
                    f"{name} must be one of {', '.join(choices)}, not {getattr(self, name)!r}.",
                    code="not-a-choice",
                )
        learner_named(self.inference)
        values, of_emission = self._given, _VALUES[self.emission]
        unknown = set(values) - {"startprob", "transmat", *of_emission}
        if unknown:
            known = ", ".join(["startprob", "transmat", *of_emission])
            raise InputError(
                f"init holds {sorted(unknown)}; with this emission it takes {known}.",
                code="unknown-init-value",
            )
        if isinstance(self.fixed, str):
            raise InputError(
                f"fixed must be a collection of names, such as ({self.fixed!r},).",
                code="not-a-collection",
            )
        for part in self.fixed:
            if part not in PARTS:
                raise InputError(
                    f"fixed holds {part!r}; it takes any of {', '.join(PARTS)}.",
                    code="unknown-part",
                )
            for name in of_emission if part == "emission" else (part,):
                if name not in values:
                    raise InputError(
                        f"{part} is fixed but has no value; give init[{name!r}].",
                        code="fixed-without-value",
                    )
        if self.init_params == LEAST_SQUARES and (
            self.emission != "categorical" or "emission" not in self.fixed
        ):
            raise InputError(
                "A start by least squares needs a known categorical emission; give "
                "init['emissionprob'] and add 'emission' to fixed, or start at random.",
                code="known-emission-needed",
            )

    def _start(self, aggregates: Aggregates, rng: np.random.Generator, *, first: bool) -> HMM:
        """Starting values: those given, and for the rest a draw or an estimate."""
        d, given = self.n_states, self._given
        least_squares = first and self.init_params == LEAST_SQUARES
        if isinstance(self.init, HMM):
            if self.init.n_states != d:
                raise InputError(
                    f"init is a model of {self.init.n_states} states; n_states is {d}, give the "
                    "same number.",
                    code="wrong-shape",
                )
            if not least_squares:
                return self.init
            return least_squares_start(aggregates, self.init, fixed=self.fixed)
        chain = {
            name: _given_probs(given[name], name, shape) if name in given
            else random_probs(shape, rng)
            for name, shape in (("startprob", (d,)), ("transmat", (d, d)))
        }  # fmt: skip
        if self.emission == "gaussian":
            return HMM(**chain, emission=self._start_gaussian(aggregates, rng))
        shape = (d, aggregates.n_symbols)
        name = "emissionprob"
        table = (
            _given_probs(given[name], name, shape) if name in given else random_probs(shape, rng)
        )
        hmm = HMM(**chain, emission=CategoricalEmission(table))
        if least_squares:
            kept = [part for part in PARTS if part in given]
            return least_squares_start(aggregates, hmm, fixed=kept)
        return hmm

    def _start_gaussian(self, aggregates: Aggregates, rng: np.random.Generator) -> GaussianEmission:
        points = aggregates.points
        if points is None:
            raise InputError(
                "A Gaussian emission needs continuous observations, places of people; these are "
                "counts of symbols: use emission='categorical'.",
                code="places-needed",
            )
        given, floor = self._given, covariance_floor(points)
        means = given.get("means")
        if means is None:
            means = kmeans_centres(points, self.n_states, rng)
        if np.shape(means) != (self.n_states, points.shape[1]):
            raise InputError(
                f"init['means'] must have shape {(self.n_states, points.shape[1])}; "
                f"it has {np.shape(means)}.",
                code="wrong-shape",
            )
        covars = given.get("covars")
        if covars is None:
            pooled = np.atleast_2d(np.cov(points.T, bias=True)) + floor
            covars = np.tile(shaped_covariance(pooled, self.covariance_type), (self.n_states, 1, 1))
        return GaussianEmission.checked(means, covars, self.covariance_type, floor)


def held_out_nll(models: Mapping[str, AggregateHMM], held_out: Observations) -> dict[str, float]:
    """Negative log-likelihood of held-out observations per person, by name, the best model first.

    What to choose learners by: their own objectives do not compare. Exact on individuals; on groups
    it is the free energy of `AggregateHMM.score`, which favours the learner that minimises it.

    Raises
    ------
    InputError
        If the observations do not fit a model.
    """
    losses = {name: -model.score(held_out) for name, model in models.items()}
    return dict(sorted(losses.items(), key=lambda item: item[1]))


_VALUES = {"categorical": ("emissionprob",), "gaussian": ("means", "covars")}
"""Starting values of each kind of emission."""


def _generator(
    random_state: int | np.random.Generator | np.random.RandomState | None,
) -> np.random.Generator:
    """scikit-learn hands over its own generators too."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    return np.random.default_rng(random_state)


def _given_probs(values: Any, name: str, shape: tuple[int, ...]) -> Any:
    probs = check_probs(values, name, ndim=1) if len(shape) == 1 else check_rows(values, name)
    if probs.shape != shape:
        raise InputError(
            f"init[{name!r}] must have shape {shape}; it has {probs.shape}.", code="wrong-shape"
        )
    return probs
