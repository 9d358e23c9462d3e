"""Which learner from counts, and how strongly tied: tried on days kept aside."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from agg_core.counts.dense import dense_steps
from agg_core.counts.drawing import drawn_steps
from agg_core.counts.held_out import held_out_days, prediction_scores
from agg_core.counts.pairs import CountPairs
from agg_core.counts.rows import Strength
from agg_core.counts.softening import softened
from agg_core.counts.state import FlowState

__all__ = ["DENSE", "DRAWN", "Candidate", "Trial", "best_trial", "learn_flows", "try_candidates"]

FloatArray = npt.NDArray[np.float64]
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

FEWEST_PER_HOUR = 3.0
"""People per cell and time of day, over all days, below which times of day are not tried."""

TRIAL_ITERATIONS = {(DRAWN, False): 16, (DRAWN, True): 16, (DENSE, False): 40, (DENSE, True): 10}
ITERATIONS = {(DRAWN, False): 40, (DRAWN, True): 40, (DENSE, False): 200, (DENSE, True): 60}
"""Most iterations of a trial and of a fit, by learner and whether it learns by time of day: one of
the dense learner then costs more by the number of times."""

SOFT_ROUNDS = 3
"""Times that counts are softened and learned from again where they are not trusted altogether."""

TOL = {DRAWN: 1e-3, DENSE: 3e-4}
"""Change below which a fit stands still."""


@dataclass(frozen=True)
class Candidate:
    """A learner and strengths, and their mean `prediction_scores` on counts kept aside."""

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
    trust: float,
    n_iter: int | None = None,
    start: FloatArray | None = None,
    random_state: int | np.random.Generator | None = None,
) -> Iterator[FlowState]:
    """Iterations of a learner until it stands still, or ``n_iter`` of them.

    With ``trust`` below 1 it learns `SOFT_ROUNDS` times more, each time from counts softened by
    what was learned before (see `agg_core.counts.softening`).
    """
    rng = np.random.default_rng(random_state)
    most = n_iter or ITERATIONS[learner, strength.by_time]
    soft, before = pairs, 0
    for _ in range(1 if trust >= 1 else 1 + SOFT_ROUNDS):
        if learner == DRAWN:
            steps = drawn_steps(soft, shape, strength, start=start, random_state=rng)
        else:
            steps = dense_steps(soft, shape, strength)
        for state in steps:
            yield replace(state, iteration=before + state.iteration)
            if state.change < TOL[learner] or state.iteration >= most:
                break
        before, start = before + state.iteration, state.transmats
        soft = softened(pairs, start, trust)


@dataclass(frozen=True)
class Trial:
    """A candidate that was tried, and the transitions it came to without each part kept aside.

    ``scores`` (n,) are those of the pairs kept aside, in the same order for all candidates.
    """

    candidate: Candidate
    transmats: tuple[FloatArray, ...]
    scores: FloatArray


def try_candidates(
    pairs: CountPairs,
    shape: FloatArray,
    *,
    trust: float,
    priors: tuple[float, ...] | None = None,
    time: str = "auto",
    random_state: int | np.random.Generator | None = None,
) -> Iterator[Trial]:
    """Candidates with their scores, one after the other, each learned without the kept counts.

    First ``priors`` for one matrix at all times (None: those of `PRIORS`, empty: the same without
    0), then, unless ``time`` is "one", how tightly times of day are tied to each other, the prior
    again with that, and rows of their own there. A layer is tried on top of the best so far, and
    its strength goes on to whichever side predicts better; where strength 0 of the prior is among
    those tried, a prior that hurts on counts kept aside loses.
    """
    kept = held_out_days(pairs)
    rng = np.random.default_rng(random_state)
    for learner in learners_for(pairs):
        trials = _Trials(pairs, kept, shape, learner, trust, rng)
        own_priors = PRIORS[learner] if priors is None else priors or PRIORS[learner][1:]
        best: Trial | None = None
        for prior in own_priors:
            trial = trials.of(Strength(prior), best)
            yield trial
            best = _better(best, trial)
        assert best is not None
        if not _times_are_tried(pairs, time):
            continue
        day = best.candidate.strength
        timed = yield from trials.climb(
            replace(day, hours=FIRST_HOURS[learner]), "hours", HOURS[learner], best,
            None if time == "by_time" else best,
        )  # fmt: skip
        if timed is best:
            continue
        # How loosely times are tied bears on how much the prior is to say, and that on the former.
        for layer, ladder in (("prior", own_priors), ("hours", HOURS[learner])):
            timed = yield from trials.climb(timed.candidate.strength, layer, ladder, timed, timed)
        if learner == DRAWN:
            own = replace(timed.candidate.strength, own=FIRST_OWN)
            yield from trials.climb(own, "own", OWN, timed, timed)


def best_trial(trials: Sequence[Trial], time: str = "auto") -> Trial:
    """The one to take of those tried, with ``time`` as for `try_candidates`.

    Of candidates with the same layers the best score wins. A layer more, times of day or rows of
    their own there, is taken only if it predicts better by more than a standard error of the
    difference (Breiman et al. 1984), so that chance does not decide for what is harder to learn.
    """
    found = [_best_of_layers(trials, learner, time) for learner in (DRAWN, DENSE)]
    return max((trial for trial in found if trial is not None), key=_score)


def _best_of_layers(trials: Sequence[Trial], learner: str, time: str) -> Trial | None:
    mine = [trial for trial in trials if trial.candidate.learner == learner]
    layers = [
        [trial for trial in mine if trial.candidate.strength.n_layers == n] for n in (1, 2, 3)
    ]
    if time == "by_time" and (layers[1] or layers[2]):
        layers = layers[1:]
    best: Trial | None = None
    for layer in filter(None, layers):
        trial = max(layer, key=_score)
        best = trial if best is None or _surely_better(trial, best) else best
    return best


def _surely_better(trial: Trial, other: Trial) -> bool:
    gain = trial.scores - other.scores
    return bool(gain.mean() > gain.std() / np.sqrt(len(gain)))


def _score(trial: Trial) -> float:
    return trial.candidate.score


def _times_are_tried(pairs: CountPairs, time: str) -> bool:
    per_hour = pairs.before.sum() / (len(pairs.slots) * pairs.n_states)
    several = len(np.unique(pairs.slot)) > 1
    return several and (time == "by_time" or (time == "auto" and per_hour >= FEWEST_PER_HOUR))


@dataclass(frozen=True)
class _Trials:
    """What is tried, and on what."""

    pairs: CountPairs
    kept: tuple[BoolArray, ...]
    shape: FloatArray
    learner: str
    trust: float
    rng: np.random.Generator

    def of(self, strength: Strength, before: Trial | None) -> Trial:
        """One trial, from the transitions of another one."""
        scores, transmats = [], []
        for fold, aside in enumerate(self.kept):
            start = None if before is None else before.transmats[fold]
            *_, last = learn_flows(
                self.pairs.take(~aside), self.shape, self.learner, strength, start=start,
                n_iter=TRIAL_ITERATIONS[self.learner, strength.by_time], trust=self.trust,
                random_state=self.rng,
            )  # fmt: skip
            scores.append(prediction_scores(self.pairs.take(aside), last.transmats))
            transmats.append(last.transmats)
        of_pairs = np.concatenate(scores)
        candidate = Candidate(self.learner, strength, float(of_pairs.mean()))
        return Trial(candidate, tuple(transmats), of_pairs)

    def climb(
        self, first: Strength, layer: str, ladder: tuple[float, ...], start: Trial,
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
                trial = self.of(replace(first, **{layer: rung}), start)
                yield trial
                if _better(best, trial) is not trial:
                    break
                best = trial
        return best


def _better(best: Trial | None, trial: Trial) -> Trial:
    return trial if best is None or trial.candidate.score > best.candidate.score else best
