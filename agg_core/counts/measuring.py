"""Whether counts err, by how much, and how many people a counted one stands for."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from agg_core.base.checkpoints import checkpoints, followed
from agg_core.base.errors import InputError
from agg_core.base.remembered import fingerprint
from agg_core.counts.choosing import timed_pairs, times_are_tried
from agg_core.counts.day_types import DaysNamed
from agg_core.counts.erring import CountError, ErringPairs, erring_pairs
from agg_core.counts.pairs import CountPairs, pairs_of
from agg_core.counts.rows import Strength
from agg_core.counts.smoothed_dense import SmoothedState, smoothed_steps
from agg_core.counts.smoothing import smoothed
from agg_core.counts.worlds import simulated_world
from agg_core.tables.certainty import LEVEL
from agg_core.tables.counts import CountTable

__all__ = [
    "Measured",
    "common_unit",
    "exact_pairs",
    "may_err",
    "measured_again",
    "measuring_steps",
]

FloatArray = npt.NDArray[np.float64]

FIRST_GUESS = 0.05
"""Relative error that learning begins with."""

TURNS, TURNS_AGAIN = 15, 8
"""Turns of the smoother for a first fit, and for one that begins where another ended."""

PRIOR, HOURS = 100.0, 1.0
"""People who tie rows, and times of day, while the error is learned."""

LADDER = 2**0.5
"""Factor from one expansion that is tried to the next one."""

MOST_EXPANSION = 1000.0
ENOUGH_GAIN = 2.0
"""Log-likelihood that an expansion has to gain over counting each person once, and an error over
exact counts of people who come and go."""

WORLDS, KEPT = 4, 2
"""Simulated worlds that move the learned error to the true one, and the last ones, of which the
mean is taken."""

WHITE, ENOUGH_SUMS = 3.0, 20
"""Standard errors of a correlation with the moment before that sums without memory stay below,
and how many of them tell it."""

MOST_CORRECTION = 2.0

MOST_SPREAD = 10.0
"""Logarithm of an end of the interval over the error, where counts tell nothing of that."""

NO_DAYS = DaysNamed()

TOLD = ("expansion", "relative", "low", "high", "learned")

MOST_WORK = 3e9
"""Moments times cells cubed up to which the error of counts is learned: some ten seconds a turn."""


@dataclass(frozen=True)
class Measured:
    """Counts as they are to be learned from.

    ``pairs`` are in units of ``expansion`` people: pairs of exact counts, or of counts that err.
    ``relative`` is the standard deviation of the error over the count, from ``low`` to ``high``
    with a chance of nine in ten; all three are 0 for exact counts and alike where the error was
    given. ``learned`` tells whether the counts told it.
    """

    pairs: CountPairs
    expansion: float
    relative: float
    low: float
    high: float
    learned: bool

    def told(self) -> dict[str, Any]:
        """All but the pairs in plain JSON types, and what these are made by: `measured_again`."""
        values = {name: getattr(self, name) for name in TOLD}
        if isinstance(self.pairs, ErringPairs):
            values["step"] = self.pairs.error.step * self.expansion
            values["outside"] = bool(self.pairs.has_outside)
        return values


def measured_again(
    table: CountTable, told: Mapping[str, Any], days: DaysNamed = NO_DAYS
) -> Measured:
    """What was measured of the counts of a table, from what `Measured.told` told of it."""
    found = {name: told[name] for name in TOLD}
    if "step" not in told:
        return Measured(days.on(pairs_of(_in_units(table, found["expansion"]))), **found)
    error = CountError(found["relative"], told["step"])
    pairs = days.on(erring_pairs(table, error, outside=told["outside"]))
    return Measured(pairs.in_units(found["expansion"]), **found)


def common_unit(counts: FloatArray) -> float:
    """The largest whole number that divides all counts, at least 1; missing ones are left out."""
    known = counts[np.isfinite(counts) & (counts > 0)]
    whole = np.rint(known)
    if len(known) == 0 or (whole != known).any():
        return 1.0
    return float(np.gcd.reduce(whole.astype(np.int64)))


def measuring_steps(
    table: CountTable,
    shape_of: Callable[[bool], FloatArray],
    *,
    error: float | None = None,
    expansion: float | None = None,
    days: DaysNamed = NO_DAYS,
    random_state: int | np.random.Generator | None = None,
) -> Generator[str, None, Measured]:
    """Learn the error of counts; yields where that stands and returns what was found.

    Counts whose sums stay the same throughout every run are exact, as errors would change the sums;
    where all of them are multiples of a number, so many people stand behind each one that was
    counted. Where sums change without memory counts err, and nobody comes or goes. Where they
    change otherwise, three accounts are held against each other by the likelihood of all counts:
    that they are exact and people come and go, that they err and nobody does, and that both is so.
    Of counts that err the expansion is the most likely one, and the error is corrected by as much
    as it is learned too small in worlds that are simulated with it.
    ``shape_of`` gives moves to begin with, for cells alone (False) or with an outside (True).
    Times of day are told apart where there are enough people, however flows are learned then, and
    the expansion is learned only there: what one matrix for all times does not explain would be
    taken for that of a sample.
    ``error`` and ``expansion`` are taken as given unless they are None. Types of ``days`` are told
    apart as times of day are, wherever there are enough days.

    Raises
    ------
    InputError
        If no two successive moments are known, or an error is given of more counts than a smoother
        can go through.
    """
    divisor = common_unit(table.counts)
    unit = expansion or divisor
    exact = exact_pairs(table, expansion, days)
    if not may_err(table, exact, error) and (error is None or error == 0):
        # Of too many counts it is not known whether they err.
        return Measured(exact, unit, 0.0, 0.0, 0.0, learned=error is None and not exact.has_outside)
    if _too_many(table):
        raise InputError(
            f"{table.n_cells:,} cells at {len(table.times):,} moments are too many to take the "
            "error of counts into account; merge cells, take fewer days, or set the error to 0.",
            code="too-many-for-error",
        )
    strength = Strength(PRIOR)
    if times_are_tried(exact, "auto"):
        strength = Strength(PRIOR, hours=HOURS)
        for kind in exact.types_apart:
            strength = strength.with_type(kind)
    whole = bool((np.nan_to_num(table.counts) % 1 == 0).all())
    guess = CountError(FIRST_GUESS if error is None else error, divisor * whole)

    def account(*, outside: bool) -> _Account:
        pairs = days.on(erring_pairs(table, guess, outside=outside))
        return _Account(pairs, shape_of(outside), strength, learned=error is None)

    first, closed = expansion or 1.0, account(outside=False)
    yield "nobody comes or goes"
    fits = [closed.fit(first)]
    accounts = {False: closed}
    if not _white(closed.pairs):
        accounts[True] = open_to_all = account(outside=True)
        yield "people come and go"
        opened = open_to_all.fit(first)
        if error is None:
            # Both go on from one state: an error of next to nothing is then as likely as none.
            yield "people come and go, and counts are exact"
            fits.append(open_to_all.exact().fit(unit, opened))
            opened = open_to_all.fit(first, opened)
        fits.append(opened)
    best = max(fits, key=lambda fit: fit.score + ENOUGH_GAIN * (fit.error == 0))
    if error is None and best.error == 0:
        return Measured(exact, unit, 0.0, 0.0, 0.0, learned=True)
    of_best = accounts[best.pairs.has_outside]
    rng = np.random.default_rng(random_state)
    if expansion is None and (strength.by_time or len(table.slots) == 1):
        best = yield from of_best.climb(best)
        if best.expansion > 1:
            best = yield from _expanded(of_best, best, rng)
    if error is not None:
        pairs = of_best.pairs.in_units(best.expansion)
        return Measured(pairs, best.expansion, error, error, error, learned=False)
    return (yield from _corrected(of_best, best, rng))


def exact_pairs(
    table: CountTable, expansion: float | None, days: DaysNamed = NO_DAYS
) -> CountPairs:
    """Pairs of counts that are taken to be exact, in units of as many people as are alike."""
    return days.on(pairs_of(_in_units(table, expansion or common_unit(table.counts))))


def may_err(table: CountTable, exact: CountPairs, error: float | None) -> bool:
    """Whether `measuring_steps` holds counts, with ``exact`` pairs, for such that may err."""
    told = error != 0 and (error is not None or exact.has_outside)
    return told and not _too_many(table)


def _too_many(table: CountTable) -> bool:
    return len(table.times) * (table.n_cells + 1.0) ** 3 > MOST_WORK


def _white(pairs: ErringPairs) -> bool:
    """Whether sums of counts change from moment to moment as errors do, without memory.

    People who come and go make sums that are like those an hour ago; errors do not. Of fewer than
    `ENOUGH_SUMS` sums that cannot be told.
    """
    products, squares, n = 0.0, 0.0, 0
    for run in pairs.runs():
        sums = run.counts.sum(axis=1)
        above = sums - sums.mean()
        products += float(above[1:] @ above[:-1])
        squares += float(above @ above)
        n += len(above)
    return n >= ENOUGH_SUMS and products < WHITE * squares / np.sqrt(n)


def _in_units(table: CountTable, unit: float) -> CountTable:
    if unit == 1:
        return table
    return replace(
        table, counts=table.counts / unit, suppressed_below=table.suppressed_below / unit
    )


def _after(
    turns: int,
    pairs: ErringPairs,
    shape: FloatArray,
    strength: Strength,
    *,
    learn_error: bool = False,
    start: SmoothedState | None = None,
) -> SmoothedState:
    """Where so many turns of `smoothed_steps` lead, kept on the way for whoever goes on."""
    name = fingerprint("turns", turns, pairs, shape, strength, learn_error, start)
    course = checkpoints().course(name)
    steps = smoothed_steps(
        pairs, shape, strength, learn_error=learn_error, start=start, course=course
    )
    return next(state for state in followed(steps, course) if state.iteration >= turns)


@dataclass(frozen=True)
class _Fit:
    """Transitions and error of ``pairs``, and the log-likelihood less the number of parameters."""

    pairs: ErringPairs
    expansion: float
    state: SmoothedState
    score: float

    @property
    def error(self) -> float:
        """The relative error of counts."""
        return self.state.error.relative


@dataclass(frozen=True)
class _Account:
    """What counts are taken for: ``pairs`` in people, whose error is ``learned`` or as given."""

    pairs: ErringPairs
    shape: FloatArray
    strength: Strength
    learned: bool

    def exact(self) -> _Account:
        """The same counts without an error."""
        return replace(self, pairs=replace(self.pairs, error=CountError(0.0, 0.0)), learned=False)

    def of(self, world: ErringPairs, expansion: float) -> _Account:
        """The same of a world in units of ``expansion`` people, of whose error nothing is known."""
        people = world.in_units(1 / expansion)
        error = replace(people.error, relative=FIRST_GUESS)
        # Types of days are told apart in the times of a world already.
        strength = replace(self.strength, day_types=False, own_types=())
        return replace(self, pairs=replace(people, error=error), strength=strength)

    def fit(self, expansion: float, start: _Fit | None = None) -> _Fit:
        """The most likely transitions, and error unless it is given."""
        pairs = timed_pairs(self.pairs.in_units(expansion), self.strength)
        assert isinstance(pairs, ErringPairs)
        if start is not None and self.learned:
            pairs = replace(pairs, error=replace(pairs.error, relative=start.error))
        last = _after(
            TURNS if start is None else TURNS_AGAIN, pairs, self.shape, self.strength,
            learn_error=self.learned, start=None if start is None else start.state,
        )  # fmt: skip
        n_seen = int(np.isfinite(pairs.spread_after).sum())
        score = last.log_likelihood - n_seen * np.log(expansion)
        if pairs.has_outside:
            score -= 2 * pairs.n_states + 2 * len(pairs.slots) * self.strength.by_time
        return _Fit(pairs, expansion, last, score)

    def climb(self, first: _Fit) -> Generator[str, None, _Fit]:
        """The expansion that makes counts most likely, upwards from the first one."""
        best, tried = first, [(0.0, first.score)]
        while best.expansion * LADDER <= MOST_EXPANSION:
            expansion = best.expansion * LADDER
            yield f"each counted one stands for {expansion:.3g} people"
            fit = self.fit(expansion, best)
            tried.append((np.log(expansion / first.expansion), fit.score))
            if fit.score <= best.score:
                break
            best = fit
        peak = float(np.exp(_peak(tried[-3:]))) * first.expansion
        best = max(best, self.fit(peak, best), key=lambda fit: fit.score)
        return best if best.score > first.score + ENOUGH_GAIN else first


def _peak(points: list[tuple[float, float]]) -> float:
    """Where a parabola through the last points is highest; the best of them if it has no top."""
    x, y = np.array(points).T
    if len(points) == 3:
        a, b, _ = np.polyfit(x, y, 2)
        if a < 0:
            return float(np.clip(-b / (2 * a), x[0], x[-1]))
    return float(x[np.argmax(y)])


def _simulated(
    fit: _Fit, error: CountError, state: SmoothedState, rng: np.random.Generator
) -> ErringPairs:
    pairs = replace(fit.pairs, error=error)
    _, world = simulated_world(pairs, state.people[0], state.transmats, rng)
    assert isinstance(world, ErringPairs)
    return world


def _expanded(account: _Account, fit: _Fit, rng: np.random.Generator) -> Generator[str, None, _Fit]:
    """The fit with an expansion larger by as much as it is learned too small in a world."""
    there = account.of(_simulated(fit, fit.state.error, fit.state, rng), fit.expansion)
    found = yield from there.climb(there.fit(1.0))
    missed = np.clip(fit.expansion / found.expansion, 1.0, MOST_CORRECTION)
    return account.fit(fit.expansion * float(missed), fit)


def _corrected(
    account: _Account, fit: _Fit, rng: np.random.Generator
) -> Generator[str, None, Measured]:
    """The error with which simulated counts tell as much of one as the real ones do.

    Flows take a part of it for moves, so that it is learned too small; in each world the error is
    moved by as much as was missed there, and flows are learned again with it (indirect inference;
    Gourieroux, Monfort & Renault 1993).
    """
    learned, error, state = fit.error, fit.state.error, fit.state
    found: list[float] = []
    for number in range(1, WORLDS + 1):
        yield f"the error in a simulated world, {number} of {WORLDS}"
        there = account.of(_simulated(fit, error, state, rng), 1.0).fit(1.0)
        missed = np.clip(learned / there.error, 1 / MOST_CORRECTION, MOST_CORRECTION)
        found.append(error.relative * float(missed))
        error = replace(error, relative=float(np.exp(np.log(found[-KEPT:]).mean())))
        pairs = replace(fit.pairs, error=error)
        state = _after(TURNS_AGAIN, pairs, account.shape, account.strength, start=state)
    # Of the logarithm, whose error is that of the square over twice the square.
    known = smoothed(fit.pairs, state.transmats, state.people).information * learned**4
    of_worlds = np.var(np.log(found[-KEPT:]), ddof=1) / KEPT
    relative = error.relative
    # What flows take of the error makes it less sure, by about the same factor.
    reach = ndtri((1 + LEVEL) / 2) * relative / learned
    spread = reach * np.sqrt(1 / (4 * max(known, 1e-300)) + of_worlds)
    factor = float(np.exp(min(spread, MOST_SPREAD)))
    return Measured(
        replace(account.pairs.in_units(fit.expansion), error=error), fit.expansion, relative,
        relative / factor, relative * factor, learned=True,
    )  # fmt: skip
