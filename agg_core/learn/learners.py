"""Learning: every learner as a stream of states, and when to stop."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any, Literal, cast, get_args

import numpy as np
import numpy.typing as npt

from agg_core.base.checkpoints import Course
from agg_core.base.engine import Engine, use_engine
from agg_core.base.errors import InputError, UnreachableError
from agg_core.base.moves import AnyMoves, entries, moves_like
from agg_core.learn.calibration import calibrated_steps
from agg_core.learn.em import (
    MAX_SWEEPS,
    SWEEP_TOL,
    EMState,
    LearnState,
    accelerated_em_steps,
    em_steps,
)
from agg_core.learn.esteps.base import Inference, NoiseMap
from agg_core.learn.esteps.gaussian_pairs import gaussian_pairs_steps
from agg_core.learn.esteps.pairs import least_squares
from agg_core.learn.esteps.sampling import whole_people
from agg_core.learn.mstep import Pull
from agg_core.learn.table import (
    AUTO,
    CAVITY,
    GAUSSIAN_PAIRS,
    LEARNERS,
    PAPERS,
    PRIOR,
    SAMPLING,
    Learner,
    learner_named,
    listed_learners,
)
from agg_core.model.aggregates import Aggregates
from agg_core.model.emissions import CategoricalEmission
from agg_core.model.hmm import HMM

__all__ = [
    "CROWDED",
    "NOISE_MAPS",
    "Choice",
    "ConvergenceMonitor",
    "NoiseMap",
    "Reason",
    "best_for",
    "choose_learner",
    "inference_named",
    "learn",
    "learn_steps",
    "learner_steps",
    "least_squares_start",
    "log_likelihood",
    "monitored",
    "mostly",
]

FloatArray = npt.NDArray[np.float64]

CROWDED = 10.0
"""People per occupied cell from which on Gaussian pairs is taken by itself."""

ENOUGH_PAIRS = 100
MOST_SLOTS = 2e6
"""Fewer pairs of steps than this are left to sampling, if N T is less than that."""

WARM = 1.1
PAIRS_PER_STATE = 20
WARM_STEPS = 8
"""From so many people per cell on, and with so many pairs of steps per state, sampling starts from
so many iterations of Gaussian pairs; with fewer pairs that start is worse than a plain one."""

NOISE_MAPS: tuple[NoiseMap, ...] = get_args(NoiseMap)

Reason = Literal["running", "converged", "limit", "failed"]

FOUND_SHARE = 0.95
WARM_TOL = 1e-3

POISSON_TOL = 1e-6
POISSON_SWEEPS = 500
"""The learners with Poisson noise move in small steps: the limits their papers use."""


@dataclass
class ConvergenceMonitor:
    """The course of a fit, and honestly why it ended.

    ``history`` holds the free energy of every iteration, ``change`` the last move of the
    parameters (see `LearnState`). ``reason`` is "converged", "limit" (of iterations), or "failed":
    the free energy was no number, or the observations became impossible under what was learned;
    ``message`` then says what happened, and the parameters before are kept.
    """

    tol: float
    n_iter: int
    history: list[float] = field(default_factory=list)
    change: float = np.inf
    n_unconverged: int = 0
    reason: Reason = "running"
    message: str = ""

    @property
    def converged(self) -> bool:
        """Whether the parameters stood still to within ``tol`` and all counts were met."""
        return self.reason == "converged"

    @property
    def iteration(self) -> int:
        """Iterations done."""
        return len(self.history)

    def report(self, state: LearnState) -> bool:
        """Take in one iteration; True when it was the last."""
        if not np.isfinite(state.free_energy):
            self.fail(f"The free energy was no longer a number at iteration {state.iteration}.")
            return True
        self.history.append(state.free_energy)
        self.change = state.change
        self.n_unconverged = state.n_unconverged
        if state.change < max(self.tol, state.noise) and state.n_unconverged == 0:
            self.reason = "converged"
        elif self.iteration >= self.n_iter:
            self.reason = "limit"
        return self.reason != "running"

    def fail(self, message: str) -> None:
        """The fit cannot go on."""
        self.reason, self.message = "failed", message


@dataclass(frozen=True)
class Choice:
    """A learner, and in half a sentence why it was taken.

    ``warm`` says that it goes on from where Gaussian pairs came to.
    """

    learner: str
    reason: str
    warm: bool = False


def choose_learner(
    name: str, aggregates: Aggregates, hmm: HMM, *, fixed: Collection[str] = ()
) -> Choice:
    """The learner behind a name, and why: "auto" is the best for the data by what was measured.

    Single people are learned from exactly by cfb. Sampling is right at every size of group but
    needs whole people, and its steps grow short as cells fill; Gaussian pairs takes long steps and
    is rough where cells hold few people, and needs a known categorical emission. So sampling goes
    on from where Gaussian pairs came to if that has many pairs of steps to go by, and from
    ``CROWDED`` people per occupied cell on Gaussian pairs stands alone, if it has ``ENOUGH_PAIRS``
    of steps or the people are too many to sample. docs/learners.md holds the figures. From
    transitions that are sparse sampling learns of whole people, and cfb of parts of them.

    Raises
    ------
    InputError
        If there is no learner of that name.
    """
    if learner_named(name).name != AUTO:
        return Choice(name, "it was asked for")
    if (aggregates.sizes == 1).all():
        return Choice(PAPERS, "single people hide nothing, so the likelihood is exact")
    if _is_near(hmm):
        if whole_people(aggregates):
            return Choice(SAMPLING, "it is right at every size of group, and moves are limited")
        return Choice(PAPERS, "the counts are not whole people, which sampling needs")
    return best_for(
        float(aggregates.count.mean()), aggregates.n_sequences, aggregates.length,
        aggregates.n_individuals, hmm.n_states,
        known=isinstance(hmm.emission, CategoricalEmission) and "emission" in fixed,
        whole=whole_people(aggregates),
    )  # fmt: skip


def best_for(
    crowd: float,
    n_groups: float,
    length: int,
    n_people: float,
    n_states: int,
    *,
    known: bool,
    whole: bool = True,
) -> Choice:
    """The best learner for groups, by `choose_learner`, of ``crowd`` people per occupied cell.

    ``n_groups`` of ``n_people`` in all are observed for ``length`` steps; ``known`` tells whether
    symbols are observed by an emission that is known, ``whole`` whether groups hold whole people.
    """
    pairs = n_groups * (length - 1)
    possible = known and pairs > 0
    many = pairs >= ENOUGH_PAIRS or n_people * length > MOST_SLOTS
    if possible and crowd >= CROWDED and many:
        return Choice(
            GAUSSIAN_PAIRS, f"occupied cells hold {crowd:.0f} people, so counts are near normal"
        )
    if not whole:
        return Choice(CAVITY, "the counts are not whole people, which sampling needs")
    warm = possible and crowd >= WARM and pairs >= PAIRS_PER_STATE * n_states
    reason = f"occupied cells hold {crowd:.1f} people, few enough to sample individual assignments"
    return Choice(SAMPLING, reason + (", from a start by Gaussian pairs" if warm else ""), warm)


def inference_named(name: str, noise_map: NoiseMap = "emission") -> Inference:
    """The E-step of that learner; those that have none are given cavity's.

    ``noise_map`` is for the learners with Poisson noise alone.

    Raises
    ------
    InputError
        If there is none of that name, or no such noise map.
    """
    learner = learner_named(name)
    if noise_map not in NOISE_MAPS:
        raise InputError(
            f"noise_map must be one of {', '.join(NOISE_MAPS)}; it was {noise_map!r}.",
            code="not-a-choice",
        )
    inference = learner.load(learner.e_step or LEARNERS[CAVITY].e_step)
    if learner.readings:
        inference = partial(inference, noise_map=noise_map)
    return cast(Inference, inference)


def learner_steps(
    name: str,
    aggregates: Aggregates,
    hmm: HMM,
    *,
    fixed: Collection[str] = (),
    noise_map: NoiseMap = "emission",
    prior: float = PRIOR,
    calibrate: int = 0,
    random_state: int | np.random.Generator | None = None,
    begin: HMM | None = None,
    course: Course | None = None,
) -> Iterator[LearnState]:
    """The iterations of any learner from ``hmm`` on, without end.

    ``prior`` is the number of people that pull each row of transmat towards what the transitions
    of ``hmm`` and all rows together predict (see `Pull`); the learners of papers have none.
    ``calibrate`` replicates of simulated groups correct each E-step of the learners that can be
    calibrated (see `calibrated_steps`). ``random_state`` is for what is drawn. With ``begin`` those
    that are pulled go on from there, and are pulled towards what ``hmm`` predicts all the same.

    Raises
    ------
    InputError
        If there is no such learner, it cannot learn from such observations or what is not in
        ``fixed``, it cannot be calibrated, or observations cannot happen under ``hmm``.
    """
    choice = choose_learner(name, aggregates, hmm, fixed=fixed)
    learner = LEARNERS[choice.learner]
    _check_fits(learner, aggregates, hmm, fixed)
    if calibrate and not learner.calibrated:
        raise InputError(
            f"The learner {learner.name} has no E-step to calibrate; set calibrate to 0 or choose "
            f"{listed_learners(lambda row: row.calibrated)}.",
            code="learner-not-calibrated",
        )
    if not learner.steps:
        return _em(
            learner, aggregates, hmm, fixed=fixed, noise_map=noise_map, prior=prior,
            calibrate=calibrate, random_state=random_state, begin=begin, course=course,
        )  # fmt: skip
    stopped = course is not None and course.stood is not None
    if begin is None and choice.warm and not stopped:
        begin = _warm_start(aggregates, hmm, fixed, prior)
    options: dict[str, Any] = {
        **({"prior": prior} if learner.pulled else {}),
        **({"calibrate": calibrate} if learner.calibrated else {}),
        **({"noise_map": noise_map} if learner.readings else {}),
        **({"random_state": random_state} if learner.drawn else {}),
        **({"begin": begin} if learner.resumed and begin is not None else {}),
        **({"course": course} if learner.checkpointed and course is not None else {}),
    }
    stream = learner.load(learner.steps)
    return cast(Iterator[LearnState], stream(aggregates, hmm, fixed=fixed, **options))


def _check_fits(learner: Learner, aggregates: Aggregates, hmm: HMM, fixed: Collection[str]) -> None:
    """Refuse observations and unknown emissions that the learner does not take."""
    if not learner.learns_emission and "emission" not in fixed:
        raise InputError(
            f"The learner {learner.name} learns startprob and transmat only; give the emission and "
            "add 'emission' to fixed.",
            code="emission-not-fixed",
        )
    observed = "symbols" if isinstance(hmm.emission, CategoricalEmission) else "positions"
    if observed not in learner.observes:
        others = listed_learners(lambda row: observed in row.observes)
        raise InputError(
            f"The learner {learner.name} cannot learn from {observed}; choose one of {others}.",
            code="learner-unsuited",
        )
    if _is_near(hmm) and not learner.near:
        others = listed_learners(lambda row: row.near)
        raise InputError(
            f"The learner {learner.name} needs chances of moves between all states; choose one of "
            f"{others}, or leave moves unlimited.",
            code="learner-needs-all-moves",
        )
    single = aggregates.sizes == 1
    for is_single in (True, False):
        if (single == is_single).any():
            learner.check_sizes(single=is_single)


def _is_near(hmm: HMM) -> bool:
    """Whether transitions, or chances of symbols, are sparse."""
    tables = [hmm.transmat]
    if isinstance(hmm.emission, CategoricalEmission):
        tables.append(hmm.emission.emissionprob)
    return not all(isinstance(table, np.ndarray) for table in tables)


def _em(
    learner: Learner, aggregates: Aggregates, hmm: HMM, *, fixed: Collection[str],
    noise_map: NoiseMap, prior: float, calibrate: int,
    random_state: int | np.random.Generator | None, begin: HMM | None, course: Course | None,
) -> Iterator[LearnState]:  # fmt: skip
    """The iterations of a learner that is EM on an E-step."""
    # Of single people the cavity is empty: cfb is the same and has less to look after.
    single = learner.name == CAVITY and bool((aggregates.sizes == 1).all())
    inference = inference_named(PAPERS if single else learner.name, noise_map)
    pull = None
    if learner.pulled:
        pull, hmm = Pull(hmm.transmat, prior), hmm if begin is None else begin
    if calibrate:
        return calibrated_steps(
            aggregates, hmm, inference=inference, replicates=calibrate, fixed=fixed, pull=pull,
            random_state=random_state, course=course,
        )  # fmt: skip
    if learner.accelerated:
        return accelerated_em_steps(
            aggregates, hmm, inference=inference, fixed=fixed, pull=pull, course=course
        )
    tol, sweeps = (POISSON_TOL, POISSON_SWEEPS) if learner.readings else (SWEEP_TOL, MAX_SWEEPS)
    return em_steps(
        aggregates, hmm, inference=inference, fixed=fixed, sweep_tol=tol, max_sweeps=sweeps,
        pull=pull, course=course,
    )  # fmt: skip


def _warm_start(aggregates: Aggregates, hmm: HMM, fixed: Collection[str], prior: float) -> HMM:
    """Where a few steps of Gaussian pairs lead, for sampling to go on from."""
    startprob, transmat = hmm.startprob, hmm.transmat
    try:
        steps = gaussian_pairs_steps(aggregates, hmm, fixed=fixed, prior=prior)
        for state in islice(steps, WARM_STEPS):
            startprob, transmat = state.startprob, state.transmat
            if state.change < WARM_TOL:
                break
    except UnreachableError:
        return hmm  # sampling finds out for itself whether there is a way
    return mostly(startprob, transmat, hmm)


def mostly(startprob: FloatArray, transmat: AnyMoves, hmm: HMM) -> HMM:
    """Parameters that were found with a part of those before: EM never leaves a zero."""
    found, kept = FOUND_SHARE, 1 - FOUND_SHARE
    moves = found * entries(transmat) + kept * entries(hmm.transmat)
    return HMM(
        found * startprob + kept * hmm.startprob, moves_like(hmm.transmat, moves), hmm.emission
    )


def least_squares_start(aggregates: Aggregates, hmm: HMM, *, fixed: Collection[str] = ()) -> HMM:
    """The start moved to the conditional least squares fit, for a learner to go on from.

    Least squares sets many moves to zero: a twentieth of the start is kept. The emission and the
    parts in ``fixed`` stay.

    Raises
    ------
    InputError
        If transitions are sparse.
    """
    if _is_near(hmm):
        raise InputError(
            "Least squares needs chances of moves between all states; start from given ones, or "
            "leave moves unlimited.",
            code="learner-needs-all-moves",
        )
    return mostly(*least_squares(aggregates, hmm, fixed=fixed), hmm)


def learn_steps(
    aggregates: Aggregates,
    hmm: HMM,
    *,
    inference: str = AUTO,
    n_iter: int = 100,
    tol: float = 1e-5,
    course: Course | None = None,
    **choices: Any,
) -> Generator[LearnState, None, tuple[HMM, ConvergenceMonitor]]:
    """Run `learner_steps` until the parameters move by less than ``tol`` or ``n_iter`` iterations.

    ``choices`` are those of `learner_steps`. Returns what was learned and how it went. A fit that
    cannot go on gives the last parameters that worked, and the monitor says why; only if the
    observations cannot happen under the start is there nothing to give. A ``course`` that was
    stopped is gone on with: its last iteration is given again, and those after it are what they
    would have been.

    Raises
    ------
    InputError
        As `learner_steps`; `UnreachableError` if the start cannot explain the observations.
    """
    monitor = ConvergenceMonitor(tol=tol, n_iter=n_iter)
    if n_iter == 0:
        monitor.reason = "limit"
        return hmm, monitor
    steps = learner_steps(inference, aggregates, hmm, course=course, **choices)
    if course is not None and course.told is not None:
        monitor, last = course.told
        hmm = last.hmm
        yield last
        if monitor.reason != "running":
            return hmm, monitor
    for state in monitored(steps, monitor):
        hmm = state.hmm
        if course is not None:
            # What an E-step expects is large, and nobody asks for it once its iteration is told.
            lean = replace(state, expected=None) if isinstance(state, EMState) else state
            course.keep(partial(_both, monitor, lean))
        yield state
    return hmm, monitor


def _both(monitor: ConvergenceMonitor, state: LearnState) -> tuple[ConvergenceMonitor, LearnState]:
    return monitor, state


def learn(
    aggregates: Aggregates, hmm: HMM, *, engine: str | Engine | None = None, **choices: Any
) -> tuple[HMM, ConvergenceMonitor]:
    """Run `learn_steps` to its end, by an ``engine`` (see `agg_core.base.engine.use_engine`).

    Raises
    ------
    InputError
        As `learn_steps` and `use_engine`.
    """
    steps = learn_steps(aggregates, hmm, **choices)
    with use_engine(engine):
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return cast(tuple[HMM, ConvergenceMonitor], end.value)


def monitored(steps: Iterator[LearnState], monitor: ConvergenceMonitor) -> Iterator[LearnState]:
    """The iterations of a learner that worked, up to the one that the monitor ends it by.

    Raises
    ------
    UnreachableError
        If the observations cannot happen under the start; later on that is a failed fit.
    """
    try:
        for state in steps:
            done = monitor.report(state)
            if monitor.reason != "failed":
                yield state
            if done:
                return
    except UnreachableError as fault:
        if monitor.iteration == 0:
            raise
        monitor.fail(str(fault))


def log_likelihood(hmm: HMM, aggregates: Aggregates) -> float:
    """Log-probability of observations, summed; -inf if one cannot happen.

    Of single people it is exact. Of groups it is that of their counts in the approximation of
    `cavity_forward_backward`, which leaves out how the people of a step could be told apart.

    Raises
    ------
    InputError
        If observations are of groups and transitions are sparse.
    """
    single = bool((aggregates.sizes == 1).all())
    if not single and _is_near(hmm):
        raise InputError(
            "How likely groups are is known of chances of moves between all states alone; compare "
            "models by single people, or leave moves unlimited.",
            code="learner-needs-all-moves",
        )
    inference = inference_named(PAPERS if single else CAVITY)
    try:
        expected = inference(hmm, aggregates, hmm.emission.likelihoods(aggregates))
    except UnreachableError:
        return -np.inf
    return -expected.free_energy
