"""The share of fixes that lie in a neighbour cell, learned from the observations themselves."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from agg_core.learn.choosing import PRIORS, kept_aside
from agg_core.learn.em import MAX_SWEEPS, SWEEP_TOL, LearnState
from agg_core.learn.esteps.base import ExpectedCounts, Inference
from agg_core.learn.gravity import gravity_rows
from agg_core.learn.learners import inference_named
from agg_core.learn.mstep import Statistics, maximised
from agg_core.learn.table import CAVITY, PAPERS
from agg_core.model.aggregates import Aggregates
from agg_core.model.emissions import Misplacing, TokenLikelihoods
from agg_core.model.hmm import HMM

__all__ = ["FEWEST_STEPS", "LearnedShare", "n_share_steps", "share_steps"]

FloatArray = npt.NDArray[np.float64]

FEWEST_STEPS = 3
"""Of two steps a person who went and one who was misplaced at the second look alike."""

FIRST_SHARE = 0.05
LEAST_SHARE, MOST_SHARE = 1e-4, 0.9
"""Where the share begins, and within what it stays: from 0 no E-step could ever lift it."""

FIRST_ROUNDS, ROUNDS = 16, 8
"""Rounds with the first prior, and with each other one, which goes on from there."""

LEAP = 4
"""Shares from whose last three it is told where they lead."""

LONGEST_LEAP = 4.0
"""Steps that a leap is long at most."""

BACKGROUND = 1e-4
"""Part of the start in the transitions by which kept groups move: what nobody was seen to do among
the others is next to impossible, not ruled out."""

ENOUGH, ENOUGH_GROUPED, MOST = 30_000, 10_000, 40_000
"""People, single and in groups, who tell one number well enough, as groups take longer to ask: of
so many one part alone is kept aside, and times of day beyond them are not asked. Of `MOST` at one
time of day every second group, or fewer, is."""

STEPS = 2
"""EM steps of transitions in a round."""

SURE = 2.0
"""Log-likelihood that a stated share must lack to be contradicted: about two standard errors."""

APART = 0.03
"""A stated share this near the learned one is not contradicted: so near were planted ones found
again, mostly a little low, as rows that are pulled take some misplaced fixes for movement."""


@dataclass(frozen=True)
class LearnedShare:
    """A share of fixes in a neighbour cell, and what kept observations say of a stated one.

    ``share`` is None where nothing can tell it: where every part has fewer than `FEWEST_STEPS`
    steps, or too few groups to keep some aside, or observations cannot happen. ``contradicted`` is
    True where the stated share makes kept groups much less likely and is not near.
    """

    share: float | None
    contradicted: bool = False


def share_steps(
    parts: Sequence[Aggregates],
    hmm: HMM,
    misplacing: Misplacing,
    stated: float | None = None,
) -> Generator[LearnState, None, LearnedShare]:
    """Learn the share of misplaced fixes that all ``parts`` have in common, by cross-fitted EM.

    Each part has transitions of its own, from those of ``hmm`` on. A round makes two EM steps for
    the transitions on the groups that are not kept aside, and one for the share on those that are::

        share = expected people of kept groups who were misplaced / people who can be

    with ``hmm`` pulled by the strongest of `PRIORS` and then by weaker ones, while these make the
    kept groups more likely. Were transitions and share learned from the same groups, the d^2
    chances of moves would take misplaced fixes for movement, which they have the room for: of
    groups that they were not fitted to they explain no more than what is really movement. The
    E-step is exact for single people and that of cavity for groups. Where there are very many
    people some of them are asked (see `ENOUGH`).

    ``stated`` is held against what was learned: it is contradicted if the kept groups are less
    likely under it, by `SURE` and at the same prior, and it is not within `APART`. Yields the
    rounds.
    """
    told_by = _enough([part for part in parts if part.length >= FEWEST_STEPS])
    folds = [fold for part in told_by for fold in _folds_of(part, hmm)]
    if not folds:
        return LearnedShare(None)
    share, iteration, found = FIRST_SHARE, 0, []
    for number, prior in enumerate(PRIORS[::-1]):
        shares = [share]
        for _ in range(ROUNDS if number else FIRST_ROUNDS):
            share, score = _round(folds, misplacing, share, prior, hmm)
            shares.append(share)
            if len(shares) == LEAP:
                share = _ahead(shares)
                shares = [share]
            iteration += 1
            yield _state(iteration, hmm, score)
        # The score of a round is that of the share before it.
        found.append((_round(folds, misplacing, share, prior, hmm)[1], share, prior))
        if found[-1] < max(found):
            break
    score, share, prior = max(found)
    if stated is None or abs(share - stated) <= APART:
        return LearnedShare(share)
    at = float(np.clip(stated, LEAST_SHARE, MOST_SHARE))
    best, other = -np.inf, -np.inf
    for _ in range(ROUNDS):
        best = _round(folds, misplacing, share, prior, hmm)[1]
        iteration += 1
        yield _state(iteration, hmm, best)
    for _ in range(ROUNDS):
        other = _round(folds, misplacing, at, prior, hmm)[1]
        iteration += 1
        yield _state(iteration, hmm, other)
    return LearnedShare(share, best - other > SURE)


def n_share_steps(*, stated: bool) -> int:
    """How many rounds `share_steps` yields at most."""
    return FIRST_ROUNDS + (len(PRIORS) - 1 + 2 * stated) * ROUNDS


def _state(iteration: int, hmm: HMM, score: float) -> LearnState:
    return LearnState(iteration, hmm, -score, 2.0, 0, 1.0, 0)


SWEEPS = {"rest": 3, "held": MAX_SWEEPS}
"""Sweeps at most: transitions are learned on while messages settle."""


def _ahead(shares: Sequence[float]) -> float:
    """Where the last three shares lead, if each step is the same part of the one before it."""
    first, second = shares[-2] - shares[-3], shares[-1] - shares[-2]
    part = second / first if first else 0.0
    leap = min(part / (1 - part), LONGEST_LEAP) if 0 < part < 1 else 0.0
    return float(np.clip(shares[-1] + leap * second, LEAST_SHARE, MOST_SHARE))


@dataclass
class _Fold:
    """Groups to learn transitions from, groups kept aside, and where their messages are."""

    rest: Aggregates
    held: Aggregates
    hmm: HMM
    inference: Inference
    moves: FloatArray
    messages: dict[str, Any] = field(default_factory=dict)

    def expected(self, which: str, hmm: HMM, table: TokenLikelihoods) -> ExpectedCounts:
        """Those of the "rest", or of the "held" groups with their emission, by one table."""
        groups: Aggregates = getattr(self, which)
        found = self.inference(
            hmm, groups, replace(table, row=groups.symbol), messages=self.messages.get(which),
            tol=SWEEP_TOL, max_sweeps=SWEEPS[which], with_emission=which == "held",
        )  # fmt: skip
        self.messages[which] = found.messages
        return found


def _enough(parts: Sequence[Aggregates]) -> list[Aggregates]:
    """The largest parts, as many as have enough people, and of each `MOST` at the most."""
    taken: list[Aggregates] = []
    for part in sorted(parts, key=lambda part: part.n_individuals, reverse=True):
        if sum(other.n_individuals for other in taken) >= _enough_of(part):
            break
        every = max(int(part.n_individuals // MOST), 1)
        taken.append(part.take(np.arange(0, part.n_sequences, every)) if every > 1 else part)
    return taken


def _single(part: Aggregates) -> bool:
    return bool((part.sizes == 1).all())


def _enough_of(part: Aggregates) -> int:
    return ENOUGH if _single(part) else ENOUGH_GROUPED


def _folds_of(part: Aggregates, hmm: HMM) -> list[_Fold]:
    inference = inference_named(PAPERS if _single(part) else CAVITY)
    kept = kept_aside(part, in_turn=part.n_individuals < ENOUGH_GROUPED)
    nobody = np.zeros_like(hmm.transmat)
    return [
        _Fold(
            part.take(np.flatnonzero(~aside)), part.take(np.flatnonzero(aside)), hmm, inference,
            nobody,
        )
        for aside in kept
    ]  # fmt: skip


def _round(
    folds: Sequence[_Fold], misplacing: Misplacing, share: float, prior: float, start: HMM
) -> tuple[float, float]:
    """The next share, and how likely kept groups are under this one.

    What pulls is gravity of the moves of the round before, of the groups that are not kept aside.
    """
    emission, shape = misplacing.emission(share), start.transmat
    table = emission.likelihoods(folds[0].rest)
    misplaced = people = score = 0.0
    for fold in folds:
        pulled = prior * gravity_rows(fold.moves, shape)
        hmm = HMM(fold.hmm.startprob, fold.hmm.transmat, emission)
        for _ in range(STEPS):
            found = fold.expected("rest", hmm, table)
            # One person more: where nobody of these began somebody kept aside may have.
            statistics = Statistics(found.start + start.startprob, found.transitions + pulled)
            hmm = maximised(statistics, hmm, fixed=("emission",))
        fold.hmm, fold.moves = hmm, found.transitions
        around = (1 - BACKGROUND) * hmm.transmat + BACKGROUND * shape
        held = fold.expected("held", replace(hmm, transmat=around), table)
        assert held.emission is not None, "it was asked for"
        joint = emission.statistics(fold.held, table, held.emission)
        wrong, all_of_them = misplacing.expected(joint, share)
        misplaced, people = misplaced + wrong, people + all_of_them
        score -= held.free_energy
    if people == 0:
        return share, score
    return float(np.clip(misplaced / people, LEAST_SHARE, MOST_SHARE)), score
