"""Numbers of moves from each state to each: whole (d, d) tables, or sparse ones of allowed moves.

A sparse table has a fixed pattern, the moves that may be, with an entry for each of them even where
it is 0 just now; tables of one fit share it. So arithmetic goes entry by entry, never by scipy's
sums of sparse tables, which drop zeros. The functions here are what learners need of both kinds;
with them a formula is written once.
"""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

__all__ = [
    "AnyMoves",
    "Moves",
    "as_moves",
    "at_dest",
    "at_origin",
    "at_pairs",
    "counted_like",
    "dest_sums",
    "diagonal",
    "ends_of",
    "entries",
    "most_of_origin",
    "moves_like",
    "nobody_like",
    "normalised_rows",
    "origin_sums",
    "own",
    "pattern_of_pairs",
    "places_of",
    "states_after",
    "table_of_pairs",
    "whole",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
AnyMoves: TypeAlias = FloatArray | sparse.csr_array
"""A table (d, d), whole or sparse."""

Moves = TypeVar("Moves", FloatArray, sparse.csr_array, AnyMoves)
"""The same, where all tables of a function are of one kind."""


def as_moves(table: Any) -> AnyMoves:
    """A table as float64: sparse ones in CSR, columns of rows in order and none twice."""
    if isinstance(table, sparse.sparray | sparse.spmatrix):
        return _in_order(table)
    return np.asarray(table, dtype=np.float64)


def _in_order(table: Any) -> sparse.csr_array:
    found = sparse.csr_array(table.tocsr(), dtype=np.float64)
    if not found.has_canonical_format:
        found = found.copy()
        found.sum_duplicates()
    return found


def pattern_of_pairs(origin: npt.ArrayLike, dest: npt.ArrayLike, n_states: int) -> sparse.csr_array:
    """The moves from each ``origin`` (n,) to ``dest`` (n,) as a sparse table of ones."""
    keys = np.unique(np.asarray(origin, dtype=np.int64) * n_states + np.asarray(dest))
    rows, columns = np.divmod(keys, n_states)
    indptr = np.searchsorted(rows, np.arange(n_states + 1))
    return sparse.csr_array((np.ones(len(keys)), columns, indptr), shape=(n_states, n_states))


def table_of_pairs(
    origin: npt.ArrayLike, dest: npt.ArrayLike, count: npt.ArrayLike, n_states: int
) -> sparse.csr_array:
    """A sparse table (d, d) of moves (n,), those of the same origin and dest added up."""
    keys = np.asarray(origin, dtype=np.int64) * n_states + np.asarray(dest, dtype=np.int64)
    some, place = np.unique(keys, return_inverse=True)
    table = pattern_of_pairs(*np.divmod(some, n_states), n_states)
    people = np.bincount(place, np.asarray(count, dtype=np.float64), len(some))
    table.data = people.astype(np.float64)
    return table


def entries(moves: AnyMoves) -> FloatArray:
    """The numbers of a table: (d, d) of a whole one, (n,) of a sparse one, origin by origin."""
    return moves if isinstance(moves, np.ndarray) else np.asarray(moves.data)


def moves_like(moves: Moves, values: FloatArray) -> Moves:
    """A table of the same pattern with other numbers."""
    if isinstance(moves, np.ndarray):
        return values
    like = sparse.csr_array((values, moves.indices, moves.indptr), shape=moves.shape)
    # It is that of the other one: looking through it again would cost as much as a sum.
    like.has_sorted_indices = like.has_canonical_format = True
    return like


def nobody_like(moves: Moves) -> Moves:
    """A table of the same pattern in which nobody moves."""
    return moves_like(moves, np.zeros_like(entries(moves)))


def at_origin(moves: AnyMoves, values: FloatArray) -> FloatArray:
    """The value (d,) of its origin for every entry of a table, to be multiplied with `entries`."""
    return (
        values[:, None]
        if isinstance(moves, np.ndarray)
        else np.repeat(values, np.diff(moves.indptr))
    )


def at_dest(moves: AnyMoves, values: FloatArray) -> FloatArray:
    """The value (d,) of its dest for every entry of a table, to be multiplied with `entries`."""
    return values[None, :] if isinstance(moves, np.ndarray) else values[moves.indices]


def own(moves: AnyMoves) -> BoolArray:
    """Whether an entry of a table is of those who stay, for every one."""
    if isinstance(moves, np.ndarray):
        return np.eye(len(moves), dtype=bool)
    return np.asarray(_origins(moves) == moves.indices)


def _origins(moves: sparse.csr_array) -> IntArray:
    return np.repeat(np.arange(moves.shape[0]), np.diff(moves.indptr))


def places_of(moves: AnyMoves, origin: npt.ArrayLike, dest: npt.ArrayLike) -> IntArray:
    """Numbers (n,) of moves among the entries of a table, row by row; -1 where it has none."""
    d, width = moves.shape
    ends = np.asarray(origin, dtype=np.int64), np.asarray(dest, dtype=np.int64)
    wanted = ends[0] * width + ends[1]
    there = (ends[0] >= 0) & (ends[0] < d) & (ends[1] >= 0) & (ends[1] < width)
    place = wanted
    if not isinstance(moves, np.ndarray):
        keys = _origins(moves) * width + moves.indices
        place = np.searchsorted(keys, wanted)
        there &= place < len(keys)
        there[there] = keys[place[there]] == wanted[there]
    return np.asarray(np.where(there, place, -1))


def ends_of(moves: AnyMoves, chosen: BoolArray | None = None) -> tuple[IntArray, IntArray]:
    """Origin and dest (n,) of the entries of a table that are chosen, origin by origin.

    ``chosen`` has the shape of `entries`; all if it is left out.
    """
    if chosen is None:
        chosen = np.ones(entries(moves).shape, dtype=bool)
    if isinstance(moves, np.ndarray):
        origin, dest = np.nonzero(chosen)
        return origin, dest
    at = np.flatnonzero(chosen)
    origin = np.searchsorted(moves.indptr, at, side="right") - 1
    return origin.astype(np.int64), moves.indices[at].astype(np.int64)


def at_pairs(moves: AnyMoves, origin: IntArray, dest: IntArray) -> FloatArray:
    """The numbers (n,) from each ``origin`` to ``dest``; 0 for moves that are not allowed."""
    if isinstance(moves, np.ndarray):
        return np.asarray(moves[origin, dest])
    at = places_of(moves, origin, dest)
    return np.where(at >= 0, entries(moves)[at], 0.0) if moves.nnz else np.zeros(len(at))


def counted_like(
    moves: Moves, origin: IntArray, dest: IntArray, weights: FloatArray | None = None
) -> Moves:
    """How many go from each ``origin`` (n,) to ``dest`` (n,), as a table of the same pattern.

    ``weights`` (n,) are people each. Moves that are not allowed are in no sparse table.
    """
    if isinstance(moves, np.ndarray):
        n_rows, n = moves.shape
        counts = np.bincount(np.asarray(origin) * n + dest, weights, n_rows * n)
        return np.asarray(counts, dtype=np.float64).reshape(n_rows, n)
    at = places_of(moves, origin, dest)
    known = at >= 0
    some = None if weights is None else weights[known]
    return moves_like(moves, np.bincount(at[known], some, moves.nnz).astype(np.float64))


def most_of_origin(moves: AnyMoves) -> FloatArray:
    """The largest number of each state's row, (d,); 0 where that has no entries."""
    if isinstance(moves, np.ndarray):
        return np.asarray(moves.max(axis=1))
    largest = np.zeros(moves.shape[0])
    some = np.flatnonzero(np.diff(moves.indptr))
    if len(some):
        largest[some] = np.maximum.reduceat(moves.data, moves.indptr[some])
    return largest


def normalised_rows(moves: Moves) -> Moves:
    """Rows that sum to 1, or to 0 where all of one is 0."""
    total = origin_sums(moves)
    return moves_like(moves, entries(moves) / at_origin(moves, np.where(total > 0, total, 1.0)))


def origin_sums(moves: AnyMoves) -> FloatArray:
    """All who leave or stay in each state, (d,)."""
    if isinstance(moves, np.ndarray):
        return np.asarray(moves.sum(axis=1))
    sums = np.bincount(_origins(moves), moves.data, moves.shape[0])
    return np.asarray(sums, dtype=np.float64)


def dest_sums(moves: AnyMoves) -> FloatArray:
    """All who come to or stay in each state, (d,)."""
    if isinstance(moves, np.ndarray):
        return np.asarray(moves.sum(axis=0))
    return np.asarray(np.bincount(moves.indices, moves.data, moves.shape[1]), dtype=np.float64)


def diagonal(moves: AnyMoves) -> FloatArray:
    """Those who stay in each state, (d,)."""
    return np.asarray(moves.diagonal(), dtype=np.float64)


def whole(moves: AnyMoves) -> FloatArray:
    """A table (d, d) of a whole or sparse one, for few states."""
    return moves if isinstance(moves, np.ndarray) else np.asarray(moves.toarray())


def states_after(moves: AnyMoves, states: BoolArray) -> BoolArray:
    """The states (d,) that somebody in one of some ``states`` (d,) may move to."""
    there = states.astype(np.float64) @ moves_like(moves, (entries(moves) > 0).astype(np.float64))
    return np.asarray(there > 0)
