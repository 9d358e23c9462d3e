"""The weight of the prior, found by predicting groups that are kept aside."""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, islice
from typing import Any

import numpy as np
import numpy.typing as npt

from agg_core.base.checkpoints import checkpoints
from agg_core.base.moves import as_moves, at_dest, at_origin, entries, moves_like, whole
from agg_core.base.relay import relayed
from agg_core.learn.em import Iteration
from agg_core.learn.esteps.gaussian_pairs import DITHER
from agg_core.learn.learners import choose_learner, learner_steps, log_likelihood
from agg_core.learn.table import PRIOR
from agg_core.model.aggregates import Aggregates
from agg_core.model.emissions import CategoricalEmission
from agg_core.model.hmm import HMM

__all__ = [
    "PRIORS",
    "PriorChoice",
    "kept_aside",
    "n_parts_aside",
    "n_trial_steps",
    "prediction_scores",
    "prior_steps",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

PRIORS = (2.0, 10.0, 50.0, 250.0)
"""People per row to try."""

TRIAL_ITERATIONS = 8
"""Iterations of a trial: the strongest prior is tried first, as it settles soonest, and each weaker
one goes on from where the one before it came to."""

FEW_GROUPS = 40
FOLDS = 3
SHARE = 4
"""With so few groups each of `FOLDS` parts of them is kept aside in turn, else one of `SHARE`."""

LEAST_SCORE = -1e9
"""Stands for the score of what a model rules out."""

MOST_SCORED = 500
MOST_PLACES = 2_000
"""Groups, and places of people, that are kept aside and predicted at most."""


@dataclass(frozen=True)
class PriorChoice:
    """A weight of the prior, in people per row, and in half a sentence why it was taken."""

    prior: float
    reason: str


def prior_steps(
    aggregates: Aggregates,
    hmm: HMM,
    *,
    inference: str,
    fixed: Collection[str] = (),
    random_state: int | None = None,
    name: str = "prior",
    **choices: Any,
) -> Generator[Iteration, None, PriorChoice]:
    """Try each of `PRIORS` on groups kept aside; yields the iterations, returns the choice.

    Each weight is learned with, for a few iterations, from the other groups, and predicts the kept
    ones (`prediction_scores`; of positions, how likely `log_likelihood` finds them). The best mean
    score wins, also where others are within a standard error of it: to lean too little costs more
    than to lean too much, as the flows that are told are those expected of the people themselves
    (see `LearnState`). ``choices`` are those of `agg_core.learn.learners.learner_steps`, for every
    trial. Checkpoints of the work know the trials by ``name``.

    Raises
    ------
    InputError
        As `agg_core.learn.learners.learner_steps`.
    """
    kept = kept_aside(aggregates)
    if not kept:
        return PriorChoice(PRIOR, "there are too few groups to keep some aside")
    # All trials have the learner that all groups together ask for.
    learner = choose_learner(inference, aggregates, hmm, fixed=fixed)
    taken = inference if learner.warm else learner.learner
    trial = partial(
        _trial, aggregates, hmm, taken, fixed=fixed, random_state=random_state, **choices
    )
    begins: list[HMM | None] = [None] * len(kept)
    scores, iteration = {}, count(1)
    for prior in PRIORS[::-1]:
        found = yield from relayed(
            checkpoints().steps(
                f"{name}/{prior:g}", partial(trial, prior), zip(kept, begins, strict=True)
            ),
            lambda state: replace(state, iteration=next(iteration)),
        )
        begins = [begin for begin, _ in found]
        scores[prior] = np.concatenate([of_fold for _, of_fold in found])
    return _taken(scores)


def _trial(
    aggregates: Aggregates,
    hmm: HMM,
    learner: str,
    prior: float,
    given: tuple[BoolArray, HMM | None],
    **choices: Any,
) -> Generator[Iteration, None, tuple[HMM, FloatArray]]:
    """Learn with a prior without the groups kept aside (K,), from where another one came to.

    Yields the iterations; returns where they lead, and the scores of the groups kept aside.
    """
    aside, begin = given
    rest, held = (
        aggregates.take(np.flatnonzero(~aside)),
        aggregates.take(_scored(aside, aggregates)),
    )
    steps = learner_steps(learner, rest, hmm, prior=prior, begin=begin, **choices)
    for state in islice(steps, TRIAL_ITERATIONS):
        begin = state.hmm
        # Trials keep their steps until others are done: parameters of all would be too many.
        yield Iteration(
            iteration=state.iteration, free_energy=state.free_energy, change=state.change
        )
    assert begin is not None, "a learner's stream has no end"
    return begin, _scores(held, begin)


def n_trial_steps(aggregates: Aggregates) -> int:
    """How many iterations `prior_steps` yields."""
    return len(kept_aside(aggregates)) * len(PRIORS) * TRIAL_ITERATIONS


def kept_aside(aggregates: Aggregates, *, in_turn: bool = False) -> list[BoolArray]:
    """Which groups (K,) to keep aside, in turn: none where there are too few.

    Of many groups it is one part of them alone, or, ``in_turn``, each part.
    """
    place = np.arange(aggregates.n_sequences)
    n_parts = n_parts_aside(len(place), aggregates.length, in_turn=in_turn)
    if len(place) > FEW_GROUPS:
        return [place % SHARE == part for part in (range(SHARE) if in_turn else (SHARE // 2,))][
            :n_parts
        ]
    return [place % FOLDS == part for part in range(n_parts)]


def n_parts_aside(n_groups: int, length: int, *, in_turn: bool = False) -> int:
    """How many parts of so many groups, observed for ``length`` steps, `kept_aside` keeps aside."""
    if n_groups < 2 * FOLDS or length < 2:
        return 0
    if n_groups > FEW_GROUPS:
        return SHARE if in_turn else 1
    return FOLDS


def _scored(aside: BoolArray, aggregates: Aggregates) -> IntArray:
    """The groups of those kept aside that are predicted, spread over all of them."""
    groups = np.flatnonzero(aside)
    most = MOST_SCORED
    if aggregates.points is not None:
        places = aggregates.n_tokens / aggregates.n_sequences
        most = max(int(MOST_PLACES / places), 2 * FOLDS)
    return groups[np.unique(np.linspace(0, len(groups) - 1, most).round().astype(np.int64))]


def _taken(scores: Mapping[float, FloatArray]) -> PriorChoice:
    """The weight that predicts best, and which others do within a standard error of that."""
    taken = max(sorted(scores), key=lambda prior: float(scores[prior].mean()))
    alike = []
    for prior in sorted(scores.keys() - {taken}):
        loss = scores[taken] - scores[prior]
        if loss.mean() <= loss.std(ddof=1) / np.sqrt(len(loss)):
            alike.append(f"{prior:g}")
    nearly = f", {' and '.join(alike)} nearly as well" if alike else ""
    return PriorChoice(taken, f"it predicts groups kept aside best{nearly}")


def _scores(held: Aggregates, hmm: HMM) -> FloatArray:
    """How well each group (K,) is predicted; what cannot be has `LEAST_SCORE`."""
    if isinstance(hmm.emission, CategoricalEmission):
        return prediction_scores(held, hmm)
    groups = [held.take([k]) for k in range(held.n_sequences)]
    return np.array([max(log_likelihood(hmm, group), LEAST_SCORE) for group in groups])


def prediction_scores(aggregates: Aggregates, hmm: HMM) -> FloatArray:
    """Dawid-Sebastiani scores (K,) of the next counts of each group given its present ones.

    With counts y of symbols at a step, z at the next one and pi_t = startprob A^t::

        P = R A B,   R(o, x) = pi_t(x) B(x, o) / (pi_t B)(o)
        m = y P,     V = diag(m) - sum_o y_o P_o P_o' + v I

    is the mean and covariance of z at every size of group (see `gaussian_pairs_steps`), so that
    this is a proper score at every size (Dawid & Sebastiani 1999)::

        -1/2 [r' W r + v tr W + log det V],   r = z - m,  W = V^-1

    summed over the steps of a group that were observed. v = `DITHER` is the variance of a noise
    that z is thought to carry, which keeps V from vanishing where nobody moves; the middle term is
    what the noise itself adds on average. The larger the better.
    """
    assert isinstance(hmm.emission, CategoricalEmission), "counts are of symbols"
    emission, shares = hmm.emission.emissionprob, hmm.startprob
    symbol, observed = aggregates.symbol, np.diff(aggregates.indptr) > 0
    people = aggregates.shares * aggregates.sizes[aggregates.step_of_token // aggregates.length]
    scores = np.zeros(aggregates.n_sequences)
    for t in range(aggregates.length - 1):
        shown = shares @ emission
        seen = at_dest(emission, shown) + np.zeros_like(entries(emission))
        joint = entries(emission) * at_origin(emission, shares)
        chances = np.divide(joint, seen, out=np.zeros_like(joint), where=seen > 0)
        state = moves_like(emission, chances)
        predicted = as_moves(state.T @ (hmm.transmat @ emission))
        steps = np.arange(aggregates.n_sequences) * aggregates.length + t
        for at in steps[observed[steps] & observed[steps + 1]]:
            now, then, end = aggregates.indptr[at : at + 3]
            following = np.zeros(emission.shape[1])
            following[symbol[then:end]] = people[then:end]
            scores[at // aggregates.length] += _pair_score(
                whole(as_moves(predicted[symbol[now:then]])), people[now:then], following
            )
        shares = shares @ hmm.transmat
    return scores


def _pair_score(rows: FloatArray, people: FloatArray, following: FloatArray) -> float:
    """The score of the next counts (S,) of people (n,) who move by rows (n, S).

    V is a diagonal less a product of n columns, of which n x n matrices give the inverse.
    """
    mean = people @ rows
    diagonal, error = mean + DITHER, following - mean
    columns = np.sqrt(people)[:, None] * rows
    scaled = columns / diagonal
    root = np.linalg.cholesky(np.eye(len(people)) - scaled @ columns.T)
    through = np.linalg.solve(root, scaled)
    pulled = through @ error
    square = float(error @ (error / diagonal) + pulled @ pulled)
    trace = float((1 / diagonal).sum() + (through**2).sum())
    log_det = float(np.log(diagonal).sum() + 2 * np.log(np.diagonal(root)).sum())
    return -0.5 * (square + DITHER * trace + log_det)
