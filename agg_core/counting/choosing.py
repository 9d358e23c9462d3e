"""Which learner from counts, and how strongly tied: tried on days kept aside."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from agg_core.counting.dense import dense_steps
from agg_core.counting.drawing import drawn_steps
from agg_core.counting.held_out import forecast_score, held_out_days
from agg_core.counting.pairs import CountPairs
from agg_core.counting.rows import Strength
from agg_core.counting.state import FlowState

__all__ = ["DENSE", "DRAWN", "Candidate", "Trial", "learn_flows", "try_candidates"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

DRAWN, DENSE = "drawn", "dense"

FEW, MANY = 4.0, 30.0
"""People per occupied cell: up to `FEW` who is who is drawn, from `MANY` on the learner for dense
counts stands alone, and between them both are tried."""

MOST_SLOTS = 3e6
"""People times pairs that are drawn at most."""

PRIORS = {DRAWN: (0.0, 5.0, 20.0, 100.0), DENSE: (0.0, 20.0, 100.0, 400.0)}
"""People per row to try; dense counts tell less of each mover, so that they need more."""

HOURS = {DRAWN: (30.0, 300.0), DENSE: (10.0, 100.0)}
OWN = (50.0, 200.0)
"""People who tie attractions at a time of day, and rows of their own, to try."""

FEWEST_PER_HOUR = 3.0
"""People per cell and time of day, over all days, below which times of day are not tried."""

TRIAL_ITERATIONS = {(DRAWN, False): 16, (DRAWN, True): 16, (DENSE, False): 40, (DENSE, True): 10}
ITERATIONS = {(DRAWN, False): 40, (DRAWN, True): 40, (DENSE, False): 200, (DENSE, True): 60}
"""Most iterations of a trial and of a fit, by learner and whether it learns by time of day: one of
the dense learner then costs more by the number of times."""

TOL = {DRAWN: 1e-3, DENSE: 3e-4}
"""Change below which a fit stands still."""


@dataclass(frozen=True)
class Candidate:
    """A learner and strengths, and their `forecast_score` per pair on counts kept aside."""

    learner: str
    strength: Strength
    score: float


def learners_for(pairs: CountPairs) -> tuple[str, ...]:
    """The learners that fit the number of people per cell, the first one best at few."""
    slots = float(pairs.before.sum())
    if pairs.crowd >= MANY or slots > MOST_SLOTS:
        return (DENSE,)
    return (DRAWN,) if pairs.crowd <= FEW else (DRAWN, DENSE)


def learn_flows(
    pairs: CountPairs,
    shape: FloatArray,
    learner: str,
    strength: Strength,
    *,
    n_iter: int | None = None,
    start: FloatArray | None = None,
    random_state: int | np.random.Generator | None = None,
) -> Iterator[FlowState]:
    """Iterations of a learner until it stands still, or ``n_iter`` of them."""
    if learner == DRAWN:
        steps = drawn_steps(pairs, shape, strength, start=start, random_state=random_state)
    else:
        steps = dense_steps(pairs, shape, strength, start=start)
    most = n_iter or ITERATIONS[learner, strength.by_time]
    for state in steps:
        yield state
        if state.change < TOL[learner] or state.iteration >= most:
            return


@dataclass(frozen=True)
class Trial:
    """A candidate that was tried, and the transitions it came to without each part kept aside."""

    candidate: Candidate
    transmats: tuple[FloatArray, ...]


def try_candidates(
    pairs: CountPairs,
    shape: FloatArray,
    *,
    priors: tuple[float, ...] | None = None,
    time: str = "auto",
    random_state: int | np.random.Generator | None = None,
) -> Iterator[Trial]:
    """Candidates with their scores, one after the other, each learned without the kept counts.

    First ``priors`` for one matrix at all times (None: those of `PRIORS`, empty: the same without
    0), then, unless ``time`` is "one", times of day tied to each other, and rows of their own
    there. A layer is tried on top of the best so far; where strength 0 of the prior is among those
    tried, a prior that hurts on counts kept aside loses.
    """
    kept = held_out_days(pairs)
    rng = np.random.default_rng(random_state)
    for learner in learners_for(pairs):
        best: Trial | None = None
        for prior in PRIORS[learner] if priors is None else priors or PRIORS[learner][1:]:
            strength = Strength(prior)
            trial = _tried(pairs, kept, shape, learner, strength, rng, best)
            yield trial
            best = _better(best, trial)
        assert best is not None
        if not _times_are_tried(pairs, time):
            continue
        # With times asked for, one matrix for all is no candidate any more.
        timed: Trial | None = None if time == "by_time" else best
        for hours in HOURS[learner]:
            strength = Strength(best.candidate.strength.prior, hours)
            trial = _tried(pairs, kept, shape, learner, strength, rng, best)
            yield trial
            timed = _better(timed, trial)
        assert timed is not None
        if learner == DENSE or timed is best:
            continue
        for own in OWN:
            strength = replace(timed.candidate.strength, own=own)
            yield _tried(pairs, kept, shape, learner, strength, rng, timed)


def _times_are_tried(pairs: CountPairs, time: str) -> bool:
    per_hour = pairs.before.sum() / (len(pairs.slots) * pairs.n_states)
    several = len(np.unique(pairs.slot)) > 1
    return several and (time == "by_time" or (time == "auto" and per_hour >= FEWEST_PER_HOUR))


def _tried(
    pairs: CountPairs,
    kept: tuple[BoolArray, ...],
    shape: FloatArray,
    learner: str,
    strength: Strength,
    rng: np.random.Generator,
    before: Trial | None,
) -> Trial:
    score, n, transmats = 0.0, 0, []
    for fold, aside in enumerate(kept):
        start = None if before is None else before.transmats[fold]
        *_, last = learn_flows(
            pairs.take(~aside), shape, learner, strength, start=start, random_state=rng,
            n_iter=TRIAL_ITERATIONS[learner, strength.by_time],
        )  # fmt: skip
        test = pairs.take(aside)
        score += forecast_score(test, last.transmats)
        n += test.n_pairs
        transmats.append(last.transmats)
    return Trial(Candidate(learner, strength, score / n), tuple(transmats))


def _better(best: Trial | None, trial: Trial) -> Trial:
    return trial if best is None or trial.candidate.score > best.candidate.score else best
