"""What every E-step takes and gives."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from agg_core.base.errors import UnreachableError
from agg_core.base.moves import AnyMoves
from agg_core.learn.esteps._kernels import NearMoves, Tokens, first_impossible
from agg_core.model.aggregates import Aggregates
from agg_core.model.emissions import TokenLikelihoods
from agg_core.model.hmm import HMM

__all__ = [
    "ExpectedCounts",
    "Inference",
    "NoiseMap",
    "Part",
    "PoissonInference",
    "compiled_moves",
    "impossible_token",
    "parts_of",
    "runs_of",
    "tokens_of",
    "unexplained",
    "unreachable",
    "writeable",
]


FloatArray = npt.NDArray[np.float64]

NoiseMap = Literal["emission", "identity"]
"""What learners with Poisson noise take the counts for: of symbols, or of the states."""


MOST_RUNS = 8
RUN_BYTES = 200_000_000
"""Runs of sequences sum on their own; together their sums of moves may take this much memory."""


@dataclass(frozen=True)
class ExpectedCounts:
    """Expected counts of the hidden states, summed over sequences.

    Attributes
    ----------
    start : (d,) people in each state at the first step
    transitions : (d, d) moves from row to column, summed over the T - 1 steps; sparse if the
        transitions are
    emission : people per entry of the likelihood table, or None if they were not asked for
    free_energy : the objective of the E-step, lower is better; at M = 1 it is -log p
    messages : what a later call of the same E-step can start from
    sweeps : mean number of forward-backward sweeps that the sequences took
    n_unconverged : sequences that reached the limit of sweeps
    """

    start: FloatArray
    transitions: AnyMoves
    emission: FloatArray | None
    free_energy: float
    messages: Any
    sweeps: float
    n_unconverged: int


class Inference(Protocol):
    """An E-step: parameters and aggregates to expected counts."""

    def __call__(
        self,
        hmm: HMM,
        aggregates: Aggregates,
        likelihoods: TokenLikelihoods,
        *,
        messages: Any = None,
        tol: float = 1e-6,
        max_sweeps: int = 200,
        with_emission: bool = False,
    ) -> ExpectedCounts:
        """Expected counts under ``hmm``, from ``messages`` of an earlier call if given."""


class PoissonInference(Protocol):
    """An E-step that takes counts for Poisson readings."""

    def __call__(
        self,
        hmm: HMM,
        aggregates: Aggregates,
        likelihoods: TokenLikelihoods,
        *,
        messages: Any = None,
        tol: float = 1e-6,
        max_sweeps: int = 500,
        with_emission: bool = False,
        noise_map: NoiseMap = "emission",
    ) -> ExpectedCounts:
        """Expected counts under ``hmm``, from ``messages`` of an earlier call if given."""


def tokens_of(aggregates: Aggregates, table: TokenLikelihoods, share: FloatArray) -> Tokens:
    """What the compiled code takes: the tokens, with ``share`` of their group's people each."""
    return Tokens(
        indptr=aggregates.indptr,
        share=share,
        sizes=aggregates.sizes,
        row=table.row,
        table_indptr=table.indptr,
        table_states=table.states,
        table_values=table.values,
        length=aggregates.length,
        n_states=table.n_states,
    )


def compiled_moves(transmat: AnyMoves) -> FloatArray | NearMoves:
    """Transitions as compiled code takes them, an array (d, d) or those of near states."""
    if isinstance(transmat, np.ndarray):
        return np.ascontiguousarray(transmat)
    return NearMoves(
        indptr=np.asarray(transmat.indptr, dtype=np.int64),
        dest=np.asarray(transmat.indices, dtype=np.int64),
        chance=np.ascontiguousarray(transmat.data),
    )


def writeable(moves: FloatArray | NearMoves) -> FloatArray | NearMoves:
    """The same in memory of one's own if need be.

    What came from another process may be read-only, which is another type to compiled code.
    """
    if isinstance(moves, np.ndarray):
        return np.require(moves, requirements="W")
    return NearMoves._make(np.require(part, requirements="W") for part in moves)


class Part(NamedTuple):
    """Sequences that are worked on apart, from number ``first``; their tokens were at ``here``."""

    tokens: Tokens
    first: int
    here: slice


def parts_of(tokens: Tokens, runs: Iterable[tuple[int, int]]) -> list[Part]:
    """All sequences, in `runs_of` them.

    Sums over parts, added in their order, are the same on any number of threads and machines.
    """
    found = []
    for first, last in runs:
        indptr = tokens.indptr[first * tokens.length : last * tokens.length + 1]
        here = slice(int(indptr[0]), int(indptr[-1]))
        part = tokens._replace(
            indptr=indptr - indptr[0], share=tokens.share[here], sizes=tokens.sizes[first:last],
            row=tokens.row[here],
        )  # fmt: skip
        found.append(Part(part, first, here))
    return found


def runs_of(aggregates: Aggregates, n_moves: int) -> list[tuple[int, int]]:
    """Runs of sequences, first and end, that are worked on apart with sums of all moves each."""
    n_runs = int(np.clip(RUN_BYTES // (8 * max(n_moves, 1)), 1, MOST_RUNS))
    n_runs = min(n_runs, aggregates.n_sequences)
    return list(pairwise(run * aggregates.n_sequences // n_runs for run in range(n_runs + 1)))


def unreachable(
    hmm: HMM, aggregates: Aggregates, tokens: Tokens, sequence: int
) -> UnreachableError:
    """The error for a sequence that cannot happen, which tells the token that shows it, if any."""
    found = impossible_token(hmm, tokens, [sequence])
    return unexplained(aggregates, sequence, None if found is None else found[1])


def unexplained(aggregates: Aggregates, sequence: int, token: int | None) -> UnreachableError:
    """The error for a sequence that cannot happen, and for the token that shows it if one does."""
    if token is None:
        return UnreachableError(
            f"The observations of sequence {sequence} together are too improbable under these "
            "parameters to be told from impossible; smooth the emission, use shorter windows or "
            "start from transitions that let everybody move.",
            code="sequence-improbable",
        )
    step = aggregates.locate(token)[1]
    return UnreachableError(
        f"The observation of symbol {aggregates.symbol[token]} in sequence {sequence} at step "
        f"{step} cannot happen under these parameters; smooth the emission (a small chance of a "
        "neighbouring cell) or start from transitions without zeros.",
        code="observation-impossible",
    )


def impossible_token(hmm: HMM, tokens: Tokens, sequences: Iterable[int]) -> tuple[int, int] | None:
    """The first of some sequences that shows a token which no state explains, and that token.

    States are those that can be reached from the steps before; None if all are explained.
    """
    moves, startprob = writeable(compiled_moves(hmm.transmat)), np.asarray(hmm.startprob)
    for sequence in sequences:
        token = int(first_impossible(moves, startprob, tokens, sequence))
        if token >= 0:
            return sequence, token
    return None
