"""Who can be followed through published counts: an attack on one's own release.

Counts of people per cell and step name nobody, and yet, step by step, people can be assigned to the
places that are counted next, so that all of them together go the likeliest way (Xu et al. 2017,
"Trajectory recovery from ash", who assign by distance, or by where somebody is heading). Whoever
knows where somebody was at first has then a guess of all that follows. How much of it is right
tells, beside what chance gives, how much the counts say of single people.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from agg_core.base.errors import InputError

__all__ = ["MOST_ATTACKED", "Recovered", "attack"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

MOST_ATTACKED = 5_000
"""People who can be assigned: the work of a step grows with their third power."""

LEAST_CHANCE = 1e-12


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
