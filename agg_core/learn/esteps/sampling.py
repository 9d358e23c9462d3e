"""MCMC over individual assignments: an E-step without bias at any group size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import xlogy

from agg_core.base.engine import current
from agg_core.base.errors import InputError
from agg_core.base.moves import AnyMoves, entries, moves_like
from agg_core.learn.esteps._sampling_kernels import IMPOSSIBLE, NearTables, Slots, sample_links
from agg_core.learn.esteps.base import (
    ExpectedCounts,
    impossible_token,
    runs_of,
    tokens_of,
    unexplained,
)
from agg_core.model.aggregates import Aggregates
from agg_core.model.emissions import TokenLikelihoods
from agg_core.model.hmm import HMM

__all__ = [
    "DrawnMoves",
    "sampled_counts",
    "sampled_moves",
    "sampled_paths",
    "tables_of",
    "whole_people",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Tables: TypeAlias = FloatArray | Sequence[sparse.csr_array]
"""H matrices of transitions: (H, d, d), or sparse ones of one pattern."""

SWAPS_EACH = 3
"""Exchanges of futures offered to each person and step in a round, if the group is that large."""

FIRST_ROUNDS = 30
"""Rounds that a chain runs from its random beginning before anything is counted."""

MOST_ROUNDS = 500


@dataclass(frozen=True)
class _Chain:
    """Where the sampler is with a run of groups: states and links of slots, generators of groups.

    The groups begin at number ``first_group``. What is sampled of one run does not touch others.
    """

    first_group: int
    slots: Slots
    entry: IntArray
    after: IntArray
    before: IntArray
    generators: npt.NDArray[np.uint64]

    @property
    def groups(self) -> slice:
        """Which of all groups these are."""
        return slice(self.first_group, self.first_group + len(self.generators))


@dataclass(frozen=True)
class _Chains:
    """Those of all groups, in states by these likelihoods.

    ``possible`` (K,) groups were found to have a way through what they showed, under chances that
    are above zero where ``support`` says so.
    """

    likelihoods: TokenLikelihoods
    runs: tuple[_Chain, ...]
    possible: BoolArray
    support: tuple[BoolArray, BoolArray] | None = None


@dataclass(frozen=True)
class _Drawn:
    """Means over rounds: start (d,), pairs of each table, shown (table entries,); stuck groups."""

    start: FloatArray
    pairs: FloatArray
    shown: FloatArray
    log_values: float
    stuck: BoolArray
    n_rounds: int


@dataclass(frozen=True)
class DrawnMoves:
    """Expected moves by each of H matrices, and what the sampler goes on from.

    ``moves`` (H, d, d) are sparse tables where the transitions are. ``n_stuck`` groups still hold a
    move of chance zero.
    """

    moves: Any
    n_stuck: int
    messages: Any


def sampled_counts(
    hmm: HMM,
    aggregates: Aggregates,
    likelihoods: TokenLikelihoods,
    *,
    messages: Any = None,
    tol: float = 0.0,  # noqa: ARG001  # a sampler has no distance to go
    max_sweeps: int = 200,
    with_emission: bool = False,
    seed: int = 0,
) -> ExpectedCounts:
    """Expected counts by sampling who continues whom, given the counts of a group.

    Given the tokens of a group, two things are hidden: which person at t + 1 continues which
    person at t, and everybody's state. A Markov chain (Metropolis within Gibbs) draws from their
    exact posterior by turns::

        futures   a person i of the group draws another future by A(x_i, y), and exchanges all
                  that follows step t with j, whose it is, with Metropolis' and Hastings' chance
        states    those of a person given what they showed: one after the other given those beside
                  it, or in one round of ten at all steps at once, forward along their links and
                  backward with a draw each

    This is the augmentation by individuals of collective models (Sheldon & Dietterich 2011) with
    the moves of tracking by sampled associations (Oh, Russell & Sastry 2009). Nothing is taken to
    be large or independent, so that only noise of sampling is left, which falls as one over the
    square root of the rounds. Each of the ``max_sweeps`` rounds (500 at most) costs the same for
    every size of group. A call without ``messages`` begins at random and runs 30 more rounds.

    ``free_energy`` is minus the mean log-probability of the people drawn, states and links
    included: the complete-data energy, which no other learner minimises. The same ``seed`` gives
    the same counts for any number of threads.

    Raises
    ------
    InputError
        If groups hold parts of people; `UnreachableError` if an observation has no state that can
        be reached under ``hmm``.
    """
    chains, drawn = _rounds(
        hmm.startprob, tables_of(hmm.transmat), None, aggregates, likelihoods, messages, max_sweeps,
        seed, with_emission=with_emission,
    )  # fmt: skip
    if drawn.stuck.any():
        chains = _checked(chains, hmm, aggregates, likelihoods, drawn.stuck)
    pairs, chances = drawn.pairs[0], entries(hmm.transmat)
    energy = -float(
        xlogy(drawn.start, np.maximum(hmm.startprob, IMPOSSIBLE)).sum()
        + xlogy(pairs, np.maximum(chances, IMPOSSIBLE)).sum()
        + drawn.log_values
    )
    return ExpectedCounts(
        # What a chain has not got away from yet is no evidence of what cannot be.
        start=np.where(hmm.startprob > 0, drawn.start, 0.0),
        transitions=moves_like(hmm.transmat, np.where(chances > 0, pairs, 0.0)),
        emission=drawn.shown[: len(likelihoods.values)] if with_emission else None,
        free_energy=energy - likelihoods.log_scale_of(aggregates),
        messages=chains,
        sweeps=float(drawn.n_rounds),
        n_unconverged=int(drawn.stuck.sum()),
    )


def sampled_moves(
    startprob: FloatArray,
    transmats: Tables,
    which: IntArray,
    aggregates: Aggregates,
    likelihoods: TokenLikelihoods,
    *,
    messages: Any = None,
    max_sweeps: int = 200,
    seed: int = 0,
) -> DrawnMoves:
    """Expected moves where transitions differ from step to step; otherwise as `sampled_counts`.

    Between steps t and t + 1 group k moves by ``transmats[which[k, t]]``, one of H matrices
    (H, d, d), or of H sparse ones of one pattern; ``which`` is (K, T - 1). ``startprob`` (d,) holds
    at the first step of every group.

    Raises
    ------
    InputError
        If groups hold parts of people.
    """
    chains, drawn = _rounds(
        startprob, transmats, which, aggregates, likelihoods, messages, max_sweeps, seed
    )
    moves: Tables
    if isinstance(transmats, np.ndarray):
        moves = np.where(transmats > 0, drawn.pairs, 0.0)
    else:
        moves = [
            moves_like(table, np.where(table.data > 0, pairs, 0.0))
            for table, pairs in zip(transmats, drawn.pairs, strict=True)
        ]
    return DrawnMoves(moves=moves, n_stuck=int(drawn.stuck.sum()), messages=chains)


def sampled_paths(
    hmm: HMM,
    aggregates: Aggregates,
    likelihoods: TokenLikelihoods,
    *,
    messages: Any = None,
    max_sweeps: int = 30,
    seed: int = 0,
) -> tuple[IntArray, Any]:
    """States (N, T) of people who may have been, given the counts of their groups.

    One draw from what `sampled_counts` averages, after ``max_sweeps`` rounds: people of a group
    follow each other, group by group. Returns it, and what the sampler goes on from.

    Raises
    ------
    InputError
        If groups hold parts of people.
    """
    chains, _ = _rounds(
        hmm.startprob, tables_of(hmm.transmat), None, aggregates, likelihoods, messages, max_sweeps,
        seed,
    )  # fmt: skip
    paths = []
    for chain in chains.runs:
        states = chain.slots.states[chain.entry]
        path, at = np.empty(states.T.shape, dtype=np.int64), np.arange(states.shape[1])
        for t in range(aggregates.length):
            path[:, t] = states[t, at]
            at = chain.after[t][at] if t < aggregates.length - 1 else at
        paths.append(path)
    return np.concatenate(paths), chains


def _rounds(
    startprob: FloatArray,
    transmats: Tables,
    which: IntArray | None,
    aggregates: Aggregates,
    likelihoods: TokenLikelihoods,
    messages: Any,
    max_sweeps: int,
    seed: int,
    *,
    with_emission: bool = False,
) -> tuple[_Chains, _Drawn]:
    """Run chains on, or from their random beginning, and give the means over their rounds."""
    begins = messages is None
    chains = (
        _at_random(aggregates, likelihoods, entries(transmats[0]).size, seed)
        if begins
        else _continued(messages, likelihoods)
    )
    if which is None:
        which = np.zeros((aggregates.n_sequences, max(aggregates.length - 1, 0)), dtype=np.int64)
    rounds = int(np.clip(max_sweeps, 1, MOST_ROUNDS))
    sampled = partial(
        _sampled, np.maximum(startprob, IMPOSSIBLE), *_compiled(transmats),
        rounds + begins * FIRST_ROUNDS, rounds, with_emission,
    )  # fmt: skip
    found = current().map(sampled, ((chain, which[chain.groups]) for chain in chains.runs))
    starts, pairs, shown, log_values, stuck = zip(*(sums for sums, _ in found), strict=True)
    start, pair, show = (sum(part[1:], part[0]) / rounds for part in (starts, pairs, shown))
    drawn = _Drawn(
        start, pair, show, float(sum(log_values)) / rounds, np.concatenate(stuck), rounds
    )
    return replace(chains, runs=tuple(chain for _, chain in found)), drawn


def tables_of(transmat: AnyMoves) -> Tables:
    """Transitions as the only one of some tables."""
    return transmat[None] if isinstance(transmat, np.ndarray) else [transmat]


def _compiled(tables: Tables) -> tuple[Any, Any]:
    """Tables as compiled code takes them, and with rows and columns exchanged."""
    if isinstance(tables, np.ndarray):
        possible = np.maximum(tables, IMPOSSIBLE)
        return possible, np.ascontiguousarray(possible.transpose(0, 2, 1))
    like, chance = tables[0], np.maximum([table.data for table in tables], IMPOSSIBLE)
    numbers = moves_like(like, np.arange(like.nnz, dtype=np.float64))
    turned = sparse.csr_array(numbers.T)
    order = turned.data.astype(np.int64)
    return _near(like, chance), _near(turned, np.ascontiguousarray(chance[:, order]))


def _near(pattern: sparse.csr_array, chance: FloatArray) -> NearTables:
    return NearTables(
        indptr=np.asarray(pattern.indptr, dtype=np.int64),
        dest=np.asarray(pattern.indices, dtype=np.int32),
        chance=chance,
    )


def _sampled(
    startprob: FloatArray,
    tables: Any,
    transposed: Any,
    n_rounds: int,
    n_counted: int,
    with_emission: bool,
    given: tuple[_Chain, IntArray],
) -> tuple[Any, _Chain]:
    """The sums over the last rounds of a chain, and where it came to."""
    chain, which = given
    entry, after, before = chain.entry.copy(), chain.after.copy(), chain.before.copy()
    generators = chain.generators.copy()
    sums = sample_links(
        startprob, tables, transposed, which, chain.slots, entry, after, before, generators,
        SWAPS_EACH, n_rounds, n_counted, 2 * IMPOSSIBLE, with_emission,
    )  # fmt: skip
    return sums, replace(chain, entry=entry, after=after, before=before, generators=generators)


def whole_people(aggregates: Aggregates) -> bool:
    """Whether every group counts whole people, the same at each step that was observed."""
    observed = np.diff(aggregates.indptr) > 0
    totals = np.add.reduceat(
        np.append(aggregates.count, 0.0), np.minimum(aggregates.indptr[:-1], aggregates.n_tokens)
    )
    sizes = np.repeat(aggregates.sizes, aggregates.length)
    return bool(
        (aggregates.count == np.floor(aggregates.count)).all()
        and (totals[observed] == sizes[observed]).all()
    )


def _at_random(
    aggregates: Aggregates, likelihoods: TokenLikelihoods, n_moves: int, seed: int
) -> _Chains:
    """Slots linked at random, each in a state drawn by its likelihood alone."""
    if not whole_people(aggregates):
        raise InputError(
            "Sampling needs whole people: counts that are whole numbers and add up to the size of "
            "the group at every step; use cavity, gaussian_pairs or cfb.",
            code="not-whole-people",
        )
    rng = np.random.default_rng(seed)
    slots = _slots(aggregates, likelihoods)
    n, length = slots.row.shape[1], aggregates.length
    group = np.repeat(np.arange(aggregates.n_sequences), np.diff(slots.first))
    after = np.empty((max(length - 1, 0), n), dtype=np.int64)
    before = np.empty((length, n), dtype=np.int64)
    for t in range(length - 1):
        after[t] = np.lexsort(np.stack([rng.random(n), group]))
        before[t + 1, after[t]] = np.arange(n)
    entry = _drawn_entries(slots, rng)
    generators = rng.integers(2**63, size=aggregates.n_sequences, dtype=np.uint64)
    runs = []
    for first, last in runs_of(aggregates, n_moves):
        a, b = slots.first[first], slots.first[last]
        here = slots._replace(
            first=slots.first[first : last + 1] - a, row=np.ascontiguousarray(slots.row[:, a:b])
        )
        runs.append(
            _Chain(
                first_group=first,
                slots=here,
                entry=np.ascontiguousarray(entry[:, a:b]),
                after=after[:, a:b] - a,
                before=before[:, a:b] - a,
                generators=generators[first:last].copy(),
            )
        )
    return _Chains(likelihoods, tuple(runs), np.zeros(aggregates.n_sequences, dtype=bool))


def _continued(chains: _Chains, likelihoods: TokenLikelihoods) -> _Chains:
    """Chains that go on under the likelihoods of now; a learned emission has changed them."""
    if likelihoods is chains.likelihoods:
        return chains
    runs, nobody = [], np.zeros_like(chains.possible)
    for chain in chains.runs:
        slots = Slots(chain.slots.first, chain.slots.row, *_table(likelihoods))
        entry = _kept_states(chain, slots, likelihoods.n_states)
        runs.append(replace(chain, slots=slots, entry=entry))
    return _Chains(likelihoods, tuple(runs), nobody)


def _kept_states(chain: _Chain, slots: Slots, d: int) -> IntArray:
    """Entries of the new table in which everybody keeps the state they had, if it is still there.

    States within a row ascend; who was in one that is ruled out now goes to the next.
    """
    old = chain.slots
    if np.array_equal(slots.indptr, old.indptr) and np.array_equal(slots.states, old.states):
        return chain.entry.copy()
    n_rows = len(slots.indptr) - 1
    place = np.repeat(np.arange(n_rows), np.diff(slots.indptr)) * d + slots.states
    entry = np.searchsorted(place, slots.row * d + old.states[chain.entry])
    return np.asarray(np.clip(entry, slots.indptr[slots.row], slots.indptr[slots.row + 1] - 1))


def _table(likelihoods: TokenLikelihoods) -> tuple[IntArray, IntArray, FloatArray]:
    """Indptr, states and values of the likelihoods and of the row of those not observed."""
    d = likelihoods.n_states
    return (
        np.append(likelihoods.indptr, likelihoods.indptr[-1] + d),
        np.concatenate([likelihoods.states, np.arange(d)]),
        np.concatenate([likelihoods.values, np.ones(d)]),
    )


def _slots(aggregates: Aggregates, likelihoods: TokenLikelihoods) -> Slots:
    length = aggregates.length
    first = np.concatenate([[0], np.cumsum(aggregates.sizes)]).astype(np.int64)
    nobody = len(likelihoods.indptr) - 1
    row = np.full((length, first[-1]), nobody, dtype=np.int64)
    each = np.repeat(np.arange(aggregates.n_tokens), aggregates.count.astype(np.int64))
    step = aggregates.step_of_token[each]
    # Tokens lie in the order of their step: the place within the step is what runs on.
    begins = np.searchsorted(step, np.arange(len(aggregates.indptr) - 1))
    row[step % length, first[step // length] + np.arange(len(each)) - begins[step]] = (
        likelihoods.row[each]
    )
    return Slots(first, row, *_table(likelihoods))


def _drawn_entries(slots: Slots, rng: np.random.Generator) -> IntArray:
    """A table entry for every slot, drawn in proportion to its value."""
    running = np.concatenate([[0.0], np.cumsum(slots.values)])
    low, high = running[slots.indptr[slots.row]], running[slots.indptr[slots.row + 1]]
    at = low + rng.random(slots.row.shape) * (high - low)
    entry = np.searchsorted(running, at, side="right") - 1
    return np.asarray(np.clip(entry, slots.indptr[slots.row], slots.indptr[slots.row + 1] - 1))


def _checked(
    chains: _Chains,
    hmm: HMM,
    aggregates: Aggregates,
    likelihoods: TokenLikelihoods,
    stuck: BoolArray,
) -> _Chains:
    """The chains, of whose stuck groups it is known that there is a way.

    Raises
    ------
    UnreachableError
        If a group is stuck because no state explains one of its observations.
    """
    support, possible = (hmm.startprob > 0, entries(hmm.transmat) > 0), chains.possible
    known = chains.support
    if known is None or not all(map(np.array_equal, known, support)):
        possible = np.zeros_like(possible)
    tokens = tokens_of(aggregates, likelihoods, aggregates.shares)
    asked = np.flatnonzero(stuck & ~possible)
    found = impossible_token(hmm, tokens, map(int, asked))
    if found is not None:
        raise unexplained(aggregates, *found)
    possible = possible.copy()
    possible[asked] = True
    return replace(chains, possible=possible, support=support)
