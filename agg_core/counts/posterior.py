"""What happened between two counts: flows given the counts before and after, and the chances."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from agg_core.base.engine import current
from agg_core.base.errors import InputError
from agg_core.counts._table_kernels import add_moves, begin_chains, draw_moves
from agg_core.counts.beside import apart_from_panel, joined_flows
from agg_core.counts.crossings import NO_GATES, CrossingCounts, GateCells, conditional_flows
from agg_core.counts.erring import ErringPairs
from agg_core.counts.filling import whole_pairs
from agg_core.counts.mixing import SETTLED, effective_sizes, split_r_hat, split_r_hats
from agg_core.counts.pair_tables import PairFlows, PairTables
from agg_core.counts.pairs import CountPairs
from agg_core.counts.panel import Panel
from agg_core.counts.smoothing import smoothed
from agg_core.learn.gravity import normalised

__all__ = [
    "FULL",
    "QUICK",
    "Drawn",
    "Effort",
    "FlowChains",
    "Happened",
    "Mixing",
    "can_be_drawn",
    "gaussian_flows",
    "happened_flows",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int32]

LONGEST = 200
"""Moves of a chain by state; a longer one is taken back."""

PER_CHAIN = 8
"""People of whom one begins a chain of moves in a round: most chains move many, so that draws from
round to round are nearly independent."""

PARTS_EACH = 2
"""Parts of the pairs for each worker of the engine, so that none waits long for the last."""

MOST_BYTES = 1 << 28
"""Memory of the tables that are drawn at a time."""


@dataclass(frozen=True)
class Effort:
    """How much is drawn: chains, rounds of each that are kept, and rounds before these."""

    n_chains: int
    n_draws: int
    burn: int


@dataclass(frozen=True)
class Drawn:
    """Draws of who went where in some pairs of counts, by one chain.

    ``sums`` (p, d, d) are flow tables of the pairs with the numbers ``pairs``, summed over R draws;
    ``movers`` (p, R) change their state. ``before`` (p, d) are whole people, by whose order
    ``moves`` (R, N) are the states that each of them goes to, (0, N) unless draws are kept apart.
    """

    pairs: slice
    chain: int
    before: npt.NDArray[np.int64]
    sums: IntArray
    movers: npt.NDArray[np.int64]
    moves: IntArray

    def add_to(self, series: IntArray, group: npt.NDArray[np.int64]) -> None:
        """Add each draw to flows (R, G, d, d) of groups, that of each pair being (p,) a number."""
        add_moves(self.moves, self.before, group, series)


class FlowChains:
    """Markov chains of who went where in each pair, given both of its counts and transitions.

    Given the counts before, the rows of a flow table n are multinomial with the rows of
    ``transmats`` (H, d, d) or (1, d, d); given the counts after too, tables with both margins have
    chances in proportion to the product of A(i, j)^n(i, j) / n(i, j)! (Sheldon & Dietterich 2011).
    A chain draws from just that: one person goes elsewhere by the transitions of their cell,
    somebody of those who go there makes room in the same way, and so on until the cell that the
    first one left is full again (a worm; Prokof'ev & Svistunov 2001). No such step is refused, and
    rings of moves close by themselves. A round begins one of these for every ``per_chain`` people.

    Where there are gates, tables have chances times the normal density of what these counted: a
    chain of moves as a whole is then taken with the chance by which that density rises, else taken
    back, which keeps it a draw from just that (Metropolis & Hastings).

    Half of the chains begin where as many people stay as can, half at random. Counts that are not
    whole are rounded so that each pair keeps its people. The same ``random_state`` gives the same
    draws for any number of threads, and in whatever portions.

    Raises
    ------
    InputError
        If there is no chain.
    """

    def __init__(
        self,
        pairs: CountPairs,
        transmats: FloatArray,
        *,
        n_chains: int = 4,
        per_chain: int = PER_CHAIN,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        if n_chains < 1:
            raise InputError(
                f"Draws need a chain at least; given were {n_chains}.", code="value-out-of-range"
            )
        self.n_chains, self.per_chain = n_chains, per_chain
        self._whole = whole_pairs(pairs.before, pairs.after).astype(np.int64)
        self._which = pairs.which(transmats)
        self._gates = pairs.crossings
        self._running = np.cumsum(transmats, axis=2)
        self._generators = np.random.default_rng(random_state).integers(
            2**63, size=(n_chains, pairs.n_pairs), dtype=np.uint64
        )
        people = self._whole[:, 0].sum(axis=1)
        self._starts = np.concatenate([[0], np.cumsum(people)]).astype(np.int64)
        self._goes = np.empty((n_chains, int(self._starts[-1])), dtype=np.int32)
        for chain in range(n_chains):
            begin_chains(
                self._whole[:, 0], self._whole[:, 1], self._starts, chain < (n_chains + 1) // 2,
                self._generators[chain], self._goes[chain],
            )  # fmt: skip

    def drawn(
        self, n_draws: int, *, burn: int = 0, thin: int = 1, apart: bool = True
    ) -> Iterator[Drawn]:
        """Draws of some pairs after the others, all chains of the same pairs in turn.

        ``burn`` rounds go before the first draw and ``thin`` from one draw to the next; chains go
        on from where the draws before left them. Every draw has the counts before as sums of its
        rows and those after as sums of its columns.

        Raises
        ------
        InputError
            If there is no draw to be made.
        """
        if min(n_draws, thin) < 1 or burn < 0:
            raise InputError(
                "Draws need a draw and a round between draws at least, and no negative number of "
                f"rounds before; given were {n_draws}, {thin} and {burn}.",
                code="value-out-of-range",
            )
        n_pairs, _, d = self._whole.shape
        most_people = int(np.diff(self._starts).max(initial=0))
        drawn = partial(_draws, self._running, self.per_chain, burn, n_draws, thin, apart, False)
        at_once = max(1, MOST_BYTES // (4 * max(d**2, n_draws * most_people * apart)))
        for first in range(0, n_pairs, at_once):
            some = slice(first, min(first + at_once, n_pairs))
            for chain in range(self.n_chains):
                yield self._drawn_of(chain, some, drawn)

    @property
    def place(self) -> tuple[IntArray, npt.NDArray[np.uint64]]:
        """Where everybody goes in each chain, and what draws next: all that it goes on from."""
        return self._goes, self._generators

    @place.setter
    def place(self, place: tuple[IntArray, npt.NDArray[np.uint64]]) -> None:
        self._goes, self._generators = place

    def moved_by(self, transmats: FloatArray) -> None:
        """Go on by other transitions (H, d, d), as many as those before."""
        self._running = np.cumsum(transmats, axis=2)

    def summed(self, n_draws: int, *, burn: int = 0) -> FloatArray:
        """The next flows (H, d, d) of all pairs by transitions, a mean over draws of all chains."""
        drawn = partial(_draws, self._running, self.per_chain, burn, n_draws, 1, False, True)
        everything = slice(0, len(self._whole))
        flows = np.zeros(self._running.shape)
        for chain in range(self.n_chains):
            for part in self._gone(chain, everything, drawn):
                flows += part.sums
        return flows / (n_draws * self.n_chains)

    def _drawn_of(self, chain: int, some: slice, drawn: Callable[[_Begun], _Gone]) -> Drawn:
        """The next draws of one chain of some pairs."""
        gone = self._gone(chain, some, drawn)
        return Drawn(
            some, chain, self._whole[some, 0], np.concatenate([part.sums for part in gone]),
            np.concatenate([part.movers for part in gone]),
            np.concatenate([part.moves for part in gone], axis=1),
        )  # fmt: skip

    def _gone(self, chain: int, some: slice, drawn: Callable[[_Begun], _Gone]) -> list[_Gone]:
        """The next draws of one chain of some pairs, parts of which are drawn side by side."""
        n_parts = max(1, min(PARTS_EACH * current().n_workers, some.stop - some.start))
        bounds = np.linspace(some.start, some.stop, n_parts + 1).astype(np.int64)
        begun = []
        for first, last in pairwise(bounds):
            starts = self._starts[first : last + 1]
            people = slice(int(starts[0]), int(starts[-1]))
            begun.append(
                _Begun(
                    self._whole[first:last], starts - starts[0], self._goes[chain, people],
                    self._which[first:last], self._generators[chain, first:last],
                    _gates_of(self._gates, slice(first, last)),
                )
            )  # fmt: skip
        gone = list(current().map(drawn, begun))
        whole = slice(int(self._starts[some.start]), int(self._starts[some.stop]))
        self._goes[chain, whole] = np.concatenate([part.goes for part in gone])
        self._generators[chain, some] = np.concatenate([part.generators for part in gone])
        return gone


class _Gates(NamedTuple):
    """Which moves pass gates, what these counted within some pairs, and how surely, (p, G)."""

    cells: GateCells
    counts: FloatArray
    precision: FloatArray


def _gates_of(gates: CrossingCounts | None, some: slice) -> _Gates:
    if gates is None:
        none = np.zeros((some.stop - some.start, 0))
        return _Gates(NO_GATES, none, none)
    counts = np.where(gates.seen, gates.counts, 0.0)
    return _Gates(gates.cells, counts[some], gates.precision[some])


class _Begun(NamedTuple):
    """Where a chain is with some pairs: their counts, people, rows and generators."""

    whole: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    goes: IntArray
    which: npt.NDArray[np.int64]
    generators: npt.NDArray[np.uint64]
    gates: _Gates


class _Gone(NamedTuple):
    """What was drawn, and where the chain is now."""

    sums: IntArray
    movers: npt.NDArray[np.int64]
    moves: IntArray
    goes: IntArray
    generators: npt.NDArray[np.uint64]


def _draws(
    running: FloatArray,
    per_chain: int,
    burn: int,
    n_draws: int,
    thin: int,
    apart: bool,
    added: bool,
    begun: _Begun,
) -> _Gone:
    """Draws of some pairs, their tables ``added`` up by their transitions or each on its own."""
    goes, generators = begun.goes.copy(), begun.generators.copy()
    n_pairs = len(begun.whole)
    table = begun.which if added else np.arange(n_pairs)
    gates = begun.gates
    sums, movers, moves = draw_moves(
        begun.whole[:, 0], begun.whole[:, 1], begun.starts, goes, begun.which, running, generators,
        table, len(running) if added else n_pairs, burn, n_draws, thin, per_chain,
        LONGEST * begun.whole.shape[2], apart, gates.cells.starts, gates.cells.gate,
        gates.cells.times, gates.counts, gates.precision,
    )  # fmt: skip
    return _Gone(sums, movers, moves, goes, generators)


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


def _smoothed_flows(pairs: ErringPairs, transmats: FloatArray) -> Iterator[FloatArray]:
    """Expected flows (d, d) of each pair given all counts of each run, which err.

    They are `gaussian_flows` in expectation over people before and after as the smoother tells
    them: what multiplies people and the residual u, of which both are uncertain, has the product of
    their means and their covariance.
    """
    told = smoothed(pairs, transmats)
    told = smoothed(pairs, transmats, (told.before, told.after))
    for p, which in enumerate(pairs.which(transmats)):
        A, people = transmats[which], np.maximum(told.before[p], 0.0)
        inverse = _inverse_spread(people, A)
        u = inverse @ (told.after[p] - told.before[p] @ A)
        both = people[:, None] * u + (told.cross[p] - told.of_before[p] @ A) @ inverse
        yield _cut(A * (people[:, None] + both - (A * both).sum(axis=1)[:, None]), people)


def _normal_flows(pairs: CountPairs, transmats: FloatArray) -> Iterator[FloatArray]:
    """`gaussian_flows` of each pair, given what gates counted too."""
    gates = pairs.crossings
    both = zip(pairs.before, pairs.after, pairs.which(transmats), strict=True)
    for p, (y, z, which) in enumerate(both):
        if gates is None or not gates.seen[p].any():
            yield gaussian_flows(y, z, transmats[which])
        else:
            yield _cut(conditional_flows(y, z, transmats[which], gates, p), y)


FULL, LESS, QUICK = Effort(4, 160, 64), Effort(4, 80, 24), Effort(1, 32, 24)
"""For the flows that are shown; for those of more people; for simulated worlds, which are many.

With 80 draws or more the worst R-hat of a thousand flows stays below `SETTLED` where chains have
mixed; with fewer it does not, by chance alone.
"""

MOST_FULLY, MOST_DRAWN = 250_000, 1_000_000
"""People times pairs up to which tables are drawn so: up to a minute or two of a core."""

CROWDED, MOST_CROWDED = 30.0, 30_000
"""People per occupied cell from which on flows of more people times pairs are taken for normal.

Where cells hold fewer, normal flows have movement that never was; where they hold as many, draws
are no nearer to what happened.
"""

ENOUGH_DRAWS = 40
"""Draws of a chain below which R-hat is mostly noise."""

MOST_WORK = 60_000_000
"""Chains of moves, one or two minutes of a core, beyond which no rounds are added."""

MOST_SERIES = 1 << 28
"""Memory of the draws of all flows of which R-hat is found; else only those of the day are kept, or
where these are too many as well, of the movers alone."""


@dataclass(frozen=True)
class Mixing:
    """How draws have mixed: split R-hat, and effective sample size, of each flow.

    Those ``by_time`` are (2, H, d, d), those ``of_day`` (2, d, d); None where there are too many
    flows to keep their draws.
    """

    by_time: FloatArray | None
    of_day: FloatArray | None


@dataclass(frozen=True)
class Happened:
    """Flows as they are expected given the counts before and after.

    ``flows`` (H, d, d) are people from each state to each at every time of day, a sum over the
    days. ``r_hat`` is the largest split R-hat of moves that are shown, at a time of day or over the
    day, and of the people who change their state; ``n_eff`` the smallest effective sample size of
    these; both are not a number where too little was drawn to know them. ``mixing`` has those of
    each flow; ``method`` is "drawn" or "normal"; ``rounds`` were made by each chain. ``by_pair``
    are flows of single pairs, None unless asked for and where they are too many.
    """

    flows: FloatArray
    r_hat: float
    method: str
    n_eff: float = float("nan")
    mixing: Mixing | None = None
    rounds: int = 0
    by_pair: PairFlows | None = None


def happened_flows(
    pairs: CountPairs,
    transmats: FloatArray,
    *,
    effort: Effort = FULL,
    threshold: float = 0.0,
    n_times: int | None = None,
    keep_pairs: bool = False,
    random_state: int | np.random.Generator | None = None,
) -> Happened:
    """Who went where, given both counts of each pair and transitions (H, d, d) or (1, d, d).

    Tables of flows are drawn (`FlowChains`) with the ``effort``; with no more than that of `LESS`
    for more people than `MOST_FULLY`. While R-hat is above `SETTLED`, chains go on: as many draws
    are made anew, twice as many rounds apart, and all before them count as burn-in, unless that is
    more than `MOST_WORK` in all. For more people than `MOST_DRAWN`, or `MOST_CROWDED` in crowded
    cells, flows are taken for normal (`gaussian_flows`), and so they are where counts err, given
    all counts of a run then. The same ``random_state`` gives the same flows.

    Moves of more than ``threshold`` people per pair are shown: these have to mix. Times of day are
    numbers of `CountPairs.slot`, modulo ``n_times`` where types of days are told apart. With
    ``keep_pairs`` flows of single pairs are kept, too. Moves of a panel are known: those of others
    are drawn, and these are added.
    """
    known = apart_from_panel(pairs)
    if known.panel is not None:
        others = happened_flows(
            known.pairs, transmats, effort=effort, threshold=threshold, n_times=n_times,
            keep_pairs=keep_pairs, random_state=random_state,
        )  # fmt: skip
        return _with_panel(others, known.panel, pairs)
    kept = PairTables(pairs.n_states) if keep_pairs else None
    if isinstance(pairs, ErringPairs):
        return _added(pairs, _smoothed_flows(pairs, transmats), kept)
    people = float(pairs.before.sum())
    if people > MOST_FULLY and effort.n_draws > LESS.n_draws:
        effort = LESS
    if not can_be_drawn(pairs):
        return _added(pairs, _normal_flows(pairs, transmats), kept)
    chains = FlowChains(
        pairs, transmats, n_chains=effort.n_chains, per_chain=PER_CHAIN, random_state=random_state
    )
    times = pairs.slot % (n_times or len(pairs.slots))
    burn, thin, rounds = effort.burn, 1, 0
    while True:
        rounds += burn + effort.n_draws * thin
        kept = PairTables(pairs.n_states) if keep_pairs else None
        series = _Series(pairs, times, chains.n_chains, effort.n_draws, kept)
        for some in chains.drawn(effort.n_draws, burn=burn, thin=thin, apart=series.apart):
            series.add(some)
        found = series.told(threshold, rounds)
        burn, thin = 0, 2 * thin
        work = people / PER_CHAIN * chains.n_chains * (rounds + effort.n_draws * thin)
        if not found.r_hat > SETTLED or work > MOST_WORK:
            return found


def _with_panel(others: Happened, panel: Panel, pairs: CountPairs) -> Happened:
    """What happened, the moves of a panel being known."""
    moves = panel.moves(pairs.slot, len(pairs.slots), pairs.n_states)
    by_pair = None if others.by_pair is None else joined_flows(others.by_pair, panel)
    return replace(others, flows=others.flows + moves, by_pair=by_pair)


def can_be_drawn(pairs: CountPairs) -> bool:
    """Whether exact counts are of few enough people for `happened_flows` to draw who went where."""
    people = float(pairs.before.sum())
    return people <= (MOST_CROWDED if pairs.crowd >= CROWDED else MOST_DRAWN)


def _added(pairs: CountPairs, tables: Iterator[FloatArray], kept: PairTables | None) -> Happened:
    """Sums of tables (d, d) of all pairs by their slots."""
    flows = np.zeros((len(pairs.slots), pairs.n_states, pairs.n_states))
    for number, (slot, table) in enumerate(zip(pairs.slot, tables, strict=True)):
        flows[slot] += table
        if kept is not None:
            kept.add(number, table)
    return Happened(flows, float("nan"), "normal", by_pair=_made(kept))


def _made(kept: PairTables | None) -> PairFlows | None:
    return None if kept is None else kept.made()


class _Series:
    """Sums of draws over the days: their mean, and how they have mixed."""

    def __init__(
        self,
        pairs: CountPairs,
        times: npt.NDArray[np.int64],
        n_chains: int,
        n_draws: int,
        kept: PairTables | None,
    ) -> None:
        """``times`` (P,) of day are what draws are told apart by; means of pairs are ``kept``."""
        n_times, d = int(times.max(initial=0)) + 1, pairs.n_states
        self.slot, self.times, self.draws = pairs.slot, times, n_chains * n_draws
        self.kept = kept
        self.sums: FloatArray = np.zeros((0, d, d))
        self.per_time = np.bincount(times, minlength=n_times)
        self.flows = np.zeros((len(pairs.slots), d, d))
        self.movers = np.zeros((n_times, n_chains, n_draws))
        each, told = 4 * self.draws * d**2, n_draws >= ENOUGH_DRAWS
        self.by_time = told and each * n_times <= MOST_SERIES
        self.apart = told and each <= MOST_SERIES
        shape = (n_chains, n_draws, n_times if self.by_time else 1, d, d)
        self.series = np.zeros(shape if self.apart else (0,), dtype=np.int32)

    def add(self, drawn: Drawn) -> None:
        """Take in draws of some pairs by one chain."""
        times = self.times[drawn.pairs]
        for slot, time, table, moved in zip(
            self.slot[drawn.pairs], times, drawn.sums, drawn.movers, strict=True
        ):
            self.flows[slot] += table
            self.movers[time, drawn.chain] += moved
        if self.kept is not None:
            self.sums = np.asarray(drawn.sums + (self.sums if drawn.chain else 0), float)
            if drawn.chain == self.movers.shape[1] - 1:
                for number, table in enumerate(self.sums, start=drawn.pairs.start):
                    self.kept.add(number, table / self.draws)
        if self.apart:
            drawn.add_to(self.series[drawn.chain], times if self.by_time else times * 0)

    def told(self, threshold: float, rounds: int) -> Happened:
        """Mean flows, and how the draws of those of more than so many people have mixed."""
        flows, kept = self.flows / self.draws, _made(self.kept)
        if self.movers.shape[-1] < ENOUGH_DRAWS:
            return Happened(flows, float("nan"), "drawn", rounds=rounds, by_pair=kept)
        moved = self.movers.sum(axis=0)
        worst, least = [max(split_r_hat(moved), split_r_hat(self.movers))], [effective_sizes(moved)]
        away = ~np.eye(flows.shape[-1], dtype=bool)

        def of_each(series: IntArray, n_pairs: int) -> FloatArray:
            draws = np.moveaxis(series, (0, 1), (2, 3))
            found = np.stack([split_r_hats(draws), effective_sizes(draws)])
            shown = found[:, away & (draws.mean(axis=(2, 3)) > threshold * n_pairs)]
            worst.append(shown[0].max(initial=0.0))
            least.append(shown[1].min(initial=np.inf))
            return found

        by_time = of_day = None
        if self.by_time:
            numbers = enumerate(self.per_time.tolist())
            by_time = np.stack([of_each(self.series[:, :, at], n) for at, n in numbers], axis=1)
        if self.apart:
            of_day = of_each(self.series.sum(axis=2), int(self.per_time.sum()))
        mixing = Mixing(by_time, of_day)
        r_hat, n_eff = float(max(worst)), float(min(least))
        return Happened(flows, r_hat, "drawn", n_eff, mixing, rounds, kept)
