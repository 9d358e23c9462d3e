"""The hidden Markov model: its parameters, their checks, starting values and sampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import overload

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.spatial import KDTree

from agg_core.base.errors import InputError
from agg_core.base.moves import (
    AnyMoves,
    as_moves,
    at_origin,
    moves_like,
    normalised_rows,
    origin_sums,
    pattern_of_pairs,
)
from agg_core.model.emissions import CategoricalEmission, Emission, observe
from agg_core.model.gaussian import GaussianEmission
from agg_core.space.grid import BaseGrid

__all__ = [
    "HMM",
    "align_labels",
    "allowed_moves",
    "check_probs",
    "check_rows",
    "distance_decay_transmat",
    "random_probs",
    "sample_states",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class HMM:
    """A time-homogeneous hidden Markov model of one individual.

    ``startprob`` (d,) is pi, ``transmat`` (d, d) is p(next | current) with rows that sum to 1, a
    whole table or a sparse one of the moves that may be (see `agg_core.base.moves`), ``emission``
    says how a state shows itself.
    """

    startprob: FloatArray
    transmat: AnyMoves
    emission: Emission

    @classmethod
    def categorical(
        cls,
        startprob: npt.ArrayLike,
        transmat: npt.ArrayLike | sparse.sparray,
        emissionprob: npt.ArrayLike | sparse.sparray,
    ) -> HMM:
        """A checked model with discrete observations; transitions and emission may be sparse.

        Raises
        ------
        InputError
            If shapes do not fit or rows are not probability distributions.
        """
        emit = check_rows(emissionprob, "emissionprob")
        return cls(*_check_chain(startprob, transmat, emit.shape[0]), CategoricalEmission(emit))

    @classmethod
    def gaussian(
        cls,
        startprob: npt.ArrayLike,
        transmat: npt.ArrayLike | sparse.sparray,
        means: npt.ArrayLike,
        covars: npt.ArrayLike,
        covariance_type: str = "full",
        floor: FloatArray | None = None,
    ) -> HMM:
        """A checked model with continuous observations; see `GaussianEmission.checked`.

        Raises
        ------
        InputError
            If shapes do not fit, rows are not probability distributions or a covariance is none.
        """
        emission = GaussianEmission.checked(means, covars, covariance_type, floor)
        return cls(*_check_chain(startprob, transmat, emission.n_states), emission)

    @property
    def n_states(self) -> int:
        """Number of hidden states d."""
        return len(self.startprob)

    def sample(
        self, n: int, length: int, random_state: int | np.random.Generator | None = None
    ) -> tuple[IntArray | FloatArray, IntArray]:
        """Draw n individuals: their observations and their states (n, length).

        Observations are symbols (n, length), or places (n, length, s).
        """
        rng = np.random.default_rng(random_state)
        states = sample_states(self.startprob, self.transmat, n, length, rng)
        return self.emission.sample(states, rng), states

    def permuted(self, order: npt.ArrayLike) -> HMM:
        """The same model with state ``order[i]`` named i."""
        new = np.asarray(order, dtype=np.int64)
        moves = as_moves(self.transmat[new][:, new])
        return HMM(self.startprob[new], moves, self.emission.permuted(new))


def align_labels(hmm: HMM, reference: HMM) -> HMM:
    """The same model with its states named as those of the reference that they are most like.

    States of a learned emission come in any order; before two models are compared, the
    assignment of least total mismatch of the emissions is found (Hungarian method).

    Raises
    ------
    InputError
        If the models have different numbers of states.
    """
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415

    if hmm.n_states != reference.n_states:
        raise InputError(
            f"Models of {hmm.n_states} and {reference.n_states} states cannot be aligned; "
            "compare models of equal size.",
            code="states-differ",
        )
    mismatch = reference.emission.mismatch(hmm.emission)
    return hmm.permuted(linear_sum_assignment(mismatch)[1])


def _check_chain(
    startprob: npt.ArrayLike, transmat: npt.ArrayLike | sparse.sparray, d: int
) -> tuple[FloatArray, AnyMoves]:
    """Start and transitions of a chain of d states, checked."""
    start = check_probs(startprob, "startprob", ndim=1)
    trans = check_rows(transmat, "transmat")
    if len(start) != d or trans.shape != (d, d):
        raise InputError(
            f"An emission of {d} states needs startprob of length {d} and transmat {d} x {d}; "
            f"they are {start.shape} and {trans.shape}.",
            code="wrong-shape",
        )
    return start, trans


def check_rows(values: npt.ArrayLike | sparse.sparray, name: str) -> AnyMoves:
    """Rows of probabilities, checked as `check_probs` does; sparse ones stay sparse.

    Raises
    ------
    InputError
        If they are no table, or rows are not probability distributions.
    """
    table = as_moves(values)
    if isinstance(table, np.ndarray):
        return check_probs(table, name, ndim=2)
    _check_chances(table.data, origin_sums(table), name)
    return normalised_rows(table)


def check_probs(values: npt.ArrayLike, name: str, ndim: int) -> FloatArray:
    """Probabilities as float64, checked: shape, range and sums (to 1e-6; then made exact)."""
    probs = np.array(values, dtype=np.float64)
    if probs.ndim != ndim or probs.size == 0:
        raise InputError(
            f"{name} must have {ndim} dimension(s); its shape is {probs.shape}.", code="wrong-shape"
        )
    total = probs.sum(axis=-1, keepdims=True)
    _check_chances(probs, total, name)
    return np.asarray(probs / total)


def _check_chances(probs: FloatArray, total: FloatArray, name: str) -> None:
    """Refuse numbers that are no probabilities, and rows of them whose ``total`` is not 1."""
    if not np.isfinite(probs).all() or (probs < 0).any():
        raise InputError(
            f"{name} must hold finite probabilities of 0 or more.", code="not-probabilities"
        )
    if not np.allclose(total, 1, atol=1e-6, rtol=0):
        worst = int(np.argmax(np.abs(total - 1)))
        raise InputError(
            f"Each row of {name} must sum to 1; row {worst} does not.", code="sum-not-one"
        )


def random_probs(
    shape: tuple[int, ...], random_state: int | np.random.Generator | None = None
) -> FloatArray:
    """Rows drawn uniformly from the simplex: a start that breaks every symmetry."""
    rng = np.random.default_rng(random_state)
    return rng.dirichlet(np.ones(shape[-1]), size=shape[:-1])


def allowed_moves(grid: BaseGrid, reach_m: float, *, outside: bool = False) -> sparse.csr_array:
    """Moves between cells whose middles are ``reach_m`` metres apart or less, (d, d), as ones.

    >>> import agg_core
    >>> grid = agg_core.Grid.from_bbox(139.5, 35.5, 140.0, 35.9, rows=1, cols=3)
    >>> agg_core.allowed_moves(grid, reach_m=20_000).toarray().astype(int)
    array([[1, 1, 0],
           [1, 1, 1],
           [0, 1, 1]])

    Everybody may stay. With ``outside`` there is one more state, which people may come from and
    go to anywhere.

    Raises
    ------
    InputError
        If ``reach_m`` is not above 0.
    """
    if not (np.isfinite(reach_m) and reach_m > 0):
        raise InputError(
            f"The reach of a step must be above 0 metres; it was {reach_m}.",
            code="value-out-of-range",
        )
    n = grid.n_cells
    # Cells of one width are as far apart as their number says but for rounding.
    near = KDTree(grid.centroids_m).query_pairs(reach_m * (1 + 1e-9), output_type="ndarray")
    own, d = np.arange(n + outside), n + outside
    origin, dest = [near[:, 0], near[:, 1], own], [near[:, 1], near[:, 0], own]
    if outside:
        out = np.full(n, n)
        origin, dest = [*origin, own[:-1], out], [*dest, out, own[:-1]]
    return pattern_of_pairs(np.concatenate(origin), np.concatenate(dest), d)


@overload
def distance_decay_transmat(
    grid: BaseGrid, stay: float = ..., *, outside: bool = ..., reach_m: None = ...
) -> FloatArray: ...


@overload
def distance_decay_transmat(
    grid: BaseGrid, stay: float = ..., *, outside: bool = ..., reach_m: float
) -> sparse.csr_array: ...


@overload
def distance_decay_transmat(
    grid: BaseGrid, stay: float = ..., *, outside: bool = ..., reach_m: float | None
) -> AnyMoves: ...


def distance_decay_transmat(
    grid: BaseGrid, stay: float = 0.6, *, outside: bool = False, reach_m: float | None = None
) -> AnyMoves:
    """Starting transitions on a grid, (d, d): most people stay, the others go near.

    >>> import agg_core
    >>> grid = agg_core.Grid.from_bbox(139.5, 35.5, 140.0, 35.9, rows=1, cols=2)
    >>> agg_core.distance_decay_transmat(grid, stay=0.6).round(2)
    array([[0.6, 0.4],
           [0.4, 0.6]])

    The chance of a move falls as exp(-distance / side of a cell), and each move keeps at least
    a millionth so that no long trip is ruled out. With ``outside`` there is one more state, as
    far from every cell as the cell is from the nearest border. With ``reach_m`` they are a sparse
    table of the `allowed_moves` alone.

    Raises
    ------
    InputError
        If ``reach_m`` is not above 0.
    """
    n, d = grid.n_cells, grid.n_cells + outside
    places, side = grid.centroids_m, float(np.mean(grid.cell_size_m))
    moves: AnyMoves
    if reach_m is None:
        moves = np.ones((d, d))
        origin, dest = np.indices((d, d))
    else:
        moves = allowed_moves(grid, reach_m, outside=outside)
        origin, dest = np.repeat(np.arange(d), np.diff(moves.indptr)), np.asarray(moves.indices)
    distance = np.zeros(origin.shape)
    inside = (origin < n) & (dest < n)
    apart = places[origin[inside]] - places[dest[inside]]
    distance[inside] = np.sqrt((apart**2).sum(axis=1))
    if outside:
        to_border = np.append(grid.border_distance_m, 0.0)
        distance[~inside] = to_border[np.minimum(origin, dest)[~inside]]
    weight = np.where(origin == dest, 0.0, np.exp(-distance / side) + 1e-6)
    leaving = origin_sums(moves_like(moves, weight))
    chances = (1 - stay) * weight / at_origin(moves, np.where(leaving > 0, leaving, 1.0))
    # Who can go nowhere stays.
    stays = np.where(leaving > 0, stay, 1.0)
    return moves_like(moves, np.where(origin == dest, stays[origin], chances))


def sample_states(
    startprob: FloatArray,
    transmat: AnyMoves,
    n: int,
    length: int,
    random_state: int | np.random.Generator | None = None,
) -> IntArray:
    """Draw n Markov chains of the given length: states (n, length)."""
    rng = np.random.default_rng(random_state)
    states = np.empty((n, length), dtype=np.int64)
    states[:, 0] = observe(np.zeros(n, dtype=np.int64), startprob[None, :], rng)
    for t in range(1, length):
        states[:, t] = observe(states[:, t - 1], transmat, rng)
    return states
