"""What happened between two counts: flows given the counts before and after, and the chances."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from agg_core.base.errors import InputError
from agg_core.counts._table_kernels import draw_tables
from agg_core.counts.erring import ErringPairs
from agg_core.counts.filling import whole_pairs
from agg_core.counts.pairs import CountPairs
from agg_core.counts.smoothing import smoothed
from agg_core.learn.gravity import normalised

__all__ = [
    "FULL",
    "QUICK",
    "SETTLED",
    "Effort",
    "Happened",
    "PosteriorDraws",
    "gaussian_flows",
    "happened_flows",
    "posterior_draws",
    "split_r_hat",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int32]

LONGEST = 200
"""Moves of a chain by state; a longer one is taken back."""

MOST_BYTES = 1 << 28
"""Memory of the tables that are drawn at a time."""

SETTLED = 1.05
"""R-hat above which chains are not taken to have mixed."""


@dataclass(frozen=True)
class Effort:
    """How much is drawn: chains, rounds of each that are kept, and rounds before these."""

    n_chains: int
    n_draws: int
    burn: int


@dataclass(frozen=True)
class PosteriorDraws:
    """Draws of the flow table of one pair of counts.

    ``tables`` (C, R, d, d) are whole people from each state to each, R draws of each of C chains;
    every one has the counts before as sums of its rows and those after as sums of its columns.
    """

    pair: int
    tables: IntArray

    @property
    def mean(self) -> FloatArray:
        """Expected flows (d, d)."""
        return np.asarray(self.tables.mean(axis=(0, 1)))

    @property
    def movers(self) -> FloatArray:
        """People who change their state in each draw, (C, R)."""
        stays = np.trace(self.tables, axis1=2, axis2=3)
        return np.asarray(self.tables.sum(axis=(2, 3)) - stays, dtype=np.float64)


def posterior_draws(
    pairs: CountPairs,
    transmats: FloatArray,
    *,
    n_chains: int = 4,
    n_draws: int = 25,
    burn: int = 20,
    thin: int = 1,
    random_state: int | np.random.Generator | None = None,
) -> Iterator[PosteriorDraws]:
    """Draws of who went where in each pair, given both of its counts and transitions.

    Given the counts before, the rows of a flow table n are multinomial with the rows of
    ``transmats`` (H, d, d) or (1, d, d); given the counts after too, tables with both margins have
    chances in proportion to the product of A(i, j)^n(i, j) / n(i, j)! (Sheldon & Dietterich 2011).
    A Markov chain draws from just that: one person goes elsewhere by the transitions of their cell,
    somebody of those who go there makes room in the same way, and so on until the cell that the
    first one left is full again (a worm; Prokof'ev & Svistunov 2001). No such step is refused, and
    rings of moves close by themselves.

    A round begins as many of these as there are people; ``burn`` rounds go before the first draw of
    a chain and ``thin`` from one draw to the next. Half of the chains begin where as many people
    stay as can, half at random. Counts that are not whole are rounded so that each pair keeps its
    people. The same ``random_state`` gives the same draws for any number of threads.

    Raises
    ------
    InputError
        If there is no chain or no draw to be made.
    """
    if min(n_chains, n_draws, thin) < 1 or burn < 0:
        raise InputError(
            "Draws need a chain, a draw and a round between draws at least, and no negative number "
            f"of rounds before; given were {n_chains}, {n_draws}, {thin} and {burn}.",
            code="value-out-of-range",
        )
    effort, number = Effort(n_chains, n_draws, burn), 0
    for parts in _chains(pairs, transmats, effort, thin, random_state, apart=True):
        for tables in np.stack([tables for tables, _ in parts], axis=1):
            yield PosteriorDraws(number, tables)
            number += 1


def _chains(
    pairs: CountPairs,
    transmats: FloatArray,
    effort: Effort,
    thin: int,
    random_state: int | np.random.Generator | None,
    *,
    apart: bool,
) -> Iterator[list[tuple[IntArray, npt.NDArray[np.int64]]]]:
    """Tables and movers of each chain, of some pairs after the others (see `draw_tables`)."""
    whole = whole_pairs(pairs.before, pairs.after).astype(np.int64)
    which = pairs.which(transmats)
    running = np.cumsum(transmats, axis=2)
    seeds = np.random.default_rng(random_state).integers(
        2**63, size=(effort.n_chains, pairs.n_pairs), dtype=np.uint64
    )
    tables_each = effort.n_chains * (effort.n_draws if apart else 1)
    at_once = max(1, MOST_BYTES // (4 * tables_each * pairs.n_states**2))
    for first in range(0, pairs.n_pairs, at_once):
        some = slice(first, first + at_once)
        yield [
            draw_tables(
                whole[some, 0], whole[some, 1], which[some], running,
                chain < (effort.n_chains + 1) // 2, seeds[chain, some], effort.burn,
                effort.n_draws, thin, LONGEST * pairs.n_states, apart,
            )
            for chain in range(effort.n_chains)
        ]  # fmt: skip


def gaussian_flows(before: FloatArray, after: FloatArray, transmat: FloatArray) -> FloatArray:
    """Expected flows (d, d) of one pair where cells hold many people.

    Flows are normal given the counts before, with mean y_i A(i, j) and the covariance of
    multinomial rows; given the counts after too the mean moves by y_i A(i, j) (u_j - A_i u), with
    u the residual of the counts after weighed by the inverse of their covariance (Gaussian CGM;
    Liu, Sheldon & Dietterich 2014). What falls below nobody is cut at zero and the rows are scaled
    to their people.
    """
    inverse = _inverse_spread(before, transmat)
    u = inverse @ (after - before @ transmat)
    flows = before[:, None] * transmat * (1 + u[None, :] - (transmat @ u)[:, None])
    return _cut(flows, before)


def _inverse_spread(people: FloatArray, transmat: FloatArray) -> FloatArray:
    """Inverse of the covariance of the next counts of so many people."""
    spread = np.diag(people @ transmat) - transmat.T @ (people[:, None] * transmat)
    return np.asarray(np.linalg.pinv(spread, hermitian=True))


def _cut(flows: FloatArray, people: FloatArray) -> FloatArray:
    """Flows that are at least nobody, and add up to the people of each row."""
    return normalised(np.maximum(flows, 0.0)) * people[:, None]


def _smoothed_flows(pairs: ErringPairs, transmats: FloatArray) -> FloatArray:
    """Expected flows (H, d, d) given all counts of each run, which err.

    They are `gaussian_flows` in expectation over people before and after as the smoother tells
    them: what multiplies people and the residual u, of which both are uncertain, has the product of
    their means and their covariance.
    """
    told = smoothed(pairs, transmats)
    told = smoothed(pairs, transmats, (told.before, told.after))
    flows = np.zeros((len(pairs.slots), pairs.n_states, pairs.n_states))
    for p, (slot, which) in enumerate(zip(pairs.slot, pairs.which(transmats), strict=True)):
        A, people = transmats[which], np.maximum(told.before[p], 0.0)
        inverse = _inverse_spread(people, A)
        u = inverse @ (told.after[p] - told.before[p] @ A)
        both = people[:, None] * u + (told.cross[p] - told.of_before[p] @ A) @ inverse
        flows[slot] += _cut(A * (people[:, None] + both - (A * both).sum(axis=1)[:, None]), people)
    return flows


def split_r_hat(values: FloatArray) -> float:
    """How far chains (..., C, R) are from having mixed: 1 when they have (Gelman et al. 2013).

    The root of the variance of all halves of chains over that within them; of several quantities
    both are sums, since the worst of many is large by chance alone. 1 where nothing varies, not a
    number for fewer than four draws.
    """
    n = values.shape[-1] // 2
    if n < 2:
        return float("nan")
    halves = np.concatenate([values[..., :n], values[..., -n:]], axis=-2)
    within = float(halves.var(axis=-1, ddof=1).mean(axis=-1).sum())
    between = float(halves.mean(axis=-1).var(axis=-1, ddof=1).sum())
    if within == 0:
        return 1.0 if between == 0 else float("inf")
    return float(np.sqrt(((n - 1) / n * within + between) / within))


FULL, QUICK = Effort(4, 40, 8), Effort(1, 6, 3)
"""For the flows that are shown; for simulated worlds, of which there are many, and many people."""

MOST_FULLY, MOST_QUICKLY = 250_000, 1_000_000
"""People times pairs up to which tables are drawn so: some 30 and 5 seconds of a core."""

CROWDED, MOST_CROWDED = 30.0, 30_000
"""People per occupied cell from which on flows of more people times pairs are taken for normal.

Where cells hold fewer, normal flows have movement that never was; where they hold as many, draws
are no nearer to what happened.
"""

ENOUGH_DRAWS = 20
"""Draws of a chain below which R-hat is mostly noise."""


@dataclass(frozen=True)
class Happened:
    """Flows as they are expected given the counts before and after.

    ``flows`` (H, d, d) are people from each state to each at every time of day, a sum over the
    days; ``r_hat`` is the split R-hat of the people who change their state, the larger of that of
    their sum and that over all times of day, not a number where too little was drawn to know it;
    ``method`` is "drawn" or "normal".
    """

    flows: FloatArray
    r_hat: float
    method: str


def happened_flows(
    pairs: CountPairs,
    transmats: FloatArray,
    *,
    effort: Effort = FULL,
    random_state: int | np.random.Generator | None = None,
) -> Happened:
    """Who went where, given both counts of each pair and transitions (H, d, d) or (1, d, d).

    Tables of flows are drawn (`posterior_draws`) with the ``effort``, or with that of `QUICK` for
    more people than `MOST_FULLY`. For more than `MOST_QUICKLY`, or `MOST_CROWDED` in crowded cells,
    flows are taken for normal (`gaussian_flows`), and so they are where counts err, given all
    counts of a run then. The same ``random_state`` gives the same flows.
    """
    if isinstance(pairs, ErringPairs):
        return Happened(_smoothed_flows(pairs, transmats), float("nan"), "normal")
    flows = np.zeros((len(pairs.slots), pairs.n_states, pairs.n_states))
    people = float(pairs.before.sum())
    if people > MOST_FULLY:
        effort = QUICK
    if people > (MOST_CROWDED if pairs.crowd >= CROWDED else MOST_QUICKLY):
        for y, z, slot, which in zip(
            pairs.before, pairs.after, pairs.slot, pairs.which(transmats), strict=True
        ):
            flows[slot] += gaussian_flows(y, z, transmats[which])
        return Happened(flows, float("nan"), "normal")
    movers = np.zeros((len(pairs.slots), effort.n_chains, effort.n_draws))
    number = 0
    for parts in _chains(pairs, transmats, effort, 1, random_state, apart=False):
        slots = pairs.slot[number : number + len(parts[0][0])]
        number += len(slots)
        for chain, (tables, moved) in enumerate(parts):
            for slot, table, numbers in zip(slots, tables[:, 0], moved, strict=True):
                flows[slot] += table
                movers[slot, chain] += numbers
    r_hat = max(split_r_hat(movers.sum(axis=0)), split_r_hat(movers))
    if effort.n_draws < ENOUGH_DRAWS:
        r_hat = float("nan")
    return Happened(flows / (effort.n_chains * effort.n_draws), r_hat, "drawn")
