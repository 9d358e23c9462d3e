"""Which learner from counts, and how strongly tied: tried on days kept aside."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri, stdtrit

from agg_core.base.checkpoints import Course, checkpoints, followed
from agg_core.base.relay import last_of
from agg_core.base.remembered import Remembered, fingerprint
from agg_core.counts.dense import dense_steps
from agg_core.counts.drawing import drawn_steps
from agg_core.counts.erring import ErringPairs
from agg_core.counts.held_out import held_out_days, prediction_scores
from agg_core.counts.local import Nearby, local_steps
from agg_core.counts.local_flows import local_scores
from agg_core.counts.pairs import DAY_TYPES, WEEKEND, CountPairs
from agg_core.counts.panel import Panel
from agg_core.counts.rows import LEAST_PULL, Strength
from agg_core.counts.smoothed_dense import smoothed_steps
from agg_core.counts.state import FlowState

__all__ = [
    "DENSE",
    "DRAWN",
    "FEW",
    "LOCAL_AGAIN",
    "LOCAL_TRIAL",
    "Candidate",
    "Shape",
    "Trial",
    "Weighed",
    "best_trial",
    "learn_flows",
    "learners_for",
    "local_iterations",
    "most_iterations",
    "strength_between",
    "strengths_about",
    "timed_pairs",
    "times_are_tried",
    "try_candidates",
    "type_gains",
    "weigh_beside",
]

FloatArray = npt.NDArray[np.float64]
Shape: TypeAlias = "FloatArray | Nearby"
"""Chances of moves to begin with (d, d), or moves within a reach, of many people alone."""

BoolArray = npt.NDArray[np.bool_]

DRAWN, DENSE = "drawn", "dense"

FEW, MANY = 4.0, 30.0
"""People per occupied cell: up to `FEW` individual assignments are drawn, from `MANY` on the
learner for dense counts stands alone, and between them both are tried."""

MOST_SLOTS = 4e5
"""People times pairs that are drawn at most: a round of so many takes about a second, and rounds
get more as cells hold more people, while means and covariances tell more."""

PRIORS = {DRAWN: (0.0, 5.0, 20.0, 100.0, 400.0), DENSE: (0.0, 20.0, 100.0, 500.0, 2500.0)}
"""People per row to try; dense counts tell less of each mover, so that they need more."""

HOURS = {DRAWN: (3.0, 10.0, 30.0, 100.0, 300.0), DENSE: (1.0, 3.0, 10.0, 30.0, 100.0)}
OWN = (20.0, 50.0, 200.0, 1000.0)
"""People who tie attractions and leaving at a time of day, and rows of their own, to try."""

FIRST_HOURS = {DRAWN: 30.0, DENSE: 10.0}
FIRST_OWN = 200.0
"""Where to begin on those; from there to the side that predicts better."""

PANEL = (0.0, 0.1, 0.3, 1.0, 3.0)
FIRST_PANEL, FOLDS, SURELY, LEAST_CHANCE = 1.0, 3, 0.975, 1e-9
"""What a move of a panel may count for in moves of others, and what it does unless its people say
otherwise, of whom one of so many is kept aside in turn. People who repeat themselves from day to
day make it less than one, where that is as sure as the third number says. No chance is taken to be
smaller than the last number.
"""

MATRIX = {
    DRAWN: (0.0, 1.0, 5.0, 20.0, 100.0, 400.0),
    DENSE: (0.0, 5.0, 20.0, 100.0, 500.0, 2500.0, 12500.0),
}  # fmt: skip
"""Leavers per row that an old matrix may count for."""

FEWEST_PER_HOUR = 3.0
"""People per cell and time of day, over all days, below which times of day are not tried."""

TRIAL_ITERATIONS = {(DRAWN, False): 16, (DRAWN, True): 16, (DENSE, False): 40, (DENSE, True): 10}
AGAIN_ITERATIONS = {(DRAWN, False): 16, (DRAWN, True): 16, (DENSE, False): 15, (DENSE, True): 5}
ITERATIONS = {(DRAWN, False): 40, (DRAWN, True): 40, (DENSE, False): 200, (DENSE, True): 60}
"""Most iterations of a trial, of one that goes on from another with the same layers, and of a fit,
by learner and whether it learns by time of day: one of the dense learner then costs more by the
number of times."""

LOCAL_TRIAL = {False: 20, True: 10}
LOCAL_AGAIN = {False: 8, True: 5}
LOCAL_FIT = {False: 24, True: 12}
"""The same of moves within a reach, by whether times of day are told apart; of fewer cells than
`LOCAL_CELLS` a fit has more iterations, up to as many as one of all moves."""

LOCAL_CELLS = {False: 8_000, True: 2_500}

TRIAL_TURNS, AGAIN_TURNS, TURNS = 8, 4, 15
"""The same where counts err: turns of the smoother, each with many steps of the dense learner."""

DRAWS = 400
"""Times that pairs kept aside are drawn anew to see which candidate is the best."""

TOL = {DRAWN: 1e-3, DENSE: 3e-4}
"""Change below which a fit stands still."""


@dataclass(frozen=True)
class Candidate:
    """A learner and strengths, and their mean `prediction_scores` on counts kept aside."""

    learner: str
    strength: Strength
    score: float


def learners_for(pairs: CountPairs, shape: Shape | None = None) -> tuple[str, ...]:
    """The learners that fit the number of people per cell, the first one best at few.

    Within a reach there is one.
    """
    if isinstance(shape, Nearby):
        return (DENSE,)
    slots = float(pairs.before.sum())
    if isinstance(pairs, ErringPairs) or pairs.crowd >= MANY or slots > MOST_SLOTS:
        return (DENSE,)
    return (DRAWN,) if pairs.crowd <= FEW else (DRAWN, DENSE)


def learn_flows(
    pairs: CountPairs,
    shape: Shape,
    learner: str,
    strength: Strength,
    *,
    n_iter: int | None = None,
    start: FlowState | None = None,
    random_state: int | np.random.Generator | None = None,
    course: Course | None = None,
) -> Iterator[FlowState]:
    """Iterations of a learner until it stands still, or ``n_iter`` of them, from ``start`` on.

    From counts that err the dense learner learns through a smoother
    (`agg_core.counts.smoothed_dense`). Of moves within a reach, states have chances (H, n + d) of
    moves and stays (see `agg_core.counts.local`), whoever the learner is. A ``course`` that was
    stopped is gone on with: its last iteration is given again, and those after it are what they
    would have been.
    """
    steps: Iterator[FlowState]
    logits = None if start is None else start.logits
    if isinstance(shape, Nearby):
        steps = local_steps(pairs, shape, strength, start=logits, course=course)
    elif isinstance(pairs, ErringPairs):
        steps = smoothed_steps(pairs, shape, strength, start=start, course=course)
    elif learner == DRAWN:
        rows = None if start is None else start.transmats
        steps = drawn_steps(
            pairs, shape, strength, start=rows, random_state=random_state, course=course
        )
    else:
        steps = dense_steps(pairs, shape, strength, start=logits, course=course)
    most = n_iter or most_iterations(pairs, learner, strength, shape)
    for state in followed(steps, course):
        yield state
        if state.change < TOL[learner] or state.iteration >= most:
            break


def most_iterations(
    pairs: CountPairs, learner: str, strength: Strength, shape: Shape | None = None
) -> int:
    """Most iterations of a fit."""
    if isinstance(shape, Nearby):
        return local_iterations(shape.pattern.n_states, by_time=strength.by_time)
    return TURNS if isinstance(pairs, ErringPairs) else ITERATIONS[learner, strength.by_time]


def local_iterations(n_states: int, *, by_time: bool) -> int:
    """Most iterations of a fit of moves within a reach between so many states."""
    least = LOCAL_FIT[by_time]
    return max(least, min(ITERATIONS[DENSE, by_time], least * LOCAL_CELLS[by_time] // n_states))


def _trial_iterations(
    pairs: CountPairs, learner: str, strength: Strength, before: Strength | None, shape: Shape
) -> int:
    """Most iterations of a trial that goes on from what another strength learned."""
    again = before is not None and before.by_time == strength.by_time
    if isinstance(shape, Nearby):
        return (LOCAL_AGAIN if again else LOCAL_TRIAL)[strength.by_time]
    if isinstance(pairs, ErringPairs):
        return AGAIN_TURNS if again else TRIAL_TURNS
    return (AGAIN_ITERATIONS if again else TRIAL_ITERATIONS)[learner, strength.by_time]


@dataclass(frozen=True)
class _Begun:
    """States without each part kept aside that candidates begin with, and their strengths.

    ``path`` are those of the fits that led there, one going on from the other.
    """

    path: tuple[Strength, ...]
    fit: Callable[[], tuple[FlowState, ...]]

    @property
    def strength(self) -> Strength:
        """That of the last fit."""
        return self.path[-1]


@dataclass(frozen=True)
class Trial:
    """A candidate that was tried.

    ``scores`` (n,) are those of the pairs kept aside, in the same order for all candidates;
    ``fit`` gives the states it came to without each part kept aside, which are not yet learned
    where its scores were known before.
    """

    candidate: Candidate
    fit: Callable[[], tuple[FlowState, ...]]
    scores: FloatArray

    @property
    def states(self) -> tuple[FlowState, ...]:
        """The states it came to without each part kept aside."""
        return self.fit()


@dataclass(frozen=True)
class Weighed:
    """A weight of a panel, and the log-chance (K,) of the moves of each of its people.

    Each person's moves are foretold by what was learned from counts and others of the panel.
    """

    weight: float
    scores: FloatArray

    def surely_better(self, other: Weighed) -> bool:
        """Whether it foretells moves of people better, beyond what their differences explain.

        It is a test of pairs by Student's t, at `SURELY`: the other weight is the one that is right
        if people are as the learner supposes.
        """
        gain = self.scores - other.scores
        if len(gain) < FOLDS:
            return False
        error = float(gain.std(ddof=1)) / np.sqrt(len(gain))
        return bool(gain.mean() > stdtrit(len(gain) - 1, SURELY) * error)


def try_candidates(
    pairs: CountPairs,
    shape: Shape,
    *,
    priors: tuple[float, ...] | None = None,
    time: str = "auto",
    random_state: int | np.random.Generator | None = None,
    remembered: Remembered | None = None,
) -> Iterator[Trial]:
    """Candidates with their scores, one after the other, each learned without the kept counts.

    First ``priors`` for one matrix at all times (None: those of `PRIORS`, empty: the same without
    0), then, unless ``time`` is "one", how tightly times of day are tied to each other, the prior
    again with that, times of day apart for types of days, and rows of their own there. Of types
    that are weekends and days that somebody names, that one comes first with which the score is
    best, then others on top of it: a type with which people move otherwise makes all others differ
    from the rest while it is a part of that. A layer is tried on top of the best so far, and
    its strength goes on to whichever side predicts better; where strength 0 of the prior is among
    those tried, a prior that hurts on counts kept aside loses.

    Learners near their end slowly, the dense one the more so where counts err. All candidates with
    a layer therefore go as many iterations from one and the same state, that of a fit with the
    strongest prior, and where people are drawn, by the same random numbers: what differs between
    their scores is the strength, not how far each has come, nor chance. Scores that are
    ``remembered`` of the same pairs are not found again.
    """
    kept = held_out_days(pairs)
    rng = np.random.default_rng(random_state)
    for learner in learners_for(pairs, shape):
        trials = _Trials(
            pairs, kept, shape, learner, int(rng.integers(2**31)), remembered or Remembered()
        )
        own_priors = PRIORS[learner] if priors is None else priors or PRIORS[learner][1:]
        strongest = max(own_priors)
        start = trials.begun(Strength(strongest), None)
        best: Trial | None = None
        for trial in trials.several([Strength(prior) for prior in own_priors], start):
            yield trial
            best = _better(best, trial)
        assert best is not None
        if not times_are_tried(pairs, time):
            continue
        first = replace(best.candidate.strength, hours=FIRST_HOURS[learner])
        start = trials.begun(replace(first, prior=strongest), start)
        timed = yield from trials.climb(
            first, "hours", HOURS[learner], start, None if time == "by_time" else best
        )
        if timed is best:
            if len(pairs.day_types) > len(DAY_TYPES):
                # Days that are named may differ where times of day do not.
                timed = trials.of(first, start)
                yield from trials.types(timed, start)
            continue
        # How loosely times are tied bears on how much the prior is to say, and that on the former.
        for layer, ladder in (("prior", own_priors), ("hours", HOURS[learner])):
            timed = yield from trials.climb(timed.candidate.strength, layer, ladder, start, timed)
        timed = yield from trials.types(timed, start)
        if learner == DRAWN:
            own = replace(timed.candidate.strength, own=FIRST_OWN)
            start = _Begun((*start.path, timed.candidate.strength), timed.fit)
            yield from trials.climb(own, "own", OWN, start, timed)


def weigh_beside(
    pairs: CountPairs,
    shape: Shape,
    best: Trial,
    *,
    random_state: int = 0,
    remembered: Remembered | None = None,
) -> Generator[Weighed | Trial, None, Trial]:
    """What a panel and an old matrix of ``pairs`` count for; the trial with what is taken.

    They go on from ``best``, which knows neither. Weights of a panel are tried on moves of people
    of it who are kept aside, since counts that vary for reasons which a learner does not know are
    taken for moves, and contradict a panel that is right. A move of a panel counts for one of
    somebody else, unless another weight surely foretells moves better (`Weighed.surely_better`).
    Weights of a matrix are tried on counts kept aside: it counts for nothing, unless another weight
    foretells them better by more than a standard error.
    """
    trials = _Trials(
        pairs, held_out_days(pairs), shape, best.candidate.learner, random_state,
        remembered or Remembered(),
    )  # fmt: skip
    start = _Begun((best.candidate.strength,), best.fit)
    strength, taken = best.candidate.strength, best
    if pairs.panel is not None:
        found = []
        for weighed in trials.of_people(pairs.panel, strength, start):
            yield weighed
            found.append(weighed)
        first = next(each for each in found if each.weight == FIRST_PANEL)
        top = max(found, key=lambda each: float(each.scores.mean()))
        weight = top.weight if top.surely_better(first) else FIRST_PANEL
        strength = replace(strength, panel=weight)
        taken = trials.of(strength, start)
        yield taken
    if pairs.old_trips is not None:
        ladder = [replace(strength, matrix=rung) for rung in MATRIX[trials.learner]]
        rungs = []
        for trial in trials.several(ladder, start):
            yield trial
            rungs.append(trial)
        taken, best_rung = rungs[0], max(rungs, key=_score)
        if _surely_better(best_rung, taken):
            taken = best_rung
    return taken


def type_gains(trials: Sequence[Trial], learner: str) -> dict[int, tuple[float, float]]:
    """How much better counts kept aside are foretold with a type of days apart than without.

    By the number of each type that a learner tried: the mean of scores with it less that of scores
    without, at the best tie of times of day of each, and a standard error of that difference. It is
    that on top of the types that were taken before.
    """
    best: dict[tuple[int, ...], Trial] = {}
    for trial in trials:
        strength = trial.candidate.strength
        if trial.candidate.learner == learner and strength.by_time and strength.own is None:
            best[strength.apart] = _better(best.get(strength.apart), trial)
    found = {}
    for n_types in range(max(map(len, best), default=0)):
        level = [(apart, trial) for apart, trial in best.items() if len(apart) == n_types]
        if not level:
            continue
        taken, without = max(level, key=lambda each: _score(each[1]))
        for apart, trial in best.items():
            more = set(apart) - set(taken)
            if len(apart) == n_types + 1 and len(more) == 1:
                gain = trial.scores - without.scores
                error = float(gain.std() / np.sqrt(len(gain)))
                found[more.pop()] = float(gain.mean()), error
    return found


def best_trial(trials: Sequence[Trial], time: str = "auto") -> Trial:
    """The one to take of those tried, with ``time`` as for `try_candidates`.

    Of candidates with the same layers the best score wins. A layer more, times of day or rows of
    their own there, is taken only if it predicts better by more than a standard error of the
    difference (Breiman et al. 1984), so that chance does not decide for what is harder to learn.
    The best of several types of days has to be better by more of them (see `_surely_better`).
    """
    found = [_best_of_layers(trials, learner, time) for learner in (DRAWN, DENSE)]
    return max((trial for trial in found if trial is not None), key=_score)


def _best_of_layers(trials: Sequence[Trial], learner: str, time: str) -> Trial | None:
    mine = [trial for trial in trials if trial.candidate.learner == learner]
    most = max((trial.candidate.strength.n_layers for trial in mine), default=0)
    layers = [
        [trial for trial in mine if trial.candidate.strength.n_layers == n]
        for n in range(1, most + 1)
    ]
    if time == "by_time" and any(layers[1:]):
        layers = layers[1:]
    best: Trial | None = None
    for layer in filter(None, layers):
        trial = max(layer, key=_score)
        n_apart = len(trial.candidate.strength.apart)
        among = {each.candidate.strength.apart for each in mine}
        several = sum(len(apart) == n_apart for apart in among) if n_apart else 1
        best = trial if best is None or _surely_better(trial, best, several) else best
    return best


def _surely_better(trial: Trial, other: Trial, among: int = 1) -> bool:
    """Whether a trial predicts better by more than a standard error.

    The best ``among`` several has to be better by as many standard errors as make the chance that
    any of them is so much better, where none is, that of one standard error for a single one.
    """
    gain = trial.scores - other.scores
    enough = 1.0 if among == 1 else -ndtri(ndtr(-1.0) / among)
    return bool(gain.mean() > enough * gain.std() / np.sqrt(len(gain)))


def _score(trial: Trial) -> float:
    return trial.candidate.score


def times_are_tried(pairs: CountPairs, time: str) -> bool:
    """Whether there are enough people to tell times of day apart, and that is asked for."""
    per_hour = pairs.before.sum() / (len(pairs.slots) * pairs.n_states)
    several = len(np.unique(pairs.slot)) > 1
    return several and (time == "by_time" or (time == "auto" and per_hour >= FEWEST_PER_HOUR))


def timed_pairs(pairs: CountPairs, strength: Strength) -> CountPairs:
    """Pairs with the times of day that a strength is for: those of types of days if it says so."""
    return pairs.by_day_type(strength.apart) if strength.apart else pairs


def strength_between(trials: Sequence[Trial], best: Trial, random_state: int = 0) -> Strength:
    """A strength between those that predict about as well as the best one.

    Which candidate is best is left to chance where they are about as good: each counts by its
    share of wins (see `_wins`). Strengths are averaged by that on the scale of their logarithm.

    How tightly times of day are tied is the loosest that predicts about as well (see `_hours`).
    """
    alike, wins = _wins(trials, best, random_state)
    weighed: dict[str, Any] = {"hours": _hours(alike, best)}
    for layer in ("prior", "own"):
        values = [getattr(trial.candidate.strength, layer) for trial in alike]
        if values[0] is not None:
            logs = np.log(np.maximum(np.array(values, dtype=np.float64), LEAST_PULL))
            mean = float(np.exp(wins @ logs))
            weighed[layer] = 0.0 if mean <= 1.01 * LEAST_PULL else float(f"{mean:.3g}")
    return replace(best.candidate.strength, **weighed)


def strengths_about(
    trials: Sequence[Trial], best: Trial, n: int, random_state: int = 0
) -> list[Strength]:
    """``n`` strengths that may have been chosen as well, each as often as it wins (see `_wins`).

    What differs between flows that are learned with these is uncertain, too: the data do not tell
    which of them is right (pseudo-BMA+; Yao, Vehtari, Simpson & Gelman 2018). How tightly times of
    day are tied is one of `_ties`, each as often as any other.
    """
    alike, wins = _wins(trials, best, random_state)
    ties = _ties(alike, best)
    # Systematic, so that few draws have the shares of wins; in no order.
    at = (np.arange(n) + 0.5) / max(n, 1)
    taken = np.minimum(np.searchsorted(np.cumsum(wins), at), len(alike) - 1)
    rng = np.random.default_rng(random_state)
    return [
        replace(alike[taken[number]].candidate.strength, hours=ties[number % len(ties)])
        for number in rng.permutation(n)
    ]


def _hours(alike: Sequence[Trial], best: Trial) -> float | None:
    """The loosest tie of times of day of those that do not predict surely worse than the best.

    What a tie keeps times of day from having is made up for by people who move: these make the
    counts vary, so that they predict as well and are too many. The explanation that needs fewer of
    them is the simpler one.
    """
    values = _hours_alike(alike, best)
    return min(values) if values else None


def _ties(alike: Sequence[Trial], best: Trial) -> tuple[float | None, ...]:
    """How tightly times of day may be tied: as not to predict surely worse, and a rung looser.

    Each tie takes contrast from times of day in its own measure, and movement makes up for it, so
    that flows of a whole time of day hang on it: none of that is in worlds that are all learned
    from with the one tie.
    """
    values = _hours_alike(alike, best)
    if not values:
        return (None,)
    looser = [rung for rung in HOURS[best.candidate.learner] if rung < min(values)]
    return (*sorted({*values}), *looser[-1:])


def _hours_alike(alike: Sequence[Trial], best: Trial) -> list[float]:
    """Ties of those that do not predict surely worse than the best."""
    return [
        trial.candidate.strength.hours
        for trial in alike
        if trial.candidate.strength.hours is not None and not _surely_better(best, trial)
    ]


def _wins(
    trials: Sequence[Trial], best: Trial, random_state: int
) -> tuple[list[Trial], FloatArray]:
    """Candidates with the layers of ``best``, and how often each has the best score (n,), of 1.

    Pairs kept aside are drawn anew, many times (a bootstrap).
    """
    chosen = best.candidate
    alike = [
        trial
        for trial in trials
        if trial.candidate.learner == chosen.learner
        and _layers(trial.candidate.strength) == _layers(chosen.strength)
    ]
    scores = np.stack([trial.scores for trial in alike])
    rng = np.random.default_rng(random_state)
    counts = rng.multinomial(scores.shape[1], np.full(scores.shape[1], 1 / scores.shape[1]), DRAWS)
    wins = np.bincount(np.argmax(counts @ scores.T, axis=1), minlength=len(alike)) / DRAWS
    return alike, wins


def _layers(strength: Strength) -> tuple[bool, tuple[int, ...], bool]:
    return strength.by_time, strength.apart, strength.own is not None


@dataclass(frozen=True)
class _Trials:
    """What is tried, and on what."""

    pairs: CountPairs
    kept: tuple[BoolArray, ...]
    shape: Shape
    learner: str
    seed: int
    remembered: Remembered

    @cached_property
    def _key(self) -> str:
        """What scores depend on, besides the strengths."""
        return fingerprint(self.pairs, self.kept, self.shape, self.learner, self.seed)

    @property
    def _told(self) -> _Trials:
        """What a fit needs of it."""
        return replace(self, remembered=Remembered())

    def begun(self, strength: Strength, before: _Begun | None) -> _Begun:
        """Where candidates with the layers of a strength begin."""
        path = (strength,) if before is None else (*before.path, strength)
        return _Begun(path, cache(partial(self._states, strength, before)))

    def of(self, strength: Strength, before: _Begun) -> Trial:
        """One trial, from the states of a beginning."""
        (trial,) = self.several([strength], before)
        return trial

    def several(self, strengths: Sequence[Strength], before: _Begun) -> Iterator[Trial]:
        """A trial of each strength, from the states of a beginning; those side by side."""
        keys = {
            strength: fingerprint("trial", self._key, before.path, strength)
            for strength in strengths
        }
        unknown = [s for s, key in keys.items() if self.remembered.get(key) is None]
        fits = [(strength, fold) for strength in unknown for fold in range(len(self.kept))]
        tried = checkpoints().each(
            f"trials {fingerprint(self._key, before.path, unknown)}", _ScoredFit(self._told),
            ((s, fold, self._begin(before, fold)) for s, fold in fits),
        )  # fmt: skip
        for strength, key in keys.items():
            if strength in unknown:
                folds = [next(tried) for _ in self.kept]
                states, scores = zip(*folds, strict=True)
                found = np.concatenate(scores)
                self.remembered.put(key, found.tolist())
                yield self._trial(strength, partial(_given, states), found)
            else:
                fit = cache(partial(self._states, strength, before))
                yield self._trial(strength, fit, np.array(self.remembered.get(key)))

    def of_people(self, panel: Panel, strength: Strength, before: _Begun) -> Iterator[Weighed]:
        """Weights of a panel, and how they foretell moves of people of it who are kept aside.

        Where there are fewer people than parts, one weight alone is given.
        """
        people = np.unique(panel.person)
        if len(people) < FOLDS:
            yield Weighed(FIRST_PANEL, np.zeros(len(people)))
            return
        strengths = [replace(strength, panel=weight) for weight in PANEL]
        keys = [fingerprint("people", self._key, before.path, each) for each in strengths]
        if any(self.remembered.get(key) is None for key in keys):
            fits = [(each, fold) for each in strengths for fold in range(FOLDS)]
            state = before.fit()[0]
            tried = checkpoints().each(
                f"people {fingerprint(self._key, before.path)}",
                _PeopleFit(self._told, before.strength, state), fits,
            )  # fmt: skip
            for key in keys:
                scores = np.sum([next(tried) for _ in range(FOLDS)], axis=0)
                self.remembered.put(key, scores.tolist())
        for weight, key in zip(PANEL, keys, strict=True):
            yield Weighed(weight, np.array(self.remembered.get(key)))

    def _trial(
        self, strength: Strength, fit: Callable[[], tuple[FlowState, ...]], scores: FloatArray
    ) -> Trial:
        return Trial(Candidate(self.learner, strength, float(scores.mean())), fit, scores)

    def _states(self, strength: Strength, before: _Begun | None) -> tuple[FlowState, ...]:
        """What is learned without each part kept aside."""
        folds = ((strength, fold, self._begin(before, fold)) for fold in range(len(self.kept)))
        name = f"states {fingerprint(self._key, strength, () if before is None else before.path)}"
        return tuple(checkpoints().each(name, _Fit(self._told), folds))

    def _begin(self, before: _Begun | None, fold: int) -> tuple[Strength, FlowState] | None:
        """Where a fit without a part begins: at what was learned, and with which strength."""
        return None if before is None else (before.strength, before.fit()[fold])

    def types(self, timed: Trial, start: _Begun) -> Generator[Trial, None, Trial]:
        """Types of days apart from others, one more as long as the best of them surely is better.

        Returns the trial with those that are taken.
        """
        pairs, ladder = self.pairs, HOURS[self.learner]
        while True:
            strength = timed.candidate.strength
            typed = [
                strength.with_type(kind) for kind in range(WEEKEND, len(pairs.day_types))
                if kind not in strength.apart
            ]  # fmt: skip
            found = []
            for each in typed:
                if pairs.can_be_apart(each.apart):
                    trial = yield from self.climb(each, "hours", ladder, start, None)
                    found.append(trial)
            if not found:
                return timed
            best = max(found, key=_score)
            if not _surely_better(best, timed, len(found)):
                return timed
            timed = best

    def climb(
        self, first: Strength, layer: str, ladder: tuple[float, ...], start: _Begun,
        best: Trial | None,
    ) -> Generator[Trial, None, Trial]:  # fmt: skip
        """Rungs of a layer's ladder from ``first`` on, up and down while each is better.

        Returns the best of them and ``best``, which is what a rung has to be better than; where
        that stands on ``first`` itself, only its neighbours are tried.
        """
        if best is None or best.candidate.strength != first:
            trial = self.of(first, start)
            yield trial
            best = _better(best, trial)
        middle = ladder.index(getattr(first, layer))
        for side in (ladder[middle + 1 :], ladder[:middle][::-1]):
            for rung in side:
                other: dict[str, Any] = {layer: rung}
                trial = self.of(replace(first, **other), start)
                yield trial
                if _better(best, trial) is not trial:
                    break
                best = trial
        return best


_Beginning = tuple[Strength, FlowState] | None


@dataclass(frozen=True)
class _Fit:
    """What a strength learns without a part kept aside, from a beginning."""

    trials: _Trials

    def __call__(self, given: tuple[Strength, int, _Beginning]) -> FlowState:
        strength, fold, begin = given
        of, before = self.trials, None if begin is None else begin[0]
        pairs = timed_pairs(of.pairs, strength)
        steps = learn_flows(
            pairs.take(~of.kept[fold]), of.shape, of.learner, strength,
            start=None if begin is None else begin[1],
            n_iter=_trial_iterations(pairs, of.learner, strength, before, of.shape),
            random_state=np.random.default_rng([of.seed, fold]),
        )  # fmt: skip
        return last_of(steps)


@dataclass(frozen=True)
class _ScoredFit:
    """The same, and the scores of the pairs that are kept aside."""

    trials: _Trials

    def __call__(self, given: tuple[Strength, int, _Beginning]) -> tuple[FlowState, FloatArray]:
        strength, fold, _ = given
        state = _Fit(self.trials)(given)
        aside = timed_pairs(self.trials.pairs, strength).take(self.trials.kept[fold])
        shape = self.trials.shape
        if isinstance(shape, Nearby):
            return state, local_scores(aside, shape, state.transmats)
        return state, prediction_scores(aside, state.transmats)


@dataclass(frozen=True)
class _PeopleFit:
    """Log-chances (K,) of the moves of people of a panel who are kept aside; 0 of others."""

    trials: _Trials
    before: Strength
    start: FlowState

    def __call__(self, given: tuple[Strength, int]) -> FloatArray:
        strength, fold = given
        of, shape = self.trials, self.trials.shape
        assert of.pairs.panel is not None
        assert isinstance(shape, np.ndarray)
        pairs, panel = timed_pairs(of.pairs, strength), of.pairs.panel
        _, number = np.unique(panel.person, return_inverse=True)
        aside = number % FOLDS == fold
        steps = learn_flows(
            replace(pairs, panel=panel.some(~aside)), shape, of.learner, strength, start=self.start,
            n_iter=_trial_iterations(pairs, of.learner, strength, self.before, shape),
            random_state=np.random.default_rng([of.seed, fold]),
        )  # fmt: skip
        transmats = last_of(steps).transmats
        test = panel.some(aside)
        chances = transmats[pairs.which(transmats)[test.pair], test.origin, test.dest]
        logs = np.log(np.maximum(chances, LEAST_CHANCE))
        scores = np.bincount(number[aside], logs, int(number.max()) + 1)
        return scores.astype(np.float64)


def _given(states: tuple[FlowState, ...]) -> tuple[FlowState, ...]:
    return states


def _better(best: Trial | None, trial: Trial) -> Trial:
    return trial if best is None or trial.candidate.score > best.candidate.score else best
