"""Data made by rule: a weekday of commuters in Greater Tokyo, and the paper's random models."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from agg_core.base.errors import InputError
from agg_core.made._tokyo import COMMUTER_DAY, COMMUTER_ZONE, LINES, PLACES, SHORES
from agg_core.model.hmm import check_probs, sample_states

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "COMMUTER_DAY",
    "COMMUTER_ZONE",
    "commuter_day",
    "random_gaussian_hmm",
    "random_hmm",
    "sample_sequences",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

DAY_MIN = 1440
KM_PER_LAT = 110.95
KM_PER_LON = 90.6  # at 35.7 degrees north
CENTRE = (139.767, 35.681)
# Trains run at the tables' speeds; travellers also wait, change and walk along platforms.
PACE = 0.45
# People grow rarer away from the centre faster than residents do, so that nearly everybody lives
# within 50 km of it.
FALL_OFF_KM = 28.0


# ---------------------------------------------------------------- a day of commuters


@dataclass(frozen=True)
class _City:
    """Places (P) and the quickest ways between them."""

    lonlat: FloatArray  # (P, 2) degrees
    residents: FloatArray  # (P,) relative weights, as the next two
    jobs: FloatArray
    pull: FloatArray
    spread_km: FloatArray  # (P,) standard deviation of homes about their place
    minutes: FloatArray  # (P, P) riding time
    previous: IntArray  # (P, P) place before the second on the way from the first


@cache
def _city() -> _City:
    """Read the tables of places and lines and find the quickest ways (Dijkstra)."""
    from scipy.sparse import csr_array  # noqa: PLC0415
    from scipy.sparse.csgraph import dijkstra  # noqa: PLC0415

    rows = [line.split() for line in PLACES.split("\n") if line]
    index = {row[0]: i for i, row in enumerate(rows)}
    table = np.array([row[1:] for row in rows], dtype=float)
    lonlat = table[:, :2]
    ride = np.full((len(rows), len(rows)), np.inf)
    for line in LINES.strip().split("\n"):
        speed, *names = line.split()
        stops = np.array([index[name] for name in names])
        for a, b in pairwise(stops):
            hours = float(_km(lonlat[b] - lonlat[a])) / (PACE * float(speed))
            ride[a, b] = ride[b, a] = min(ride[a, b], hours * 60)
    ride[np.isinf(ride)] = 0.0
    from_centre = _km(lonlat - np.array(CENTRE))
    near = np.exp(-from_centre / FALL_OFF_KM)
    minutes, previous = dijkstra(csr_array(ride), return_predecessors=True)
    return _City(
        lonlat=lonlat,
        residents=table[:, 2] * near,
        jobs=table[:, 3] ** 0.9 * near,
        pull=table[:, 4],
        spread_km=np.clip(0.7 + 0.035 * from_centre, 0.8, 2.4),
        minutes=np.asarray(minutes, dtype=float),
        previous=np.asarray(previous, dtype=np.int64),
    )


def _km(degrees: FloatArray) -> FloatArray:
    """Length in km of differences in degrees (..., 2), good to a per cent about Tokyo."""
    return np.asarray(np.hypot(degrees[..., 0] * KM_PER_LON, degrees[..., 1] * KM_PER_LAT))


@dataclass(frozen=True)
class _Stop:
    """Where n people are: the place nearest by rail and their own position in degrees."""

    place: IntArray  # (n,)
    lonlat: FloatArray  # (n, 2)

    def take(self, who: IntArray | BoolArray) -> _Stop:
        return _Stop(self.place[who], self.lonlat[who])


@dataclass(frozen=True)
class _Leg:
    """One trip of some of the people: walk to the line, ride, walk on; minutes of the day."""

    who: IntArray  # (m,)
    origin: _Stop
    dest: _Stop
    depart: FloatArray  # (m,)
    access: FloatArray
    ride: FloatArray
    egress: FloatArray

    @property
    def arrive(self) -> FloatArray:
        return self.depart + self.access + self.ride + self.egress


@dataclass
class _Diary:
    """The trips of everybody in the order they are made, as they are being planned."""

    city: _City
    here: _Stop
    free_at: FloatArray  # (n,) minute from which each person can leave
    legs: list[_Leg] = field(default_factory=list)

    def go(
        self,
        who: IntArray,
        dest: _Stop,
        *,
        depart: FloatArray | None = None,
        arrive: FloatArray | None = None,
    ) -> None:
        """Send people somewhere, leaving or arriving at a wished time, but never before they can.

        Speeds: on foot, by bicycle or bus 12 km/h to and from the line with 4 minutes of waiting;
        from door to door without the line where both ends belong to one place.
        """
        origin = self.here.take(who)
        same = origin.place == dest.place
        to_line = _km(origin.lonlat - self.city.lonlat[origin.place])
        from_line = _km(dest.lonlat - self.city.lonlat[dest.place])
        direct = _km(dest.lonlat - origin.lonlat)
        access = np.where(same, direct * 5, to_line * 5 + 4)
        ride = self.city.minutes[origin.place, dest.place]
        egress = np.where(same, 0.0, from_line * 5)
        if depart is None:
            assert arrive is not None
            depart = arrive - access - ride - egress
        depart = np.maximum(depart, self.free_at[who])
        leg = _Leg(who, origin, dest, depart, access, ride, egress)
        self.legs.append(leg)
        self.here.place[who] = dest.place
        self.here.lonlat[who] = dest.lonlat
        self.free_at[who] = leg.arrive + 5


def commuter_day(
    n_people: int = 20_000,
    random_state: int | np.random.Generator | None = 0,
    step_minutes: int = 30,
) -> pd.DataFrame:
    """One weekday of commuters over Greater Tokyo, made by rule and free of any real person.

    People live about the stations of the railways, work where a gravity model with both totals
    kept sends them (it falls off with riding time), and go there and back by the quickest line,
    so that a fix in mid-trip lies along a corridor. Others study, work nights, go out for
    errands, or stay at home; some travel on business, and some go out in the evening.

    Parameters
    ----------
    n_people : people, at least 1.
    random_state : the same seed gives the same table, bit by bit.
    step_minutes : whole minutes between fixes, 1 to 1440; fixes start at midnight.

    Returns
    -------
    DataFrame with n_people x ceil(1440 / step_minutes) rows ordered by person and time: user_id
    (text), time (UTC; the day is `COMMUTER_DAY` in `COMMUTER_ZONE`), lon and lat (degrees,
    WGS84, rounded to 1e-4, about 10 m). Who rests keeps one position; who travels is moved by
    an error of about 100 m.

    Raises
    ------
    InputError
        If n_people or step_minutes is out of range.
    """
    import pandas as pd  # noqa: PLC0415

    if not isinstance(n_people, int | np.integer) or n_people < 1:
        raise InputError(
            f"n_people must be a whole number of 1 or more; it is {n_people}.",
            code="value-out-of-range",
        )
    if not isinstance(step_minutes, int | np.integer) or not 1 <= step_minutes <= DAY_MIN:
        raise InputError(
            f"step_minutes must be a whole number from 1 to {DAY_MIN}; it is {step_minutes}.",
            code="value-out-of-range",
        )
    rng = np.random.default_rng(random_state)
    clock = np.arange(0, DAY_MIN, step_minutes, dtype=float)
    start, legs = _plan_day(_city(), n_people, rng)
    lonlat = np.round(_positions(_city(), start, legs, clock, rng), 4)
    names = pd.Series([f"p{i:06d}" for i in range(n_people)], dtype="str")
    midnight = pd.Timestamp(COMMUTER_DAY, tz=COMMUTER_ZONE).tz_convert("UTC")
    times = midnight + pd.to_timedelta(clock, unit="min")
    return pd.DataFrame(
        {
            "user_id": names.repeat(len(clock)).reset_index(drop=True),
            "time": times[np.tile(np.arange(len(clock)), n_people)],
            "lon": lonlat[..., 0].ravel(),
            "lat": lonlat[..., 1].ravel(),
        }
    )


# What people do on a weekday: shares of the population. Commuters are the rest.
ROLE_SHARES = {
    "commuter": 0.57,
    "part_time": 0.09,
    "student": 0.085,
    "pupil": 0.10,
    "night_worker": 0.012,
    "at_home": 0.143,
}


def _plan_day(city: _City, n: int, rng: np.random.Generator) -> tuple[_Stop, list[_Leg]]:
    """Where n people are at midnight, and all their trips of the day."""
    role = rng.choice(len(ROLE_SHARES), size=n, p=list(ROLE_SHARES.values()))
    of_role = {name: np.flatnonzero(role == i) for i, name in enumerate(ROLE_SHARES)}
    homes = _choose(city.residents[None, :], np.zeros(n, dtype=np.int64), rng)
    home = _settle(city, homes, 1.0, rng)
    main = _main_places(city, of_role, home, rng)

    start = _Stop(home.place.copy(), home.lonlat.copy())
    nights = of_role["night_worker"]
    start.place[nights], start.lonlat[nights] = main.place[nights], main.lonlat[nights]
    adults = np.concatenate([of_role["commuter"], of_role["part_time"], of_role["at_home"]])
    owls = adults[rng.random(len(adults)) < 0.085]
    out = _evening_places(city, home.place[owls], home.place[owls], rng, choosy=5.0)
    start.place[owls], start.lonlat[owls] = out.place, out.lonlat

    diary = _Diary(city, _Stop(start.place.copy(), start.lonlat.copy()), np.zeros(n))
    diary.go(owls, home.take(owls), depart=rng.triangular(40, 150, 250, len(owls)))
    diary.go(nights, home.take(nights), depart=rng.normal(345, 40, len(nights)))
    _mornings(diary, of_role, main, rng)
    _middays(diary, of_role, main, rng)
    _evenings(diary, of_role, home, main, rng)
    return start, diary.legs


def _main_places(
    city: _City, of_role: dict[str, IntArray], home: _Stop, rng: np.random.Generator
) -> _Stop:
    """Where each person works, learns or runs errands (n,)."""
    near = np.exp(-city.minutes / 18)
    weights = {
        "commuter": _gravity(city, np.exp(-city.minutes / 40) + 5 * np.exp(-city.minutes / 8)),
        "part_time": near * city.jobs**0.8,
        "student": np.exp(-city.minutes / 18) * city.jobs**0.6,
        "pupil": np.exp(-city.minutes / 3) * city.residents,
        "night_worker": np.exp(-city.minutes / 12) * city.jobs,
        "at_home": near * city.pull,
    }
    place = np.empty(len(home.place), dtype=np.int64)
    for name, who in of_role.items():
        place[who] = _choose(weights[name], home.place[who], rng)
    return _settle(city, place, 0.7, rng)


def _gravity(city: _City, deterrence: FloatArray) -> FloatArray:
    """Flows (P, P) with the totals of residents and jobs both kept, by iterative fitting."""
    jobs = city.jobs / city.jobs.sum() * city.residents.sum()
    flows: FloatArray = deterrence * city.residents[:, None] * jobs[None, :]
    for _ in range(40):
        flows *= (city.residents / flows.sum(axis=1))[:, None]
        flows *= (jobs / flows.sum(axis=0))[None, :]
    return flows


def _mornings(
    diary: _Diary, of_role: dict[str, IntArray], main: _Stop, rng: np.random.Generator
) -> None:
    """Send people to work, to school and on errands."""
    who = of_role["commuter"]
    who = who[rng.random(len(who)) < 0.93]  # the others work at home
    shift = rng.choice(3, size=len(who), p=[0.07, 0.80, 0.13])
    mean, sd = np.array([460.0, 528.0, 590.0]), np.array([30.0, 22.0, 40.0])
    diary.go(who, main.take(who), arrive=rng.normal(mean[shift], sd[shift]))
    plans = (("part_time", 570, 40), ("student", 525, 30), ("pupil", 492, 10))
    for name, minute, deviation in plans:
        who = of_role[name]
        diary.go(who, main.take(who), arrive=rng.normal(minute, deviation, len(who)))
    who = of_role["at_home"]
    who = who[rng.random(len(who)) < 0.62]
    diary.go(who, main.take(who), depart=rng.triangular(510, 660, 960, len(who)))


def _middays(
    diary: _Diary, of_role: dict[str, IntArray], main: _Stop, rng: np.random.Generator
) -> None:
    """Lunch near by, and calls on business across town, each with the way back."""
    city, workers = diary.city, of_role["commuter"]
    workers = workers[np.all(diary.here.lonlat[workers] == main.lonlat[workers], axis=1)]
    kind = rng.random(len(workers))
    lunch = workers[kind < 0.35]
    table = _settle(city, main.place[lunch], 0.3, rng)
    leave = rng.normal(725, 14, len(lunch))
    diary.go(lunch, table, depart=leave)
    diary.go(lunch, main.take(lunch), depart=leave + rng.uniform(40, 60, len(lunch)))

    calls = workers[kind > 0.48]
    choice = _choose(np.exp(-city.minutes / 28) * city.jobs, main.place[calls], rng)
    leave = rng.uniform(590, 940, len(calls))
    diary.go(calls, _settle(city, choice, 0.45, rng), depart=leave)
    stay = rng.uniform(40, 110, len(calls))
    diary.go(calls, main.take(calls), depart=diary.free_at[calls] + stay)


def _evenings(
    diary: _Diary, of_role: dict[str, IntArray], home: _Stop, main: _Stop, rng: np.random.Generator
) -> None:
    """Bring everybody home, some by way of a shop or a table with friends."""
    leave = np.full(len(home.place), np.nan)
    detour = np.zeros(len(home.place))
    plans = (
        ("commuter", lambda m: 1040 + rng.gamma(3.4, 38, m), 0.32),
        ("part_time", lambda m: rng.normal(885, 55, m), 0.15),
        ("student", lambda m: rng.normal(985, 75, m), 0.30),
        ("pupil", lambda m: rng.normal(920, 40, m), 0.0),
        ("at_home", lambda m: diary.free_at[of_role["at_home"]] + rng.gamma(2, 60, m), 0.05),
    )
    for name, draw, share in plans:
        leave[of_role[name]] = draw(len(of_role[name]))
        detour[of_role[name]] = share
    away = np.any(diary.here.lonlat != home.lonlat, axis=1)
    late = np.flatnonzero(away & (rng.random(len(away)) < detour))
    spot = _evening_places(diary.city, main.place[late], home.place[late], rng, choosy=1.5)
    diary.go(late, spot, depart=leave[late])
    leave[late] = diary.free_at[late] + rng.gamma(4, 28, len(late))
    back = np.flatnonzero(away & np.isfinite(leave))
    diary.go(back, home.take(back), depart=leave[back])
    nights = of_role["night_worker"]
    diary.go(nights, main.take(nights), arrive=rng.normal(1310, 30, len(nights)))


def _evening_places(
    city: _City,
    origin: IntArray,
    home: IntArray,
    rng: np.random.Generator,
    *,
    choosy: float,
) -> _Stop:
    """A lively place (m,) little out of the way from the origin to home.

    The more choosy, the more everybody goes to the liveliest places, as late at night.
    """
    detour = city.minutes[origin] + city.minutes[:, home].T - city.minutes[origin, home][:, None]
    weight = city.pull**choosy * np.exp(-detour / 12)
    return _settle(city, _choose(weight, np.arange(len(home)), rng), 0.25, rng)


def _choose(weights: FloatArray, row: IntArray, rng: np.random.Generator) -> IntArray:
    """One column for each entry of row (n,), drawn with the weights (R, P) of that row."""
    cumulative = np.cumsum(weights, axis=1)
    cumulative /= cumulative[:, -1:]
    # Rows shifted by their number make one ascending list: one search serves everybody.
    ladder = (cumulative + np.arange(len(weights))[:, None]).ravel()
    found = np.searchsorted(ladder, row + rng.random(len(row)), side="right")
    column: IntArray = np.minimum(found - row * weights.shape[1], weights.shape[1] - 1)
    return column


def _settle(city: _City, place: IntArray, scale: float, rng: np.random.Generator) -> _Stop:
    """Positions about the places (n,), on land: a position in the water moves to the place."""
    offset = rng.normal(size=(len(place), 2)) * (scale * city.spread_km[place])[:, None]
    degrees = offset / np.array([KM_PER_LON, KM_PER_LAT])
    centre = city.lonlat[place]
    wet = np.flatnonzero(_in_water(centre + degrees))
    for _ in range(3):
        degrees[wet] /= 2
        wet = wet[_in_water(centre[wet] + degrees[wet])]
    degrees[wet] = 0.0
    return _Stop(place, centre + degrees)


def _in_water(lonlat: FloatArray) -> BoolArray:
    """Which positions (n, 2) lie in a ring of `SHORES`: crossings of a ray to the east are odd."""
    wet = np.zeros(len(lonlat), dtype=bool)
    lon, lat = lonlat[:, 0], lonlat[:, 1]
    for shore in SHORES:
        ring = np.array(shore)
        for (x1, y1), (x2, y2) in zip(ring, np.roll(ring, -1, axis=0), strict=True):
            between = (y1 > lat) != (y2 > lat)
            if y1 != y2:
                wet ^= between & (lon < x1 + (lat - y1) * (x2 - x1) / (y2 - y1))
    return wet


def _positions(
    city: _City, start: _Stop, legs: list[_Leg], clock: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Positions (n, len(clock), 2) at the minutes of the clock."""
    lonlat = np.repeat(start.lonlat[:, None, :], len(clock), axis=1)
    for leg in legs:
        first = np.searchsorted(clock, leg.depart)
        after = np.searchsorted(clock, leg.arrive)
        row, step = np.nonzero(np.arange(len(clock)) >= first[:, None])
        there = step >= after[row]
        lonlat[leg.who[row[there]], step[there]] = leg.dest.lonlat[row[there]]
        row, step = row[~there], step[~there]
        place = _on_the_way(city, leg, row, clock[step] - leg.depart[row])
        error = rng.normal(size=place.shape) * 0.1 / np.array([KM_PER_LON, KM_PER_LAT])
        lonlat[leg.who[row], step] = place + error
    return lonlat


def _on_the_way(city: _City, leg: _Leg, row: IntArray, elapsed: FloatArray) -> FloatArray:
    """Positions (q, 2) of travellers row of a leg, so many minutes after they left."""
    origin, dest = leg.origin.take(row), leg.dest.take(row)
    access, ride, egress = leg.access[row], leg.ride[row], leg.egress[row]
    same = origin.place == dest.place
    on_foot_to = np.where(same[:, None], dest.lonlat, city.lonlat[origin.place])
    walked = np.minimum(elapsed / np.maximum(access, 1e-9), 1)[:, None]
    place = origin.lonlat + walked * (on_foot_to - origin.lonlat)

    riding = np.flatnonzero((elapsed > access) & ~same)
    a, b = origin.place[riding], dest.place[riding]
    ridden = np.minimum(elapsed[riding] - access[riding], ride[riding])
    ahead, behind = b, city.previous[a, b]
    # Walk the way back from its end until the stretch that holds the rider, all riders at once.
    while (passed := city.minutes[a, behind] > ridden).any():
        ahead = np.where(passed, behind, ahead)
        behind = np.where(passed, city.previous[a, ahead], behind)
    begun = city.minutes[a, behind]
    share = ((ridden - begun) / (city.minutes[a, ahead] - begun))[:, None]
    place[riding] = city.lonlat[behind] + share * (city.lonlat[ahead] - city.lonlat[behind])

    last = np.flatnonzero((elapsed > access + ride) & ~same)
    walked = (elapsed[last] - access[last] - ride[last]) / np.maximum(egress[last], 1e-9)
    centre = city.lonlat[dest.place[last]]
    place[last] = centre + walked[:, None] * (dest.lonlat[last] - centre)
    return place


# ---------------------------------------------------------------- the paper's random models


def random_hmm(
    n_states: int,
    n_symbols: int | None = None,
    random_state: int | np.random.Generator | None = None,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Draw a hidden Markov model as the paper's experiments do.

    pi is uniform on the simplex. The transition matrix is I + 0.05 sqrt(d) exp(U), with U (d, d)
    uniform on [-1, 1], its rows permuted and each divided by its sum; the emission matrix is made
    likewise from another draw. With n_symbols S other than d, the emission's identity is the
    S-column one, wrapped round where S < d.

    Returns
    -------
    startprob (d,), transmat (d, d), emissionprob (d, S)

    Raises
    ------
    InputError
        If n_states or n_symbols is less than 1.
    """
    symbols = n_states if n_symbols is None else n_symbols
    if n_states < 1 or symbols < 1:
        raise InputError(
            f"A model needs at least 1 state and 1 symbol; it was given {n_states} and {symbols}.",
            code="value-out-of-range",
        )
    rng = np.random.default_rng(random_state)
    startprob = rng.dirichlet(np.ones(n_states))
    transmat = _permuted_near_identity(n_states, n_states, rng)
    return startprob, transmat, _permuted_near_identity(n_states, symbols, rng)


def random_gaussian_hmm(
    n_states: int, random_state: int | np.random.Generator | None = None
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Draw a hidden Markov model with Gaussian observations as the paper's experiments do.

    Start and transitions are those of `random_hmm`; each state has a mean uniform on [-5d, 5d] and
    a variance uniform on [1, 5].

    Returns
    -------
    startprob (d,), transmat (d, d), means (d, 1), variances (d, 1)

    Raises
    ------
    InputError
        If n_states is less than 1.
    """
    rng = np.random.default_rng(random_state)
    startprob, transmat, _ = random_hmm(n_states, random_state=rng)
    means = rng.uniform(-5 * n_states, 5 * n_states, size=(n_states, 1))
    return startprob, transmat, means, rng.uniform(1, 5, size=(n_states, 1))


def _permuted_near_identity(rows: int, cols: int, rng: np.random.Generator) -> FloatArray:
    matrix = 0.05 * np.sqrt(rows) * np.exp(rng.uniform(-1, 1, size=(rows, cols)))
    matrix[np.arange(rows), np.arange(rows) % cols] += 1.0
    matrix = matrix[rng.permutation(rows)]
    return np.asarray(matrix / matrix.sum(axis=1, keepdims=True))


def sample_sequences(
    startprob: npt.ArrayLike,
    transmat: npt.ArrayLike,
    n: int,
    length: int,
    random_state: int | np.random.Generator | None = None,
) -> IntArray:
    """Draw n state sequences of a Markov chain, (n, length) int.

    Raises
    ------
    InputError
        If the probabilities are none, their shapes differ, n is negative or length less than 1.
    """
    start = check_probs(startprob, "startprob", ndim=1)
    trans = check_probs(transmat, "transmat", ndim=2)
    if trans.shape != (len(start), len(start)):
        raise InputError(
            f"transmat must be {len(start)} x {len(start)} to fit startprob; it is {trans.shape}.",
            code="wrong-shape",
        )
    if n < 0 or length < 1:
        raise InputError(
            f"Sampling needs n of 0 or more and a length of 1 or more; it was given {n}, {length}.",
            code="value-out-of-range",
        )
    return sample_states(start, trans, n, length, random_state)
