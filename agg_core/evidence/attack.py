"""Who can be followed through published counts: an attack on one's own release.

Counts of people per cell and step name nobody, and yet, step by step, people can be assigned to the
places that are counted next, so that all of them together go the likeliest way (Xu et al. 2017,
"Trajectory recovery from ash", who assign by distance, or by where somebody is heading). Whoever
knows where somebody was at first has then a guess of all that follows. How much of it is right
tells, beside what chance gives, how much the counts say of single people.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from agg_core.base.errors import InputError
from agg_core.base.moves import AnyMoves
from agg_core.evidence.limited import limited
from agg_core.evidence.privacy import Limit
from agg_core.study.result import FlowResult

__all__ = ["MOST_ATTACKED", "Recovered", "attack", "attack_on"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

MOST_ATTACKED = 5_000
"""People who can be assigned: the work of a step grows with their third power."""

LEAST_CHANCE = 1e-12

TIE = 1e-7
"""Part of a cost by which equal ones are told apart."""


@dataclass(frozen=True)
class Recovered:
    """How much of what people did was recovered, by those who know where each was at first.

    Attributes
    ----------
    steps : share of all later steps of all people at which their cell was found
    whole : share of people who were followed through all steps
    chance_steps, chance_whole : the same if people are assigned by lot; where that of a cell whose
        count is withheld is guessed, each of these cells is as likely
    stay_steps, stay_whole : the same if all are taken to stay where they were at first, for which
        nobody needs counts
    withheld : share of people and steps whose count was withheld
    n_people, n_steps : people, and steps at which they were seen
    """

    steps: float
    whole: float
    chance_steps: float
    chance_whole: float
    stay_steps: float
    stay_whole: float
    withheld: float
    n_people: int
    n_steps: int

    @property
    def words(self) -> str:
        """What was found, for a reader, beside what needs no counts."""
        hidden = (
            f" Counts of {self.withheld:.1%} of them are withheld." if self.withheld > 0 else ""
        )
        return (
            f"Whoever knows where each of {self.n_people:,} people is finds {self.steps:.0%} of "
            "them a step later by these flows and by counts of people per cell: "
            f"{self.chance_steps:.0%} by lot, {self.stay_steps:.0%} by taking all to stay where "
            f"they are, for which nobody needs counts.{hidden}"
        )


def attack(
    states: npt.ArrayLike,
    n_states: int,
    *,
    places_m: npt.ArrayLike | None = None,
    transmat: npt.ArrayLike | None = None,
    heading: bool = False,
    least_people: float = 0,
    random_state: int | np.random.Generator | None = None,
) -> Recovered:
    """Follow people through their counts, and tell how much of it is right.

    Of ``states`` (N, T), the cell of each person at each step, the attack knows the first one of
    each and the counts of all others that are of ``least_people`` or more; of those who are
    in no such count it knows that they are in some other cell. It assigns people to counts by the
    least sum of costs: with ``transmat`` (n, n) or (T - 1, n, n) the negative logarithm of the
    chance of a move, which is what learning finds likeliest; else the distance from the cell where
    somebody was taken to be, or, ``heading``, from where they come to if they go on as they went,
    to ``places_m`` (n, 2) in metres. Of equal ways one is drawn.

    >>> attack([[0, 0, 0], [0, 0, 0], [1, 1, 1]], 2, places_m=[[0, 0], [900, 0]]).whole
    1.0

    Raises
    ------
    InputError
        If states are none of people over two steps or more, people are too many, or neither places
        nor chances of moves are given for all states.
    """
    people = _checked(states, n_states)
    n, n_steps = people.shape
    costs = _costs(n_states, n_steps, places_m, transmat)
    rng = np.random.default_rng(random_state)
    counts = np.stack([np.bincount(step, minlength=n_states) for step in people.T])
    shown = (counts >= least_people) & (counts > 0)
    before = found = people[:, 0]
    right = np.ones((n, n_steps - 1), dtype=bool)
    chance = np.ones((n, n_steps - 1))
    hidden_people = 0
    places = None if places_m is None or not heading else np.asarray(places_m, dtype=np.float64)
    for step in range(1, n_steps):
        at, is_shown = counts[step], shown[step]
        cost = costs[step - 1][found]
        if places is not None:
            aim = 2 * places[found] - places[before]
            cost = np.hypot(*(aim[:, None] - places).T).T
        before, found = found, _assigned(cost, at, is_shown, rng)
        truth = people[:, step]
        right[:, step - 1] = found == truth
        unknown = n - int(at[is_shown].sum())
        hidden_people += unknown
        lot = np.where(is_shown, at, unknown / max(int((~is_shown).sum()), 1)) / n
        chance[:, step - 1] = lot[truth]
    stays = people[:, 1:] == people[:, :1]
    return Recovered(
        steps=float(right.mean()),
        whole=float(right.all(axis=1).mean()),
        chance_steps=float(chance.mean()),
        chance_whole=float(chance.prod(axis=1).mean()),
        stay_steps=float(stays.mean()),
        stay_whole=float(stays.all(axis=1).mean()),
        withheld=hidden_people / right.size,
        n_people=n,
        n_steps=n_steps,
    )


def _assigned(
    cost: FloatArray, counts: IntArray, shown: BoolArray, rng: np.random.Generator
) -> IntArray:
    """The cell (N,) that each person is taken to be in, by the costs (N, n) of each cell."""
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415

    n = len(cost)
    seats = np.repeat(np.flatnonzero(shown), counts[shown])
    columns = cost[:, seats]
    others = np.flatnonzero(~shown)
    if len(seats) < n:
        # Who is in no count that is shown is in the likeliest of the other cells.
        best = others[cost[:, others].argmin(axis=1)]
        least = np.take_along_axis(cost, best[:, None], axis=1)
        columns = np.concatenate([columns, np.repeat(least, n - len(seats), axis=1)], axis=1)
    # Of equal assignments the solver prefers one by its order.
    rows, order = rng.permutation(n), rng.permutation(n)
    _, seat = linear_sum_assignment(columns[np.ix_(rows, order)])
    taken = np.empty(n, dtype=np.int64)
    taken[rows] = order[seat]
    known = taken < len(seats)
    found = np.empty(n, dtype=np.int64)
    found[known] = seats[taken[known]]
    if not known.all():
        found[~known] = best[~known]
    return found


def _checked(states: npt.ArrayLike, n_states: int) -> IntArray:
    people = np.asarray(states)
    if people.ndim != 2 or people.shape[1] < 2 or not len(people) or people.dtype.kind not in "iu":
        raise InputError(
            "Only people whose cells are known at two steps or more can be followed; give numbers "
            "of cells (people, steps).",
            code="wrong-shape",
        )
    if people.min() < 0 or people.max() >= n_states:
        raise InputError(
            f"There are {n_states} cells, and people are in others; give numbers from 0 to "
            f"{n_states - 1}.",
            code="unknown-cell",
        )
    if len(people) > MOST_ATTACKED:
        raise InputError(
            f"{len(people):,} people are too many to be assigned one by one; take up to "
            f"{MOST_ATTACKED:,} of them.",
            code="too-many-people",
        )
    return people.astype(np.int64)


def _costs(
    n_states: int,
    n_steps: int,
    places_m: npt.ArrayLike | None,
    transmat: npt.ArrayLike | None,
) -> FloatArray:
    """Costs (T - 1, n, n) of each move at each step."""
    d = n_states
    if transmat is not None:
        chances = np.asarray(transmat, dtype=np.float64)
        if chances.shape in ((d, d), (n_steps - 1, d, d)) and (chances >= 0).all():
            cost = -np.log(np.maximum(chances, LEAST_CHANCE))
            return np.broadcast_to(cost, (n_steps - 1, d, d))
    elif places_m is not None:
        places = np.asarray(places_m, dtype=np.float64)
        if places.shape == (d, 2) and np.isfinite(places).all():
            cost = np.hypot(*(places[:, None] - places).T).T
            return np.broadcast_to(cost, (n_steps - 1, d, d))
    raise InputError(
        f"People are assigned by the places of all {d} cells, ({d}, 2), or by the chances of moves "
        f"between them, ({d}, {d}); give one of these.",
        code="wrong-shape",
    )


def attack_on(result: FlowResult, time: str, limit: Limit | None = None) -> Recovered:
    """Follow the people of a result from each step of a time to the next, by what is published.

    Published are the flows of the estimate within a limit, which tell the chances of moves, and
    counts of people per cell and step, of which those of fewer people than the limit has are
    withheld. Ways over several steps are not kept, so that ``whole`` and the like are those of one
    step, too. Of several days people are those of all days together.

    People of a cell are alike to the attack, so that they are assigned cell by cell, however many
    they are (`attack` does so one by one): the shares are means over who of a cell is who.

    Raises
    ------
    InputError
        If nobody was followed, or there is no such time.
    """
    if not result.truths:
        raise InputError(
            "Nobody was followed one by one here, so that nobody can say how many would be found; "
            "ask it of flows that were learned from people.",
            code="nobody-followed",
        )
    result.check(time)
    source, within = result.truths[-1], Limit(0) if limit is None else limit
    published = limited(result, within).matrix(time)
    least = within.least_people * result.days_summed
    found = []
    for step in range(result.n_steps) if result.n_steps else (None,):
        rows = result.rows(time, source, step)
        moved = sparse.csr_array(
            (rows["count"].to_numpy(np.float64), (rows["origin"], rows["dest"])),
            shape=published.shape,
        )
        if moved.sum() > 0:
            found.append((float(moved.sum()), _of_step(moved, published, least)))
    if not found:
        raise InputError(
            f"Nobody was seen at {time}, so that nobody can be followed; choose another time.",
            code="no-people",
        )
    people = [n for n, _ in found]
    shares = np.average([shares for _, shares in found], axis=0, weights=people).tolist()
    steps, chance, stays, withheld = shares
    return Recovered(
        steps, steps, chance, chance, stays, stays, withheld, round(max(people)), len(found) + 1
    )


def _of_step(
    moved: sparse.csr_array, published: AnyMoves, least: float
) -> tuple[float, float, float, float]:
    """Shares of people found, found by lot, who stay, and whose count is withheld, in a step."""
    before, after = (np.asarray(moved.sum(axis=axis), dtype=np.float64) for axis in (1, 0))
    n = float(before.sum())
    shown = (after >= least) & (after > 0)
    unknown = float(after[~shown].sum())
    taken = _taken(before, np.where(shown, after, 0.0), published)
    per_person = sparse.diags_array(1 / np.where(before > 0, before, 1.0))
    right = float((per_person @ taken * moved).sum())
    lot = np.where(shown, after, unknown / max(int((~shown).sum()), 1)) / n
    return right / n, float(after @ lot) / n, float(moved.diagonal().sum()) / n, unknown / n


def _taken(before: FloatArray, after: FloatArray, published: AnyMoves) -> sparse.csr_array:
    """People (S, S) of each cell who are taken to go to each, the likeliest of all together.

    Those who are in no count of ``after`` are in the likeliest cell that has none. Moves of which
    no flow is published are as unlikely as each other: they go by one node between all origins and
    all dests, so that the problem has as many unknowns as there are flows.
    """
    from scipy.optimize import linprog  # noqa: PLC0415

    d = len(before)
    origin, dest, chance = _published_chances(published)
    kept = before[origin] > 0
    origin, dest, chance = origin[kept], dest[kept], chance[kept]
    hidden = after[dest] <= 0
    # Of moves to where nothing is counted the likeliest of each origin is of any use.
    best = np.lexsort((-chance, origin))
    best = best[hidden[best]]
    best = best[np.unique(origin[best], return_index=True)[1]]
    nowhere, rest = d, float(before.sum() - after.sum())
    arcs = np.concatenate([np.flatnonzero(~hidden), best])
    start, end = origin[arcs], np.where(hidden[arcs], nowhere, dest[arcs])
    cost = -np.log(np.maximum(chance[arcs], LEAST_CHANCE))
    unlikely = -np.log(LEAST_CHANCE)
    cells = np.flatnonzero(before > 0)
    places = np.concatenate([np.flatnonzero(after > 0), [nowhere]])
    n_arcs, n_from, n_to = len(arcs), len(cells), len(places)
    # Rows: people of each cell, people at each place, and those who come through the node go on.
    number = np.arange(n_arcs + n_from + n_to)
    through, onward = number[n_arcs : n_arcs + n_from], number[n_arcs + n_from :]
    rows = np.concatenate([
        start, cells, d + end, d + places, np.full(n_from + n_to, 2 * d + 1),
    ])  # fmt: skip
    columns = np.concatenate([number[:n_arcs], through, number[:n_arcs], onward, through, onward])
    signs = np.concatenate([np.ones(2 * n_arcs + 2 * n_from + n_to), -np.ones(n_to)])
    equations: Any = sparse.csr_array((signs, (rows, columns)), shape=(2 * d + 2, len(number)))
    sums = np.concatenate([before, after, [rest, 0.0]])
    costs = np.concatenate([cost, np.full(n_from, unlikely), np.zeros(n_to)])
    # Of equal ways one is drawn: the solver prefers one by its order.
    costs = costs * (1 + TIE * np.random.default_rng(0).random(len(costs)))
    solved = linprog(costs, A_eq=equations, b_eq=sums, method="highs")
    if solved.x is None:
        raise InputError(
            "The people could not be assigned to the counts; choose another time.",
            code="not-assigned",
        )
    flow = np.maximum(solved.x, 0.0)
    # Who comes through the node goes to a place by lot, to cells that are not counted by none.
    share = flow[onward[:-1]] / max(flow[onward].sum(), 1e-300)
    by_lot = sparse.csr_array(
        (flow[through], (cells, np.zeros(n_from, dtype=np.int64))), shape=(d, 1)
    ) @ sparse.csr_array((share, (np.zeros(n_to - 1, dtype=np.int64), places[:-1])), shape=(1, d))
    straight = sparse.csr_array((flow[:n_arcs], (start, dest[arcs])), shape=(d, d))
    return sparse.csr_array(straight + by_lot)


def _published_chances(published: AnyMoves) -> tuple[IntArray, IntArray, FloatArray]:
    """Origin, dest and chance of moves of which flows are published; where none are people stay."""
    table = sparse.coo_array(published)
    flows = np.nan_to_num(table.data)
    some = flows > 0
    origin, dest, flows = table.row[some], table.col[some], flows[some]
    leaving = np.bincount(origin, flows, table.shape[0])
    alone = np.flatnonzero(leaving == 0)
    return (
        np.concatenate([origin, alone]).astype(np.int64),
        np.concatenate([dest, alone]).astype(np.int64),
        np.concatenate([flows / leaving[origin], np.ones(len(alone))]),
    )
