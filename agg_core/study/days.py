"""What happened on single days on which people were observed: flows of groups, day by day."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from agg_core.base.moves import (
    AnyMoves,
    ends_of,
    entries,
    moves_like,
    table_of_pairs,
)
from agg_core.counts.days import DayErrors, DayFlows, day_flows
from agg_core.counts.pair_tables import PairTables
from agg_core.learn.esteps.sampling import sampled_moves
from agg_core.model.aggregates import Aggregates
from agg_core.model.hmm import HMM
from agg_core.study.result import ESTIMATE
from agg_core.tables.sequences import Sequences

__all__ = [
    "DayWorlds",
    "MovesOfDays",
    "ObservedDays",
    "PeopleDays",
    "moves_by_day",
    "shared_out",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

ROUNDS, WORLD_ROUNDS = 48, 16
"""Rounds of the sampler whose moves are averaged: for flows that are shown, and in worlds."""

MOST_TURNS, NEAR = 200, 1e-9
"""Turns in which what days have is fitted to both of its sums, and how near to these it ends."""


@dataclass(frozen=True)
class ObservedDays:
    """Days on which people were observed, YYYY-MM-DD in local time and in order.

    ``of_window`` has for each time of day the number (W,) of the day on which each of its windows
    begins.
    """

    dates: tuple[str, ...]
    of_window: tuple[IntArray, ...]

    @classmethod
    def of(cls, parts: Sequence[Sequences]) -> ObservedDays:
        """Those of people at each time of day; windows without people have the day before them."""
        named = [part.windows["local_date"].to_numpy(dtype=str) for part in parts]
        used = [of[np.unique(part.window)] for of, part in zip(named, parts, strict=True)]
        dates = np.unique(np.concatenate(used))
        of_window = [np.searchsorted(dates, of, side="right") - 1 for of in named]
        return cls(tuple(map(str, dates)), tuple(of_window))

    @property
    def n_days(self) -> int:
        """Number of days D."""
        return len(self.dates)

    @property
    def slots(self) -> tuple[IntArray, IntArray]:
        """Day and time of each of the tables of moves, those of the same time following."""
        n_times = len(self.of_window)
        return np.tile(np.arange(self.n_days), n_times), np.repeat(np.arange(n_times), self.n_days)


def moves_by_day(
    hmm: HMM,
    groups: Aggregates,
    day: IntArray,
    total: AnyMoves,
    *,
    rounds: int = ROUNDS,
    random_state: int | np.random.Generator | None = None,
) -> Iterator[tuple[int, AnyMoves]]:
    """Each day of groups with the moves (d, d) of its people, summed over the steps of a window.

    ``day`` (K,) is that of each group. Expected moves given what was observed of the groups of the
    day, and given ``hmm``, are averaged over draws of the exact posterior
    (`agg_core.learn.esteps.sampling`), whoever learned. A chain foretells other moves than those
    expected given all groups, as it has no memory and begins alike every day: days are fitted to
    its moves ``total`` (d, d) by `shared_out`, so that all of them together are what it says. All
    tables are of the kind of ``hmm``'s transitions, whole or sparse.
    """
    rng = np.random.default_rng(random_state)
    days, number = np.unique(day, return_inverse=True)
    at, moves, of_day = [], [], []
    for place in range(len(days)):
        mine = groups.take(number == place)
        found = sampled_moves(
            hmm.startprob,
            hmm.transmat[None] if isinstance(hmm.transmat, np.ndarray) else [hmm.transmat],
            np.zeros((mine.n_sequences, max(mine.length - 1, 0)), dtype=np.int64), mine,
            hmm.emission.likelihoods(mine), max_sweeps=rounds, seed=int(rng.integers(2**31)),
        )  # fmt: skip
        drawn = entries(found.moves[0]).ravel()
        some = np.flatnonzero(drawn)
        at.append(some)
        moves.append(drawn[some])
        of_day.append(np.full(len(some), place))
    people = np.bincount(number, groups.sizes)
    tables = shared_out(
        np.concatenate(at), np.concatenate(of_day), np.concatenate(moves), total,
        people.astype(np.float64),
    )  # fmt: skip
    yield from zip(map(int, days), tables, strict=True)


def shared_out(
    at: IntArray, day: IntArray, moves: FloatArray, total: AnyMoves, people: FloatArray
) -> Iterator[AnyMoves]:
    """Moves (d, d) of each of D days that add up to ``total`` (d, d), in proportion to people.

    Known are ``moves`` (n,) of an entry ``at`` on a ``day``: its number among those of ``total``,
    row by row, which of a whole table is origin d + dest. They are
    multiplied by a factor of each day and one of each of ``at`` (iterative proportional fitting;
    Deming & Stephan 1940), which leaves alone how days differ in where people went. Moves in
    ``total`` that no day has are shared by ``people`` (D,).
    """
    share, flat = people / people.sum(), entries(total).ravel()
    there, key = np.unique(at, return_inverse=True)
    wanted = flat[there]
    of_day, factor = share * wanted.sum(), np.ones(len(people))

    def fitted() -> FloatArray:
        weighed = factor[day] * moves
        found = np.bincount(key, weighed, len(there))
        return np.asarray(weighed * np.divide(wanted, found, out=0 * found, where=found > 0)[key])

    for _ in range(MOST_TURNS):
        now = np.bincount(day, fitted(), len(people))
        change = np.divide(of_day, now, out=np.ones_like(now), where=now > 0)
        factor *= change
        if np.abs(change - 1).max(initial=0.0) < NEAR:
            break
    values, unknown = fitted(), flat.copy()
    unknown[there] = 0.0
    for number in range(len(people)):
        table, mine = share[number] * unknown, day == number
        table[at[mine]] += values[mine]
        yield moves_like(total, table.reshape(entries(total).shape))


@dataclass(frozen=True)
class PeopleDays:
    """What happened on each day on which people were observed, at A times of day.

    Attributes
    ----------
    flows : flows of each source by day, sums over the steps of a window (see
        `agg_core.counts.days.DayFlows`); without days where they are too many to keep
    sequences, groups : (D, A) sequences of single people, and groups
    observed : (D, T, S) people observed in each state at each step, for each time; none of
        positions
    """

    flows: Mapping[str, DayFlows]
    sequences: IntArray
    groups: IntArray
    observed: tuple[FloatArray, ...] = ()

    @property
    def estimate(self) -> DayFlows:
        """Those of the estimate."""
        return self.flows[ESTIMATE]

    @property
    def dates(self) -> tuple[str, ...]:
        """Days that are kept, none where they have too many flows."""
        return self.estimate.dates

    def told(self, errors: DayErrors | None) -> PeopleDays:
        """The same with how far those of the estimate may be off, if that is known."""
        if errors is None or not self.dates:
            return self
        return replace(self, flows={**self.flows, ESTIMATE: errors.on(self.estimate)})

    @classmethod
    def of(
        cls,
        days: ObservedDays,
        tables: Mapping[str, PairTables],
        sequences: IntArray,
        groups: IntArray,
        n_steps: int,
        observed: Sequence[FloatArray] = (),
    ) -> PeopleDays:
        """From the tables of each source in the order of `ObservedDays.slots`."""
        found = {source: kept.made() for source, kept in tables.items()}
        if any(flows is None for flows in found.values()):
            found = dict.fromkeys(found)
        steps = n_steps * (sequences > 0)
        day, slot = days.slots
        flows = {
            source: day_flows(days.dates, steps, day, slot, found[source], kept.n_states)
            for source, kept in tables.items()
        }
        return cls(flows, sequences, groups, tuple(observed))


Rows = tuple[int, IntArray, FloatArray]
"""The number of a day, moves as origin d + dest, and how many people made each of them."""


@dataclass(frozen=True)
class MovesOfDays:
    """Who moved on each day in a world at a time of day, and who is estimated to have."""

    moved: list[Rows]
    told: list[Rows]

    @classmethod
    def of(
        cls,
        of_window: IntArray,
        paths: IntArray,
        part_of_path: IntArray,
        within: IntArray,
        groups: Aggregates,
        found: HMM,
        total: AnyMoves,
        rng: np.random.Generator,
    ) -> MovesOfDays:
        """Those of people whose ``paths`` (N, T) are parts of windows ``part_of_path`` (N,).

        They are in groups ``within`` (K,) windows, of which each is of a day ``of_window`` (W,).
        ``total`` (d, d) are the moves that were estimated by ``found``, summed over steps.
        """
        d, of_path = total.shape[0], of_window[part_of_path]
        pairs = paths[:, :-1] * d + paths[:, 1:]
        moved = []
        for number in np.unique(of_path):
            at, people = np.unique(pairs[of_path == number], return_counts=True)
            moved.append((int(number), at, people.astype(np.float64)))
        told = []
        tables = moves_by_day(
            found, groups, of_window[within], total, rounds=WORLD_ROUNDS, random_state=rng
        )
        for day, table in tables:
            some = entries(table) != 0
            origin, dest = ends_of(table, some)
            told.append((day, origin * d + dest, entries(table)[some]))
        return cls(moved, told)


class DayWorlds:
    """Errors of what happened on days, in worlds that are taken in time of day by time of day."""

    def __init__(
        self,
        days: ObservedDays,
        n_states: int,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.days, self.n_states = days, n_states
        self.errors = DayErrors(
            *days.slots, len(days.of_window), n_states, ESTIMATE,
            np.random.default_rng(random_state).spawn(1)[0],
        )  # fmt: skip
        self._begin()

    def _begin(self) -> None:
        self.moved, self.told = PairTables(self.n_states, grain=0.0), PairTables(self.n_states)

    def add(self, place: int, found: MovesOfDays) -> None:
        """Take in a time of day."""
        first, d = place * self.days.n_days, self.n_states
        for tables, days in ((self.moved, found.moved), (self.told, found.told)):
            for number, at, people in days:
                tables.add(first + number, table_of_pairs(*np.divmod(at, d), people, d))

    def end(self) -> None:
        """All times of day of a world are taken in."""
        moved, told = self.moved.made(), self.told.made()
        if moved is not None and told is not None:
            self.errors.add(moved, told)
        self._begin()
