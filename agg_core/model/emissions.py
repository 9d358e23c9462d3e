"""Emissions: how hidden states show themselves, and the noise of positions on a grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy import sparse

from agg_core.base.errors import InputError, UnreachableError
from agg_core.base.moves import (
    AnyMoves,
    Moves,
    as_moves,
    at_origin,
    at_pairs,
    counted_like,
    entries,
    moves_like,
    normalised_rows,
    origin_sums,
    whole,
)
from agg_core.model.aggregates import Aggregates
from agg_core.space.grid import BaseGrid

__all__ = [
    "CategoricalEmission",
    "Emission",
    "Misplacing",
    "Noise",
    "TokenLikelihoods",
    "grid_emission",
    "near_emission",
    "near_probs",
    "near_rows",
    "observe",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

EARTH_M = 1e7
"""A quarter of the way round the Earth: noise beyond it has no meaning."""

KEPT = 0.1

TAIL = 1e-6
"""Shares of a cell's noise below this are cut, so that a local sensor stays local."""

FIRST_SHARE = 0.05
LEAST_SHARE, MOST_SHARE = 1e-4, 0.9

SHARES_APART = 0.03
"""So near were planted shares found again, mostly a little low, as rows that are pulled take some
misplaced fixes for movement."""


@dataclass(frozen=True)
class TokenLikelihoods:
    """p(observation | state) of every token, as rows of a table with sparse support.

    ``indptr, states, values`` are the CSR form of the (U, d) table; token i reads row ``row[i]``.
    Tokens that show the same symbol share a row. Rows of densities are scaled so that their
    largest entry is 1; ``log_scale`` (U,) is the logarithm of what they were divided by.
    """

    indptr: IntArray
    states: IntArray
    values: FloatArray
    row: IntArray
    n_states: int
    log_scale: FloatArray | None = None

    def log_scale_of(self, aggregates: Aggregates) -> float:
        """What the scaling took from the log-likelihood of all observations together."""
        if self.log_scale is None:
            return 0.0
        return float(aggregates.count @ self.log_scale[self.row])


class Emission(Protocol):
    """What inference and learning ask of an emission, discrete or continuous."""

    @property
    def n_states(self) -> int:
        """Number of hidden states d."""

    def likelihoods(self, aggregates: Aggregates) -> TokenLikelihoods:
        """p(observation | state) for every token."""

    def statistics(
        self, aggregates: Aggregates, likelihoods: TokenLikelihoods, counts: FloatArray
    ) -> FloatArray:
        """What the M-step needs of expected counts, (d, p); sums of these are of the data pooled.

        ``counts`` is aligned with the entries of the table in ``likelihoods``.
        """

    def at_least(self, statistics: FloatArray, least: FloatArray) -> FloatArray:
        """Statistics that a correction may have left below others, raised to these."""

    def from_statistics(self, statistics: FloatArray) -> Emission:
        """The emission that the statistics make most likely (the M-step)."""

    @property
    def values(self) -> FloatArray:
        """The parameters, for arithmetic between emissions of one kind."""

    def with_values(self, values: FloatArray) -> Emission:
        """The emission whose parameters are near ``values``, which may be no parameters at all."""

    def distance(self, other: Emission) -> float:
        """How far another emission of the same kind is, as a mean over states."""

    def mismatch(self, other: Emission) -> FloatArray:
        """How unlike each state is to each state of another emission, (d, d)."""

    def permuted(self, order: IntArray) -> Emission:
        """The same emission with its states in another order."""

    def sample(self, states: IntArray, rng: np.random.Generator) -> IntArray | FloatArray:
        """An observation for every state."""


class Noise(Protocol):
    """A noise of observations that one number tells, its amount, which may be learned from them."""

    @property
    def limits(self) -> tuple[float, float]:
        """The least and the largest amount that can be learned."""

    @property
    def first(self) -> float:
        """The amount to begin with."""

    def near(self, learned: float, stated: float) -> bool:
        """Whether a stated amount is so near a learned one that they do not contradict."""

    def emission(self, amount: float) -> Emission:
        """How states show themselves under this much of it."""

    def improved(self, statistics: FloatArray, amount: float) -> float | None:
        """The amount by the M-step, from `Emission.statistics` expected under ``amount``.

        None where the states in which people are expected tell nothing of it.
        """


@dataclass(frozen=True)
class CategoricalEmission:
    """Symbols drawn from one distribution per state: ``emissionprob`` (d, S), rows sum to 1.

    A sparse table has entries of the symbols that a state may show (see `agg_core.base.moves`).
    """

    emissionprob: AnyMoves

    @property
    def n_states(self) -> int:
        """Number of hidden states d."""
        return int(self.emissionprob.shape[0])

    @property
    def n_symbols(self) -> int:
        """Number of symbols S."""
        return int(self.emissionprob.shape[1])

    def likelihoods(self, aggregates: Aggregates) -> TokenLikelihoods:
        """Row per symbol: the column of ``emissionprob``, zeros left out.

        Raises
        ------
        InputError
            If the aggregates count over another number of symbols; `UnreachableError` if they
            hold one that no state can emit.
        """
        n_symbols = self.n_symbols
        if aggregates.points is not None:
            raise InputError(
                "A categorical emission needs counts of symbols; these observations are places: "
                "use a Gaussian emission.",
                code="symbols-needed",
            )
        if aggregates.n_symbols != n_symbols:
            raise InputError(
                f"The emission has {n_symbols} symbols but the observations count over "
                f"{aggregates.n_symbols}; give both the same symbols.",
                code="symbols-differ",
            )
        table = sparse.csr_array(self.emissionprob.T)
        table.eliminate_zeros()
        reachable = np.diff(table.indptr) > 0
        dead = np.flatnonzero(~reachable[aggregates.symbol])
        if dead.size:
            sequence, step = aggregates.locate(int(dead[0]))
            raise UnreachableError(
                f"Symbol {aggregates.symbol[dead[0]]} was observed (sequence {sequence}, "
                f"step {step}) but no state can emit it; smooth the emission, for example with a "
                "small chance of a neighbouring cell.",
                code="symbol-impossible",
            )
        return TokenLikelihoods(
            indptr=table.indptr.astype(np.int64),
            states=table.indices.astype(np.int64),
            values=table.data.astype(np.float64),
            row=aggregates.symbol,
            n_states=self.n_states,
        )

    def statistics(
        self, aggregates: Aggregates, likelihoods: TokenLikelihoods, counts: FloatArray
    ) -> FloatArray:
        """Expected people per state and symbol, (d, S).

        ``counts`` is aligned with the entries of the table in ``likelihoods``. Of a sparse emission
        they are those of its entries, (n,).
        """
        symbol = np.repeat(np.arange(aggregates.n_symbols), np.diff(likelihoods.indptr))
        return entries(counted_like(self.emissionprob, likelihoods.states, symbol, counts))

    def at_least(self, statistics: FloatArray, least: FloatArray) -> FloatArray:
        """People per state and symbol, not fewer than ``least`` anywhere."""
        return np.maximum(statistics, least)

    def from_statistics(self, statistics: FloatArray) -> CategoricalEmission:
        """Symbol counts per state, normalised (Proposition 1 of the paper).

        A state that was never visited keeps its row. Counts below 0, which a correction may
        leave, are none.
        """
        now, counts = self.emissionprob, np.maximum(statistics, 0.0)
        total = at_origin(now, origin_sums(moves_like(now, counts)))
        learned = counts / np.where(total > 0, total, 1)
        return CategoricalEmission(moves_like(now, np.where(total > 0, learned, entries(now))))

    @property
    def values(self) -> FloatArray:
        """The entries of ``emissionprob``."""
        return entries(self.emissionprob)

    def with_values(self, values: FloatArray) -> CategoricalEmission:
        """The rows of probabilities near ``values``; see `near_rows`."""
        return CategoricalEmission(near_rows(values, self.emissionprob))

    def distance(self, other: Emission) -> float:
        """Mean over states of the L1 distance between rows, 0 to 2."""
        if not isinstance(other, CategoricalEmission):
            raise TypeError("a discrete emission can only be compared with a discrete one")
        apart: AnyMoves = self.emissionprob - other.emissionprob
        return float(np.abs(entries(apart)).sum()) / self.n_states

    def mismatch(self, other: Emission) -> FloatArray:
        """L1 distance of each row from each row of the other, (d, d), 0 to 2."""
        if not isinstance(other, CategoricalEmission):
            raise TypeError("a discrete emission can only be compared with a discrete one")
        apart = whole(self.emissionprob)[:, None] - whole(other.emissionprob)[None, :]
        return np.asarray(np.abs(apart).sum(axis=2))

    def permuted(self, order: IntArray) -> CategoricalEmission:
        """The same emission with its states in another order."""
        return CategoricalEmission(as_moves(self.emissionprob[order]))

    def sample(self, states: IntArray, rng: np.random.Generator) -> IntArray:
        """A symbol for every state, same shape as ``states``."""
        return observe(states, self.emissionprob, rng)


@dataclass(frozen=True)
class Misplacing:
    """Emissions that misplace some share of what is shown: (1 - share) plain + share moved.

    ``plain`` (d, S) is without that noise, ``moved`` (d, S) of what is misplaced for sure. Rows in
    which the two are equal, of states seen without error, tell nothing of the share. Sparse ones
    have one pattern.
    """

    plain: AnyMoves
    moved: AnyMoves

    @classmethod
    def on_grid(
        cls,
        grid: BaseGrid,
        sigma_m: float = 0.0,
        *,
        outside: bool = False,
        is_sparse: bool = False,
    ) -> Misplacing:
        """Into a cell that touches one's own; ``emission(p)`` is `grid_emission` with chance p."""
        plain, moved = (
            near_emission(grid, chance, sigma_m, outside=outside) for chance in (0.0, 1.0)
        )
        if not is_sparse:
            return cls(plain.toarray(), moved.toarray())
        # What either has is an entry of both.
        both = plain + moved
        origin = np.repeat(np.arange(both.shape[0]), np.diff(both.indptr))
        ends = origin, both.indices
        return cls(*(moves_like(both, at_pairs(of, *ends)) for of in (plain, moved)))

    def emission(self, share: float) -> CategoricalEmission:
        """The emission that misplaces this share."""
        mixed = (1 - share) * entries(self.plain) + share * entries(self.moved)
        return CategoricalEmission(moves_like(self.plain, mixed))

    @property
    def limits(self) -> tuple[float, float]:
        """Within what a learned share stays: from 0 no E-step could ever lift it."""
        return LEAST_SHARE, MOST_SHARE

    @property
    def first(self) -> float:
        """The share to begin with."""
        return FIRST_SHARE

    def near(self, learned: float, stated: float) -> bool:
        """Whether a stated share may be the learned one."""
        return abs(learned - stated) <= SHARES_APART

    def improved(self, statistics: FloatArray, amount: float) -> float | None:
        """The M-step of the share, that of the weight of a mixture; None if nobody tells it.

        ``statistics`` are people per state and symbol expected under ``emission(amount)``::

            share = expected people who were misplaced / people who can be
        """
        plain, moved = entries(self.plain), amount * entries(self.moved)
        apart = (plain != entries(self.moved)).astype(np.float64)
        told = origin_sums(moves_like(self.plain, apart)) > 0
        shown = statistics * at_origin(self.plain, told.astype(np.float64))
        people = float(shown.sum())
        if people <= 0:
            return None
        total = (1 - amount) * plain + moved
        posterior = np.divide(moved, total, out=np.zeros_like(moved), where=total > 0)
        return float((shown * posterior).sum()) / people


def near_probs(values: FloatArray, now: FloatArray) -> FloatArray:
    """Rows that sum to 1, near ``values``, none below a tenth of ``now``: nothing dies in a leap.

    Where ``now`` is zero they are zero.
    """
    raised = np.where(now > 0, np.maximum(values, KEPT * now), 0.0)
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True))


def near_rows(values: FloatArray, now: Moves) -> Moves:
    """`near_probs` of the entries of a table: where those are none there stay none."""
    entered = entries(now)
    raised = np.where(entered > 0, np.maximum(values, KEPT * entered), 0.0)
    return normalised_rows(moves_like(now, raised))


def grid_emission(
    grid: BaseGrid, misclassify: float = 0.05, sigma_m: float = 0.0, *, outside: bool = False
) -> FloatArray:
    """Chance of observing each cell from each cell, (d, d), rows sum to 1.

    >>> import agg_core
    >>> grid = agg_core.Grid.from_bbox(139.5, 35.5, 140.0, 35.9, rows=1, cols=2)
    >>> agg_core.grid_emission(grid, misclassify=0.1)
    array([[0.9, 0.1],
           [0.1, 0.9]])

    A person is anywhere in their cell with equal chance. Gaussian position noise of ``sigma_m``
    metres moves the fix, and the share that lands in each cell is integrated, exactly for
    rectangular cells and numerically for others (`BaseGrid.noise`); what would leave the grid is
    spread over the cells in proportion. After that, with chance
    ``misclassify``, the fix is booked to one of the cells that touch its own (8 inside a
    rectangular grid, fewer at the border), each equally likely. Shares below 1e-6
    are cut, so support stays local.

    With ``outside`` there is one more state and symbol, "outside the grid", seen without error:
    (d + 1, d + 1). `near_emission` is the same as a sparse table.

    Raises
    ------
    InputError
        If ``misclassify`` lies outside 0..1 or ``sigma_m`` outside 0..10,000 km.
    """
    return np.asarray(near_emission(grid, misclassify, sigma_m, outside=outside).toarray())


def near_emission(
    grid: BaseGrid, misclassify: float = 0.05, sigma_m: float = 0.0, *, outside: bool = False
) -> sparse.csr_array:
    """`grid_emission` as a sparse table of the cells that each may be seen in.

    >>> import agg_core
    >>> grid = agg_core.Grid.from_bbox(139.5, 35.5, 140.0, 35.9, rows=1, cols=3)
    >>> agg_core.near_emission(grid, misclassify=0.1).nnz
    7

    Raises
    ------
    InputError
        As `grid_emission`.
    """
    if not 0 <= misclassify <= 1:
        raise InputError(
            f"The chance of a neighbour cell must lie between 0 and 1; it was {misclassify}.",
            code="value-out-of-range",
        )
    if not 0 <= sigma_m <= EARTH_M:
        raise InputError(
            f"Position noise must lie between 0 and 10,000 km; it was {sigma_m} m.",
            code="value-out-of-range",
        )
    blurred = grid.noise(sigma_m)
    blurred.data[blurred.data < TAIL] = 0.0
    blurred.eliminate_zeros()
    noise = normalised_rows(blurred) @ _neighbour_chance(grid, misclassify)
    if outside:
        noise = sparse.block_diag([noise, sparse.eye_array(1)])
    noise = sparse.csr_array(noise)
    noise.eliminate_zeros()
    noise.sort_indices()
    return noise


def _neighbour_chance(grid: BaseGrid, misclassify: float) -> sparse.csr_array:
    n_near = np.array([near.size for near in grid.neighbours])
    cell, origin = np.arange(grid.n_cells), np.repeat(np.arange(grid.n_cells), n_near)
    stays = np.where(n_near > 0, 1.0 - misclassify, 1.0)
    rows, dest = np.concatenate([cell, origin]), np.concatenate([cell, *grid.neighbours])
    chances = np.concatenate([stays, misclassify / n_near[origin]])
    return sparse.csr_array((chances, (rows, dest)), shape=(grid.n_cells, grid.n_cells))


def observe(
    states: npt.ArrayLike,
    emission: npt.ArrayLike | sparse.sparray,
    random_state: int | np.random.Generator | None = None,
) -> IntArray:
    """Draw a noisy symbol for every state, same shape as ``states``.

    >>> import agg_core
    >>> agg_core.observe([[0, 1], [1, 0]], [[0.0, 1.0], [1.0, 0.0]], random_state=0)  # swaps both
    array([[1, 0],
           [0, 1]])

    Raises
    ------
    InputError
        If a state has no row in the emission, or one without any chance.
    """
    rng = np.random.default_rng(random_state)
    states = np.asarray(states, dtype=np.int64)
    table = as_moves(emission)
    if not states.size:
        return states.copy()
    if states.min() < 0 or states.max() >= table.shape[0]:
        raise InputError(
            f"States must lie in 0..{table.shape[0] - 1}, the rows of the emission; "
            f"found {states.min()}..{states.max()}.",
            code="state-out-of-range",
        )
    empty = np.flatnonzero(origin_sums(table) == 0)
    if np.isin(states, empty).any():
        raise InputError(
            f"State {empty[0]} can show no symbol: its row of the emission is zero.",
            code="state-without-symbols",
        )
    flat = states.ravel()
    draw = rng.random(flat.size)
    drawn = np.empty(flat.size, dtype=np.int64)
    order = np.argsort(flat, kind="stable")
    present, first = np.unique(flat[order], return_index=True)
    for state, where in zip(present, np.split(order, first[1:]), strict=True):
        symbols, chances = _shown(table, state)
        steps = np.cumsum(chances)
        drawn[where] = symbols[np.searchsorted(steps[:-1], draw[where] * steps[-1], side="right")]
    return drawn.reshape(states.shape)


def _shown(table: AnyMoves, state: int) -> tuple[IntArray, FloatArray]:
    """The symbols that a state may show, and their chances."""
    if isinstance(table, np.ndarray):
        symbols = np.flatnonzero(table[state])
        return symbols, table[state, symbols]
    row = slice(table.indptr[state], table.indptr[state + 1])
    return np.asarray(table.indices[row]), np.asarray(table.data[row])
