"""Numbers of moves from each state to each: whole (d, d) tables, or sparse ones of allowed moves.

A sparse table has a fixed pattern, the moves that may be, with an entry for each of them even where
it is 0 just now; tables of one fit share it. So arithmetic goes entry by entry, never by scipy's
sums of sparse tables, which drop zeros. The functions here are what learners need of both kinds;
with them a formula is written once.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

__all__ = [
    "AnyMoves",
    "as_moves",
    "at_dest",
    "at_origin",
    "at_pairs",
    "dest_sums",
    "diagonal",
    "entries",
    "moves_like",
    "nobody_like",
    "origin_sums",
    "pattern_of_pairs",
    "whole",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
AnyMoves: TypeAlias = "FloatArray | sparse.csr_array"
"""A table (d, d), whole or sparse."""


def as_moves(table: Any) -> AnyMoves:
    """A table as float64: sparse ones in CSR, columns of rows in order and none twice."""
    if not sparse.issparse(table):
        return np.asarray(table, dtype=np.float64)
    found: sparse.csr_array = table.tocsr().astype(np.float64)
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


def entries(moves: AnyMoves) -> FloatArray:
    """The numbers of a table: (d, d) of a whole one, (n,) of a sparse one, origin by origin."""
    return moves if isinstance(moves, np.ndarray) else np.asarray(moves.data)


def moves_like(moves: AnyMoves, values: FloatArray) -> AnyMoves:
    """A table of the same pattern with other numbers."""
    if isinstance(moves, np.ndarray):
        return values
    like = sparse.csr_array((values, moves.indices, moves.indptr), shape=moves.shape)
    # It is that of the other one: looking through it again would cost as much as a sum.
    like.has_sorted_indices = like.has_canonical_format = True
    return like


def nobody_like(moves: AnyMoves) -> AnyMoves:
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


def at_pairs(moves: AnyMoves, origin: IntArray, dest: IntArray) -> FloatArray:
    """The numbers (n,) from each ``origin`` to ``dest``; 0 for moves that are not allowed."""
    if isinstance(moves, np.ndarray):
        return np.asarray(moves[origin, dest])
    d = moves.shape[0]
    keys = np.repeat(np.arange(d), np.diff(moves.indptr)) * d + moves.indices
    wanted = np.asarray(origin, dtype=np.int64) * d + dest
    at = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
    if not len(keys):
        return np.zeros(len(wanted))
    return np.where(keys[at] == wanted, moves.data[at], 0.0)


def origin_sums(moves: AnyMoves) -> FloatArray:
    """All who leave or stay in each state, (d,)."""
    if isinstance(moves, np.ndarray):
        return np.asarray(moves.sum(axis=1))
    origin = np.repeat(np.arange(moves.shape[0]), np.diff(moves.indptr))
    return np.asarray(np.bincount(origin, moves.data, moves.shape[0]), dtype=np.float64)


def dest_sums(moves: AnyMoves) -> FloatArray:
    """All who come to or stay in each state, (d,)."""
    if isinstance(moves, np.ndarray):
        return np.asarray(moves.sum(axis=0))
    return np.asarray(np.bincount(moves.indices, moves.data, moves.shape[0]), dtype=np.float64)


def diagonal(moves: AnyMoves) -> FloatArray:
    """Those who stay in each state, (d,)."""
    return np.asarray(moves.diagonal(), dtype=np.float64)


def whole(moves: AnyMoves) -> FloatArray:
    """A table (d, d) of a whole or sparse one, for few states."""
    return moves if isinstance(moves, np.ndarray) else np.asarray(moves.toarray())
