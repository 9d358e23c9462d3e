"""What may leave the house: flows of few people are withheld, so that sums do not tell them either.

A number below a least number of people is withheld. Where sums are published beside it, it could
be worked out from these, so that further numbers are withheld with it. Each number of a table with
its sums stands in two equations, that of its origin and that of its dest; a withheld one can be
worked out from all that is published if, and only if, it is a bridge of the graph whose nodes are
the equations and whose edges are the withheld numbers. For each bridge the ring of further numbers
that holds the fewest people is withheld, which is a shortest path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite

import numpy as np
import numpy.typing as npt
from scipy import sparse

from agg_core.base.errors import InputError
from agg_core.base.moves import AnyMoves, as_moves, ends_of, entries, moves_like

__all__ = [
    "BASES",
    "LEAST_PEOPLE",
    "MOST_PEOPLE",
    "WITHHELD",
    "Limit",
    "Published",
    "rounded",
    "withhold",
    "withhold_parts",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

LEAST_PEOPLE = 10
"""People per step below which flows of people who were followed are withheld."""

WITHHELD = float("nan")
"""What stands in place of a number that is withheld."""

BASES = (0, 3, 5, 10)
"""What numbers are rounded to multiples of; 0 leaves them as they are."""

MOST_PEOPLE = 1e9
"""The highest least number of people."""


@dataclass(frozen=True)
class Limit:
    """What is done to flows before they are published.

    Attributes
    ----------
    least_people : flows of fewer people per step of a mean day are withheld; whoever moved in a
        step is another person than the next, so that a flow that is shown is of as many
    base : what numbers are rounded to multiples of, one of `BASES`
    at_random : whether a number goes up or down by chance, so that it stays what it is in the mean,
        and not to the nearest multiple
    seed : of that chance: the same flow is always rounded alike

    Raises
    ------
    InputError
        If there is no such limit.
    """

    least_people: float = LEAST_PEOPLE
    base: int = 0
    at_random: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        if not (isfinite(self.least_people) and 0 <= self.least_people <= MOST_PEOPLE):
            raise InputError(
                f"The least number of people is {self.least_people:g}; give one from 0, which "
                f"withholds nothing, to {MOST_PEOPLE:,.0f}.",
                code="least-people-out-of-range",
            )
        if self.base not in BASES:
            raise InputError(
                f"Numbers cannot be rounded to multiples of {self.base}; choose one of "
                f"{', '.join(map(str, BASES))}, of which 0 leaves them as they are.",
                code="unknown-base",
            )

    @property
    def words(self) -> str:
        """What was done, as a sentence for a reader who has only the file; empty for nothing."""
        said = []
        if self.least_people > 0:
            said.append(
                f"flows of fewer than {self.least_people:g} people per step are withheld, and "
                "others from which these could be worked out"
            )
        if self.base:
            how = ", up or down by chance" if self.at_random else ""
            said.append(f"numbers are rounded to multiples of {self.base}{how}")
        if not said:
            return ""
        text = "; ".join(said)
        return f"Limited for privacy: {text}; sums are those of the flows that are shown."


@dataclass(frozen=True)
class Published:
    """A table of people with what is withheld, `WITHHELD`, and its sums where they were asked for.

    Attributes
    ----------
    table : (n, m), or sparse (d, d) of the same entries
    origin_sums, dest_sums : (n,) and (m,) sums of all, withheld ones among them; None without sums
    total : the sum of all of them; None without sums
    """

    table: AnyMoves
    origin_sums: FloatArray | None = None
    dest_sums: FloatArray | None = None
    total: float | None = None

    @property
    def n_withheld(self) -> int:
        """Numbers of the table that are withheld, sums not among them."""
        return int(np.isnan(entries(self.table)).sum())


def withhold(
    table: npt.ArrayLike | sparse.csr_array, least_people: float, *, totals: bool = False
) -> Published:
    """Withhold numbers above 0 and below ``least_people``, and what would tell them.

    ``table`` (n, m) or sparse (d, d) are people, not below 0. With ``totals`` the sums of rows, of
    columns and of all are published, too, unless they are of too few people or would tell somebody.
    Then of every row and column with withheld numbers at least two are, of at least
    ``least_people`` people together where their sum can be worked out, and no withheld number is
    determined by all equations together. Zeros are published as they are.

    >>> withhold([[3, 40], [20, 60]], 10, totals=True).table
    array([[nan, nan],
           [nan, nan]])

    Raises
    ------
    InputError
        If a number is below 0 or not finite.
    """
    people = as_moves(table)
    numbers = entries(people)
    if not (np.isfinite(numbers).all() and (numbers >= 0).all()):
        raise InputError(
            "Numbers below 0, or none at all, cannot be withheld; give a table of people.",
            code="no-people",
        )
    hidden = (numbers > 0) & (numbers < least_people)
    if not totals:
        return Published(moves_like(people, np.where(hidden, WITHHELD, numbers)))
    n, m = people.shape
    some = numbers > 0
    at = np.nonzero(some) if isinstance(people, np.ndarray) else ends_of(people, some)
    row, col, value = (np.asarray(x) for x in (*at, numbers[some]))
    origin_sums = np.bincount(row, value, n)
    dest_sums = np.bincount(col, value, m)
    total = float(value.sum())
    extended = _Extended(
        np.concatenate([row, np.arange(n), np.full(m, n), [n]]),
        np.concatenate([col, np.full(n, m), np.arange(m), [m]]),
        np.concatenate([value, origin_sums, dest_sums, [total]]),
        (n, m),
    )
    told = extended.hidden(least_people)
    n_cells = len(value)
    hidden[some] = told[:n_cells]
    sums = np.where(told, WITHHELD, extended.value)[n_cells:]
    return Published(
        moves_like(people, np.where(hidden, WITHHELD, numbers)),
        sums[:n], sums[n : n + m], float(sums[-1]),
    )  # fmt: skip


class _Extended:
    """The numbers of a table and of its sums, each an edge between two equations.

    Equation i says that row i sums to its total, equation n + 1 + j the same of column j; the row
    and the column of totals are the last of each.
    """

    def __init__(
        self, row: IntArray, col: IntArray, value: FloatArray, shape: tuple[int, int]
    ) -> None:
        self.value = value
        self.ends = np.stack([row, shape[0] + 1 + col])
        self.n_lines = sum(shape) + 2
        is_total = np.stack([col == shape[1], row == shape[0]])
        # Numbers of each equation that may be withheld, that of fewest people first, its sum last.
        lines, members = self.ends.ravel(), np.tile(np.arange(len(row)), 2)
        order = np.lexsort((value[members], is_total.ravel(), lines))
        self.first = np.searchsorted(lines[order], np.arange(self.n_lines + 1))
        self.members, self.as_total = members[order], is_total.ravel()[order]

    def hidden(self, least: float) -> BoolArray:
        """Which numbers are withheld."""
        hidden = (self.value > 0) & (self.value < least)
        waiting = set(self.ends[:, hidden].ravel().tolist())
        while waiting:
            self._fill(hidden, waiting, least)
            for bridge in self._bridges(hidden):
                for edge in self._way_around(bridge, hidden):
                    hidden[edge] = True
                    waiting.update(self.ends[:, edge].tolist())
        return hidden

    def _fill(self, hidden: BoolArray, waiting: set[int], least: float) -> None:
        """Withhold more of each equation that alone tells a withheld number, or too few people."""
        while waiting:
            line = waiting.pop()
            here = slice(self.first[line], self.first[line + 1])
            members, as_total = self.members[here], self.as_total[here]
            gone = hidden[members]
            n_gone, total_gone = int(gone.sum()), bool((gone & as_total).any())
            people = float(self.value[members][gone & ~as_total].sum())
            for place in np.flatnonzero(~gone & (self.value[members] > 0)):
                if not n_gone or (n_gone > 1 and (total_gone or people >= least)):
                    break
                hidden[members[place]] = True
                n_gone += 1
                total_gone |= bool(as_total[place])
                people += 0.0 if as_total[place] else float(self.value[members[place]])
                waiting.update(self.ends[:, members[place]].tolist())
            waiting.discard(line)

    def _bridges(self, hidden: BoolArray) -> list[int]:
        """Withheld numbers on no ring of withheld ones, by a walk through the graph."""
        near: dict[int, list[tuple[int, int]]] = {}
        for edge in np.flatnonzero(hidden).tolist():
            a, b = self.ends[:, edge].tolist()
            near.setdefault(a, []).append((b, edge))
            near.setdefault(b, []).append((a, edge))
        found, seen, lowest = [], dict[int, int](), dict[int, int]()
        for start, out in near.items():
            if start in seen:
                continue
            seen[start] = lowest[start] = len(seen)
            walk = [(start, -1, iter(out))]
            while walk:
                node, came, ways = walk[-1]
                for there, edge in ways:
                    if edge == came:
                        continue
                    if there in seen:
                        lowest[node] = min(lowest[node], seen[there])
                        continue
                    seen[there] = lowest[there] = len(seen)
                    walk.append((there, edge, iter(near[there])))
                    break
                else:
                    walk.pop()
                    if walk:
                        before = walk[-1][0]
                        lowest[before] = min(lowest[before], lowest[node])
                        if lowest[node] > seen[before]:
                            found.append(came)
        return found

    @cached_property
    def _edges(self) -> dict[tuple[int, int], int]:
        """Numbers by their two equations."""
        return {(a, b): edge for edge, (a, b) in enumerate(self.ends.T.tolist())}

    def _way_around(self, bridge: int, hidden: BoolArray) -> list[int]:
        """The numbers of fewest people that close a ring with a bridge, withheld ones for free."""
        from scipy.sparse.csgraph import dijkstra  # noqa: PLC0415

        may = self.value > 0
        may[bridge] = False
        edges = np.flatnonzero(may)
        # Of ways of as many people the shortest is taken.
        cost = np.where(hidden[edges], 0.0, self.value[edges]) + 1e-9 * self.value.max()
        graph = sparse.csr_array(
            (cost, (self.ends[0, edges], self.ends[1, edges])), shape=(self.n_lines, self.n_lines)
        )
        start, end = self.ends[:, bridge].tolist()
        _, before = dijkstra(graph, directed=False, indices=start, return_predecessors=True)
        found = []
        while end != start:
            there = int(before[end])
            edge = self._edges[min(end, there), max(end, there)]
            if not hidden[edge]:
                found.append(edge)
            end = there
        return found


def withhold_parts(
    values: FloatArray,
    families: Sequence[tuple[int, Sequence[int]]],
    least_people: float,
    *,
    totals: bool = False,
) -> BoolArray:
    """Which numbers (n, P) are withheld of n tables of P flows, some of which are means of others.

    ``families`` are tables that are means of other tables, with these, by their numbers; each is a
    part of one family at most. Numbers below ``least_people`` are withheld, zeros among them. Of
    what a mean and its published parts leave, at least two numbers are withheld, of that many
    people together; with ``totals``, where it is told how many people all flows of a table are, the
    same is so of what is withheld of each table.
    """
    hidden = values < least_people
    changed = True
    while changed:
        changed = False
        for row, gone in zip(values, hidden, strict=True) if totals else ():
            changed |= _withhold_rest(row, gone, least_people)
        for whole, parts in families:
            some = np.asarray(parts)
            while True:
                gone = hidden[some] & (values[some] > 0)
                n_gone, people = gone.sum(axis=0), np.where(gone, values[some], 0.0).sum(axis=0)
                whole_gone = hidden[whole] & (values[whole] > 0)
                told = ~whole_gone & (n_gone > 0) & ((n_gone < 2) | (people < least_people))
                told |= whole_gone & (n_gone == 0)
                at = np.flatnonzero(told)
                if not len(at):
                    break
                left = np.where(hidden[some][:, at], np.inf, values[some][:, at])
                part = left.argmin(axis=0)
                open_ = np.isfinite(left[part, np.arange(len(at))])
                # A mean without published parts is withheld itself, unless nothing is left at all.
                stuck = at[~open_ & hidden[whole, at]]
                if len(stuck) == len(at):
                    break
                hidden[some[part[open_]], at[open_]] = True
                hidden[whole, at[~open_]] = True
                changed = True
    return hidden


def _withhold_rest(values: FloatArray, hidden: BoolArray, least: float) -> bool:
    """Withhold more of a table (P,) whose sum tells one number, or few people; whether any was."""
    gone = hidden & (values > 0)
    n_gone, people = int(gone.sum()), float(values[gone].sum())
    if not n_gone or (n_gone > 1 and people >= least):
        return False
    left = np.flatnonzero(~hidden)
    for place in left[np.argsort(values[left], kind="stable")]:
        hidden[place] = True
        n_gone, people = n_gone + 1, people + float(values[place])
        if n_gone > 1 and people >= least:
            break
    return bool(len(left))


def rounded(values: FloatArray, limit: Limit, chance: npt.ArrayLike | None = None) -> FloatArray:
    """Numbers to multiples of the base of a limit; withheld ones stay so.

    ``chance`` are numbers from 0 to 1 of the same shape, by which those of a limit that rounds at
    random go up or down.
    """
    if not limit.base:
        return values
    parts = values / limit.base
    if not limit.at_random or chance is None:
        return np.asarray(np.floor(parts + 0.5) * limit.base)
    return np.asarray((np.floor(parts) + (np.asarray(chance) < parts % 1)) * limit.base)
