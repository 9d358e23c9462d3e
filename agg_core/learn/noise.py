"""The noise of fixes, a share of misplaced ones or metres, learned from the fixes themselves."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from agg_core.base.engine import current
from agg_core.base.errors import InputError
from agg_core.base.moves import AnyMoves, entries, moves_like, nobody_like
from agg_core.learn.choosing import PRIORS, kept_aside
from agg_core.learn.em import MAX_SWEEPS, SWEEP_TOL, Iteration
from agg_core.learn.esteps.base import ExpectedCounts, Inference
from agg_core.learn.gravity import gravity_rows
from agg_core.learn.learners import inference_named
from agg_core.learn.mstep import Statistics, maximised
from agg_core.learn.table import CAVITY, PAPERS
from agg_core.model.aggregates import Aggregates
from agg_core.model.emissions import Emission, Noise, TokenLikelihoods
from agg_core.model.hmm import HMM

__all__ = [
    "FEWEST_STEPS",
    "LearnedNoise",
    "asked_in_turn",
    "asked_parts",
    "n_noise_steps",
    "noise_steps",
]

FloatArray = npt.NDArray[np.float64]

FEWEST_STEPS = 3
"""Of two steps a person who went and one who was misplaced at the second look alike."""

FIRST_ROUNDS, ROUNDS = 16, 8
"""Rounds with the first prior, and with each other one, which goes on from there."""

LEAP = 4
"""Amounts from whose last three it is told where they lead."""

LONGEST_LEAP = 4.0
"""Steps that a leap is long at most."""

BACKGROUND = 1e-4
"""Part of the start in the transitions by which kept groups move: what nobody was seen to do among
the others is next to impossible, not ruled out."""

ENOUGH, ENOUGH_GROUPED, MOST = 30_000, 10_000, 40_000
"""People, single and in groups, who tell one number well enough, as groups take longer to ask: of
so many one part alone is kept aside, and times of day beyond them are not asked. Of `MOST` at one
time of day every second group, or fewer, is."""

ENOUGH_PLACED, MOST_PLACED = 2_000, 4_000
"""The same of people whose positions are observed: every fix of them tells the metres, while of
symbols those alone tell the share that are misplaced, and positions take longer to ask."""

STEPS = 2
"""EM steps of transitions in a round."""

SURE = 2.0
"""Log-likelihood that a stated amount must lack to be contradicted: about two standard errors."""


@dataclass(frozen=True)
class LearnedNoise:
    """An amount of a noise, and what kept observations say of a stated one.

    ``amount`` is None where nothing can tell it: where every part has fewer than `FEWEST_STEPS`
    steps, or too few groups to keep some aside, or observations cannot happen. ``contradicted`` is
    True where the stated amount makes kept groups much less likely and is not near.
    """

    amount: float | None
    contradicted: bool = False


def noise_steps(
    parts: Sequence[Aggregates],
    hmm: HMM,
    noise: Noise,
    stated: float | None = None,
) -> Generator[Iteration, None, LearnedNoise]:
    """Learn the amount of a noise that all ``parts`` have in common, by cross-fitted EM.

    Each part has transitions of its own, from those of ``hmm`` on. A round makes two EM steps for
    the transitions on the groups that are not kept aside, and one for the amount on those that are
    (`Noise.improved`), with ``hmm`` pulled by the strongest of `PRIORS` and then by weaker ones,
    while these make the kept groups more likely. Were transitions and amount learned from the same
    groups, the d^2 chances of moves would take misplaced fixes for movement, which they have the
    room for: of groups that they were not fitted to they explain no more than what is really
    movement. The E-step is exact for single people and that of cavity for groups. Where there are
    very many people some of them are asked (see `ENOUGH`).

    ``stated`` is held against what was learned: it is contradicted if the kept groups are less
    likely under it, by `SURE` and at the same prior, and it is not `Noise.near`. Yields the rounds.
    """
    told_by = _enough([part for part in parts if part.length >= FEWEST_STEPS])
    folds = [fold for part in told_by for fold in _folds_of(part, hmm)]
    if not folds:
        return LearnedNoise(None)
    amount, iteration, found = noise.first, 0, []
    for number, prior in enumerate(PRIORS[::-1]):
        amounts = [amount]
        for _ in range(ROUNDS if number else FIRST_ROUNDS):
            amount, score = _round(folds, noise, amount, prior, hmm)
            amounts.append(amount)
            if len(amounts) == LEAP:
                amount = float(np.clip(_ahead(amounts), *noise.limits))
                amounts = [amount]
            iteration += 1
            yield _told(iteration, score)
        # The score of a round is that of the amount before it.
        found.append((_round(folds, noise, amount, prior, hmm)[1], amount, prior))
        if found[-1] < max(found):
            break
    score, amount, prior = max(found)
    if stated is None or noise.near(amount, stated):
        return LearnedNoise(amount)
    at = float(np.clip(stated, *noise.limits))
    best, other = -np.inf, -np.inf
    for _ in range(ROUNDS):
        best = _round(folds, noise, amount, prior, hmm)[1]
        iteration += 1
        yield _told(iteration, best)
    for _ in range(ROUNDS):
        other = _round(folds, noise, at, prior, hmm)[1]
        iteration += 1
        yield _told(iteration, other)
    return LearnedNoise(amount, best - other > SURE)


def n_noise_steps(*, stated: bool) -> int:
    """How many rounds `noise_steps` yields at most."""
    return FIRST_ROUNDS + (len(PRIORS) - 1 + 2 * stated) * ROUNDS


def _told(iteration: int, score: float) -> Iteration:
    return Iteration(iteration=iteration, free_energy=-score, change=2.0)


SWEEPS = {"rest": 3, "held": MAX_SWEEPS}
"""Sweeps at most: transitions are learned on while messages settle."""


def _ahead(amounts: Sequence[float]) -> float:
    """Where the last three amounts lead, if each step is the same part of the one before it."""
    first, second = amounts[-2] - amounts[-3], amounts[-1] - amounts[-2]
    part = second / first if first else 0.0
    leap = min(part / (1 - part), LONGEST_LEAP) if 0 < part < 1 else 0.0
    return amounts[-1] + leap * second


@dataclass
class _Fold:
    """Groups to learn transitions from, groups kept aside, and where their messages are."""

    rest: Aggregates
    held: Aggregates
    hmm: HMM
    inference: Inference
    moves: AnyMoves
    messages: dict[str, Any] = field(default_factory=dict)

    def expected(self, which: str, hmm: HMM) -> tuple[ExpectedCounts, TokenLikelihoods]:
        """Those of the "rest", or of the "held" groups with their emission, and by what table."""
        groups: Aggregates = getattr(self, which)
        table = hmm.emission.likelihoods(groups)
        found = self.inference(
            hmm, groups, table, messages=self.messages.get(which), tol=SWEEP_TOL,
            max_sweeps=SWEEPS[which], with_emission=which == "held",
        )  # fmt: skip
        self.messages[which] = found.messages
        return found, table


def _enough(parts: Sequence[Aggregates]) -> list[Aggregates]:
    """The largest parts, as many as have enough people, and of each only so many at the most."""
    if not parts:
        return []
    asked = asked_parts(
        [part.n_individuals for part in parts], single=_single(parts[0]),
        placed=parts[0].points is not None,
    )  # fmt: skip
    return [
        parts[number].take(np.arange(0, parts[number].n_sequences, every))
        if every > 1
        else parts[number]
        for number, every in asked
    ]


def asked_parts(people: Sequence[float], *, single: bool, placed: bool) -> list[tuple[int, int]]:
    """Which of parts of so many people `noise_steps` asks, and that it asks one group in how many.

    Parts are of ``single`` people or of groups, whose positions are observed or not (``placed``).
    """
    grouped = ENOUGH if single else ENOUGH_GROUPED
    enough, most = (ENOUGH_PLACED, MOST_PLACED) if placed else (grouped, MOST)
    taken: list[tuple[int, int]] = []
    n_asked = 0.0
    for number in sorted(range(len(people)), key=people.__getitem__, reverse=True):
        if n_asked >= enough:
            break
        every = max(int(people[number] // most), 1)
        taken.append((number, every))
        n_asked += people[number] / every
    return taken


def asked_in_turn(people: float, *, placed: bool) -> bool:
    """Whether each part of so many people is kept aside in turn, rather than one alone."""
    return people < (ENOUGH_PLACED if placed else ENOUGH_GROUPED)


def _single(part: Aggregates) -> bool:
    return bool((part.sizes == 1).all())


def _folds_of(part: Aggregates, hmm: HMM) -> list[_Fold]:
    if not _single(part) and not isinstance(hmm.transmat, np.ndarray):
        raise InputError(
            "The noise of groups is learned with chances of moves between all states alone; give "
            "the noise, or leave moves unlimited.",
            code="learner-needs-all-moves",
        )
    inference = inference_named(PAPERS if _single(part) else CAVITY)
    in_turn = asked_in_turn(part.n_individuals, placed=part.points is not None)
    kept = kept_aside(part, in_turn=in_turn)
    nobody = nobody_like(hmm.transmat)
    return [
        _Fold(
            part.take(np.flatnonzero(~aside)), part.take(np.flatnonzero(aside)), hmm, inference,
            nobody,
        )
        for aside in kept
    ]  # fmt: skip


def _round(
    folds: list[_Fold], noise: Noise, amount: float, prior: float, start: HMM
) -> tuple[float, float]:
    """The next amount, and how likely kept groups are under this one; ``folds`` move on.

    What pulls is gravity of the moves of the round before, of the groups that are not kept aside.
    """
    emission = noise.emission(amount)
    joint, score = None, 0.0
    found = current().map(partial(_fold_round, emission, prior, start), folds)
    for number, (fold, told, likely) in enumerate(found):
        folds[number] = fold
        joint = told if joint is None else joint + told
        score += likely
    assert joint is not None, "there are folds"
    improved = noise.improved(joint, amount)
    return amount if improved is None else float(np.clip(improved, *noise.limits)), score


def _fold_round(
    emission: Emission, prior: float, start: HMM, fold: _Fold
) -> tuple[_Fold, FloatArray, float]:
    """The fold after a round, what its kept groups tell of the emission, and how likely they are.

    The fold that is given stays as it is.
    """
    fold, shape = replace(fold, messages=dict(fold.messages)), start.transmat
    pulled = prior * entries(gravity_rows(fold.moves, shape))
    hmm = HMM(fold.hmm.startprob, fold.hmm.transmat, emission)
    for _ in range(STEPS):
        found, _ = fold.expected("rest", hmm)
        # One person more: where nobody of these began somebody kept aside may have.
        people = moves_like(shape, entries(found.transitions) + pulled)
        statistics = Statistics(found.start + start.startprob, people)
        hmm = maximised(statistics, hmm, fixed=("emission",))
    fold.hmm, fold.moves = hmm, found.transitions
    around = (1 - BACKGROUND) * entries(hmm.transmat) + BACKGROUND * entries(shape)
    held, table = fold.expected("held", replace(hmm, transmat=moves_like(shape, around)))
    assert held.emission is not None, "it was asked for"
    return fold, emission.statistics(fold.held, table, held.emission), -held.free_energy
