"""The hidden Markov model: its parameters, their checks, starting values and sampling."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from agg_core.emissions import CategoricalEmission, Emission, observe
from agg_core.errors import InputError
from agg_core.grid import Grid

__all__ = ["HMM", "check_probs", "distance_decay_transmat", "random_probs", "sample_states"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class HMM:
    """A time-homogeneous hidden Markov model of one individual.

    ``startprob`` (d,) is pi, ``transmat`` (d, d) is p(next | current) with rows that sum to 1,
    ``emission`` says how a state shows itself.
    """

    startprob: FloatArray
    transmat: FloatArray
    emission: Emission

    @classmethod
    def categorical(
        cls, startprob: npt.ArrayLike, transmat: npt.ArrayLike, emissionprob: npt.ArrayLike
    ) -> HMM:
        """A checked model with discrete observations.

        Raises
        ------
        InputError
            If shapes do not fit or rows are not probability distributions.
        """
        start = check_probs(startprob, "startprob", ndim=1)
        trans = check_probs(transmat, "transmat", ndim=2)
        emit = check_probs(emissionprob, "emissionprob", ndim=2)
        d = len(start)
        if trans.shape != (d, d):
            raise InputError(f"transmat must be {d} x {d} to fit startprob; it is {trans.shape}.")
        if emit.shape[0] != d:
            raise InputError(f"emissionprob must have {d} rows, one a state; it is {emit.shape}.")
        return cls(start, trans, CategoricalEmission(emit))

    @property
    def n_states(self) -> int:
        """Number of hidden states d."""
        return len(self.startprob)

    def sample(
        self, n: int, length: int, random_state: int | np.random.Generator | None = None
    ) -> tuple[IntArray, IntArray]:
        """Draw n individuals: their symbols and their states, both (n, length)."""
        if not isinstance(self.emission, CategoricalEmission):
            raise TypeError("only models with discrete observations can be sampled")
        rng = np.random.default_rng(random_state)
        states = sample_states(self.startprob, self.transmat, n, length, rng)
        return observe(states, self.emission.emissionprob, rng), states


def check_probs(values: npt.ArrayLike, name: str, ndim: int) -> FloatArray:
    """Probabilities as float64, checked: shape, range and sums (to 1e-6; then made exact)."""
    probs = np.array(values, dtype=np.float64)
    if probs.ndim != ndim or probs.size == 0:
        raise InputError(f"{name} must have {ndim} dimension(s); its shape is {probs.shape}.")
    if not np.isfinite(probs).all() or (probs < 0).any():
        raise InputError(f"{name} must hold finite probabilities of 0 or more.")
    total = probs.sum(axis=-1, keepdims=True)
    if not np.allclose(total, 1, atol=1e-6, rtol=0):
        worst = int(np.argmax(np.abs(total - 1)))
        raise InputError(f"Each row of {name} must sum to 1; row {worst} does not.")
    return np.asarray(probs / total)


def random_probs(
    shape: tuple[int, ...], random_state: int | np.random.Generator | None = None
) -> FloatArray:
    """Rows drawn uniformly from the simplex: a start that breaks every symmetry."""
    rng = np.random.default_rng(random_state)
    return rng.dirichlet(np.ones(shape[-1]), size=shape[:-1])


def distance_decay_transmat(grid: Grid, stay: float = 0.6, *, outside: bool = False) -> FloatArray:
    """Starting transitions on a grid, (d, d): most people stay, the others go near.

    The chance of a move falls as exp(-distance / side of a block), and each move keeps at least
    a millionth so that no long trip is ruled out. With ``outside`` there is one more state, as
    far from every block as the block is from the nearest border.
    """
    d = grid.n_cells + outside
    if d == 1:
        return np.ones((1, 1))
    places = grid.centroids_m
    side = float(np.mean(grid.block_size_m))
    distance = np.zeros((d, d))
    difference = places[:, None, :] - places[None, :, :]
    distance[: grid.n_cells, : grid.n_cells] = np.sqrt((difference**2).sum(axis=2))
    if outside:
        to_border = _distance_to_border(grid)
        distance[-1, :-1] = to_border
        distance[:-1, -1] = to_border
    weight = np.exp(-distance / side) + 1e-6
    np.fill_diagonal(weight, 0.0)
    moves: FloatArray = (1 - stay) * weight / weight.sum(axis=1, keepdims=True)
    np.fill_diagonal(moves, stay)
    return moves


def _distance_to_border(grid: Grid) -> FloatArray:
    width_m, height_m = grid.block_size_m
    row, col = np.divmod(np.arange(grid.n_cells), grid.cols)
    across = (np.minimum(col, grid.cols - 1 - col) + 0.5) * width_m
    along = (np.minimum(row, grid.rows - 1 - row) + 0.5) * height_m
    nearest: FloatArray = np.minimum(across, along)
    return nearest


def sample_states(
    startprob: FloatArray,
    transmat: FloatArray,
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
