"""Experiments on random models, the paper's and one of ours: settings to learning curves."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from itertools import islice, product
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from agg_core.base.checkpoints import checkpoints
from agg_core.base.engine import current, in_turn
from agg_core.base.errors import InputError, UnreachableError
from agg_core.base.options import Checked, option_field
from agg_core.base.threads import one_thread
from agg_core.lab.trends import (
    CALIBRATED,
    LEARNER_LABELS,
    ON_STATES,
    RUN_COLUMNS,
    SYMBOLS,
    Trend,
    listed,
    row_of,
    trends_of,
)
from agg_core.learn.learners import choose_learner, learner_steps, log_likelihood
from agg_core.learn.table import (
    AUTO,
    CAVITY,
    GAUSSIAN_PAIRS,
    LEARNERS,
    PAPERS,
    SAMPLING,
    listed_learners,
)
from agg_core.made.people import random_gaussian_hmm, random_hmm
from agg_core.model.aggregates import Aggregates, aggregate, aggregate_points
from agg_core.model.emissions import CategoricalEmission
from agg_core.model.gaussian import GaussianEmission, kmeans_centres
from agg_core.model.hmm import HMM, random_probs

__all__ = [
    "EXPERIMENTS",
    "Experiment",
    "LabProgress",
    "LabResult",
    "LabSettings",
    "Trend",
    "evaluated_iterations",
    "lab_steps",
    "learners_for",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

KNOWN_EMISSION = ("fig7", "groups")
"""Experiments that give every learner the emission; the others learn it too."""

OF_POSITIONS = ("fig4", "fig5")
"""Experiments on places, with a Gaussian emission; in the others symbols are seen."""

EVALUATIONS = 24


@dataclass(frozen=True)
class LabSettings(Checked):
    """What an experiment runs: every combination of the tuples, with every seed.

    Raises
    ------
    InputError
        If a value is out of range, a tuple is empty, a group would be larger than the people
        there are, or a learner cannot do what the experiment asks.
    """

    experiment: str = option_field(
        "fig3", "Experiment", "Which of the paper's figures, or which comparison, is run.",
        choices=("fig3", "fig4", "fig5", "fig6", "fig7", "groups"),
    )  # fmt: skip
    n_states: tuple[int, ...] = option_field(
        (3, 5), "States, d", "Sizes of the hidden state.", unit="states", least=2, most=100, step=1
    )
    group_sizes: tuple[int, ...] = option_field(
        (1, 10, 100), "Group sizes, M", "People per group of whom only the counts are kept.",
        unit="people", least=1, most=100_000, step=1,
    )  # fmt: skip
    n_individuals: tuple[int, ...] = option_field(
        (1000,), "Individuals, N", "People to learn from, and as many others to test on.",
        unit="people", least=1, most=100_000, step=100,
    )  # fmt: skip
    lengths: tuple[int, ...] = option_field(
        (5,), "Steps, T", "Length of each person's sequence.", unit="steps",
        least=2, most=100, step=1,
    )  # fmt: skip
    learners: tuple[str, ...] = option_field(
        (PAPERS,), "Learners", "Who learns, and from which counts.",
        choices=tuple(LEARNER_LABELS), choice_labels=tuple(LEARNER_LABELS.values()),
    )  # fmt: skip
    n_seeds: int = option_field(
        3, "Seeds", "Repetitions, each with a model, data and a start of its own.",
        least=1, most=100, step=1,
    )  # fmt: skip
    iterations: int = option_field(
        100, "Iterations", "EM iterations of each run.", least=1, most=5_000, step=10
    )
    seed: int = option_field(
        0, "First seed", "The same seed gives the same curves.", least=0, most=2**31 - 1, step=1
    )

    def __post_init__(self) -> None:
        for name, value in list(vars(self).items()):
            if isinstance(value, tuple | list):
                # A value given twice is one run.
                object.__setattr__(self, name, tuple(dict.fromkeys(value)))
                if not value:
                    raise InputError(
                        f"{name} is empty; give at least one value.", code="no-value-given"
                    )
        super().__post_init__()
        largest, fewest = max(self.group_sizes), min(self.n_individuals)
        if largest > fewest:
            raise InputError(
                f"Groups of M = {largest:,} cannot be formed from N = {fewest:,} individuals; "
                "choose a smaller M or a larger N.",
                code="group-too-large",
            )
        others = [name for name in self.learners if name not in learners_for(self.experiment)]
        if others:
            raise InputError(_cannot(others[0], self.experiment), code="learner-unsuited")

    @property
    def n_runs(self) -> int:
        """Runs of a learner: every combination with every seed."""
        tuples = [value for value in vars(self).values() if isinstance(value, tuple)]
        return math.prod(map(len, tuples)) * self.n_seeds

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Back from JSON, checked again."""
        return cls(**values)


def learners_for(experiment: str) -> tuple[str, ...]:
    """Learners that can do what an experiment asks."""
    seen, known = _observed(experiment), experiment in KNOWN_EMISSION
    return tuple(
        name
        for name in LEARNER_LABELS
        if seen in row_of(name).observes and (known or row_of(name).learns_emission)
    )


def _observed(experiment: str) -> str:
    """What of `Learner.observes` an experiment asks for."""
    return "positions" if experiment in OF_POSITIONS else "symbols"


def _cannot(learner: str, experiment: str) -> str:
    """Why a learner cannot do what an experiment asks, in one sentence."""
    who, seen = LEARNER_LABELS[learner], _observed(experiment)
    if seen not in row_of(learner).observes:
        able = listed_learners(lambda row: seen in row.observes)
        return f"The learner {who} cannot learn from {seen}, as {experiment} asks; use {able}."
    able = listed_learners(lambda row: row.learns_emission)
    return (
        f"The learner {who} needs a known emission, which {experiment} learns; use {able}, or one "
        f"of the experiments {', '.join(KNOWN_EMISSION)}."
    )


@dataclass(frozen=True)
class Experiment:
    """A figure of the paper or of ours: how it is drawn, what it shows, and settings to run.

    ``panel`` and ``curve`` are columns of the table of a `LabResult`: one picture per value of the
    first, one curve per value of the second, over ``x``; if that is "group_size", only where the
    runs end is drawn.
    """

    name: str
    title: str
    panel: str
    curve: str
    x: Literal["iteration", "wall_s", "group_size"]
    see: str
    doubt: str
    quick: LabSettings
    full: LabSettings

    @property
    def emission(self) -> Literal["categorical", "gaussian"]:
        """The kind of emission that the random models have."""
        return "gaussian" if self.name in OF_POSITIONS else "categorical"

    @property
    def known_emission(self) -> bool:
        """Whether learners are given the emission, and learn start and transitions alone."""
        return self.name in KNOWN_EMISSION

    @property
    def of_the_paper(self) -> bool:
        """Whether it is a figure of the paper, and its claims are the paper's."""
        return self.name != "groups"


@dataclass(frozen=True)
class LabProgress:
    """``done`` of ``n_runs`` runs are done, and ``label`` says which one is under way."""

    done: int
    n_runs: int
    label: str

    @property
    def share(self) -> float:
        """Share of the runs done, 0 to 1."""
        return self.done / self.n_runs


@dataclass(frozen=True)
class LabResult:
    """All curves of an experiment.

    ``table`` has one row per evaluated iteration: n_states, group_size, n_individuals, length,
    learner, seed, iteration (0 is the start), wall_s (learning alone), delta_nll (nats per person
    of the test set; infinite if the model rules a test person out) and free_energy (what the
    learner minimises, before the iteration; none at 0; learners do not compare). ``notes`` says
    what was left out or ended early.
    """

    settings: LabSettings
    table: pd.DataFrame
    trends: tuple[Trend, ...]
    wall_s: float
    notes: tuple[str, ...] = ()


# ------------------------------------------------------------------------------ the experiments


_FIG3 = LabSettings(
    experiment="fig3", n_states=(3, 5, 10), group_sizes=(1, 10, 50, 100), n_individuals=(5000,),
    lengths=(5,), learners=(PAPERS, CAVITY), n_seeds=10, iterations=500,
)  # fmt: skip
_FIG4 = replace(
    _FIG3, experiment="fig4", n_states=(10, 20, 25), group_sizes=(1, 10, 100), learners=(PAPERS,),
    iterations=100,
)  # fmt: skip
_FIG5 = replace(
    _FIG4, experiment="fig5", n_states=(5,), group_sizes=(1, 100, 250), n_individuals=(500,),
    lengths=(3, 5, 10, 20), iterations=200,
)  # fmt: skip
_FIG6 = replace(
    _FIG4, experiment="fig6", n_states=(10,), group_sizes=(1, 10, 100), lengths=(10,),
    n_individuals=(100, 500, 1000, 5000), iterations=300,
)  # fmt: skip
_FIG7 = replace(
    _FIG3,
    experiment="fig7",
    group_sizes=(10,),
    learners=tuple(
        name
        for name in LEARNER_LABELS
        if row_of(name).name in LEARNERS.own and name != AUTO and not name.endswith(CALIBRATED)
    ),
    iterations=60,
    n_seeds=5,
)
_GROUPS = replace(
    _FIG3, experiment="groups", n_states=(3, 5), group_sizes=(1, 2, 5, 10, 20, 50, 100, 200),
    n_individuals=(2000,), n_seeds=5, iterations=100,
    learners=(PAPERS, CAVITY, SAMPLING, PAPERS + CALIBRATED, GAUSSIAN_PAIRS, AUTO),
)  # fmt: skip

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        Experiment(
            name="fig3",
            title="Discrete observations: the larger the groups, the less is learned",
            panel="n_states",
            curve="group_size",
            x="iteration",
            see="The curve of M = 1, where nothing is hidden, ends lowest. The larger the groups, "
            "the slower the curve falls and the higher it ends.",
            doubt="The paper names neither its group sizes nor its iterations; these are ours, and "
            "start, transitions and emission are all learned from a random start. Some starts end "
            "in a poor optimum even at M = 1, so look at many seeds.",
            quick=replace(
                _FIG3, n_states=(3, 5), group_sizes=(1, 10, 100), n_individuals=(800,),
                learners=(PAPERS, CAVITY), n_seeds=3, iterations=100,
            ),
            full=_FIG3,
        ),
        Experiment(
            name="fig4",
            title="Gaussian observations: the larger the groups, the less is learned",
            panel="n_states",
            curve="group_size",
            x="iteration",
            see="Start, transitions and means are learned from places whose variances are known. "
            "M = 1 ends lowest and larger groups end higher, as with discrete observations.",
            doubt="Means start at the centres that k-means finds among all places; the paper does "
            "not say where it starts. With many states and large groups a curve can turn up again "
            "late: it fits the training data, and the paper does not say when it stopped.",
            quick=replace(
                _FIG4, n_states=(10,), n_individuals=(1000,), n_seeds=3, iterations=50
            ),
            full=_FIG4,
        ),
        Experiment(
            name="fig5",
            title="Gaussian observations: the length of the sequences",
            panel="group_size",
            curve="length",
            x="iteration",
            see="Within a picture compare the lengths T, between pictures the group sizes M. The "
            "paper finds that longer sequences end lower and larger groups end higher.",
            doubt="The measure is per person, so a longer test sequence adds up the errors of more "
            "steps and its curve can end higher although more was learned; verdicts are given per "
            "step as well. Means start at the centres that k-means finds among all places, and "
            "one poor start weighs heavily in the mean over seeds.",
            quick=replace(_FIG5, group_sizes=(1, 100, 250), n_seeds=4, iterations=60),
            full=_FIG5,
        ),
        Experiment(
            name="fig6",
            title="Discrete observations: the number of people",
            panel="group_size",
            curve="n_individuals",
            x="iteration",
            see="The more people, the lower the curve ends. With few people it turns up again: the "
            "model fits the people it learned from and does worse on others.",
            doubt="The test set is as small as the training set, so the curves of few people are "
            "noisy. Whether a curve turns up depends on how long one goes on, and the paper does "
            "not name its iterations.",
            quick=replace(_FIG6, n_individuals=(100, 500, 2000), n_seeds=3, iterations=100),
            full=_FIG6,
        ),
        Experiment(
            name="fig7",
            title="Learners against the clock",
            panel="n_states",
            curve="learner",
            x="wall_s",
            see="All learners get the same groups, start and known emission; time is learning "
            "alone, on a logarithmic axis. The paper finds that CFB falls first and ends lowest.",
            doubt="The paper's other learners most likely saw Poisson readings of the counts of "
            "states, which are spared the emission's noise that CFB has to see through; here they "
            "run on those and on the counts that CFB saw. A step whose readings are all zero "
            "counts as not observed, times are of our programs on one core, and least squares is "
            "not in the paper.",
            quick=replace(_FIG7, n_states=(3, 5), n_individuals=(500,), n_seeds=3, iterations=25),
            full=_FIG7,
        ),
        Experiment(
            name="groups",
            title="What is lost to groups, and what a better learner keeps",
            panel="n_states",
            curve="learner",
            x="group_size",
            see="At M = 1 nothing is hidden; to the right ever more people are counted together. A "
            "learner whose curve climbs loses what is still in the counts, and one that stays low "
            "keeps it.",
            doubt="All learners have the same number of iterations, which for some of them and "
            "large groups is too few: such a curve is high because it is not done. There are N / M "
            "groups, so at the right few groups are left, and part of any rise is plain lack of "
            "data that no learner can mend.",
            quick=replace(
                _GROUPS, n_states=(3,), group_sizes=(1, 5, 20, 50), n_individuals=(400,),
                n_seeds=3, iterations=50,
            ),
            full=_GROUPS,
        ),
    )
}  # fmt: skip
"""Experiments by name: the paper's by the figure that shows them."""


# ----------------------------------------------------------------------------- data and a start


@dataclass(frozen=True)
class _Case:
    """What all group sizes and learners of one seed share."""

    experiment: Experiment
    truth: HMM
    start: HMM
    observations: IntArray | FloatArray
    states: IntArray
    test: Aggregates
    truth_log_likelihood: float
    key: tuple[int, ...]

    @classmethod
    def drawn(cls, experiment: Experiment, seed: int, d: int, n: int, length: int) -> _Case:
        """Model and random start depend on seed and d alone, the people on N and T as well."""
        key = (seed, d, n, length)
        truth = _true_model(experiment, d, np.random.default_rng([seed, d, 1]))
        rng = np.random.default_rng([*key, 2])
        observations, states = truth.sample(n, length, rng)
        test = _grouped(truth.sample(n, length, rng)[0], 1, truth)
        start = _start(experiment, truth, observations, np.random.default_rng([seed, d, 3]))
        return cls(
            experiment, truth, start, observations, states, test, log_likelihood(truth, test), key
        )

    def groups(self, size: int) -> Aggregates:
        """The people in groups, the same ones for every learner."""
        return _grouped(self.observations, size, self.truth, self.rng(size, 4))

    def state_readings(self, size: int) -> tuple[Aggregates, int]:
        """Poisson readings of how many of each group are in each state, and how many show nobody.

        A group without a count at any step is left out.
        """
        groups = aggregate(self.states, size, self.truth.n_states, self.rng(size, 4))
        readings = self.rng(size, 5).poisson(groups.to_dense())
        seen = readings.any(axis=(1, 2))
        if not seen.any():
            raise InputError(
                "Poisson noise left no count at all; choose a larger N or M.", code="no-count-left"
            )
        return Aggregates.from_dense(readings[seen], sizes=groups.sizes[seen]), int((~seen).sum())

    @property
    def fixed(self) -> tuple[str, ...]:
        """What the learners are given."""
        return ("emission",) if self.experiment.known_emission else ()

    def delta_nll(self, hmm: HMM) -> float:
        """(NLL(theta) - NLL(theta*)) / N on the test set; infinite if it cannot happen."""
        return (self.truth_log_likelihood - log_likelihood(hmm, self.test)) / self.test.n_sequences

    def rng(self, size: int, part: int) -> np.random.Generator:
        """For one use at one group size; the same for every learner."""
        return np.random.default_rng([*self.key, size, part])


def _true_model(experiment: Experiment, d: int, rng: np.random.Generator) -> HMM:
    if experiment.emission == "categorical":
        return HMM.categorical(*random_hmm(d, random_state=rng))
    return HMM.gaussian(*random_gaussian_hmm(d, rng), "fixed")


def _start(
    experiment: Experiment,
    truth: HMM,
    observations: IntArray | FloatArray,
    rng: np.random.Generator,
) -> HMM:
    """Rows uniform on the simplex; means by k-means; a known emission is the true one."""
    d = truth.n_states
    chain = random_probs((d,), rng), random_probs((d, d), rng)
    if experiment.known_emission:
        return HMM(*chain, truth.emission)
    if experiment.emission == "categorical":
        return HMM.categorical(*chain, random_probs((d, d), rng))
    assert isinstance(truth.emission, GaussianEmission)
    places = np.asarray(observations, dtype=np.float64).reshape(-1, observations.shape[-1])
    return HMM(*chain, replace(truth.emission, means=kmeans_centres(places, d, rng)))


def _grouped(
    observations: IntArray | FloatArray,
    size: int,
    truth: HMM,
    rng: np.random.Generator | None = None,
) -> Aggregates:
    if isinstance(truth.emission, CategoricalEmission):
        return aggregate(observations, size, truth.n_states, rng)
    return aggregate_points(observations, size, rng)


# ------------------------------------------------------------------------------------- the runs


def evaluated_iterations(iterations: int) -> tuple[int, ...]:
    """Iterations at which curves are evaluated: the start, and evenly on a logarithmic axis."""
    spaced = np.geomspace(1, iterations, EVALUATIONS).round().astype(int)
    return (0, *sorted({1, iterations, *spaced.tolist()}))


def lab_steps(settings: LabSettings) -> Iterator[LabProgress | LabResult]:
    """Run an experiment: progress before each run, the result at the end.

    Raises
    ------
    InputError
        If there are too few observations for the means to start from, or if Poisson noise leaves
        no count at all.
    """
    begun = time.perf_counter()
    experiment, n_runs = EXPERIMENTS[settings.experiment], settings.n_runs
    yield LabProgress(0, n_runs, "getting ready")
    _warm_up(settings.experiment, settings.learners)
    curves: list[pd.DataFrame] = []
    notes: list[str] = []
    choices: list[tuple[int, str, int]] = []
    sizes = product(settings.n_states, settings.n_individuals, settings.lengths)
    seeds = range(settings.seed, settings.seed + settings.n_seeds)
    cases = [
        (seed, d, n, length, size)
        for seed, (d, n, length) in product(seeds, list(sizes))
        for size in settings.group_sizes
    ]
    # Learners that race against the clock have the machine to themselves, one after the other.
    with in_turn() if experiment.x == "wall_s" else nullcontext():
        engine = current()
    found = checkpoints().each("curves", partial(_curves, settings), cases, engine)
    for seed, d, n, length, size in cases:
        labels = [
            _label(dict(zip(RUN_COLUMNS, (d, size, n, length, name, seed), strict=True)), settings)
            for name in settings.learners
        ]
        yield LabProgress(len(curves), n_runs, labels[0])
        for number, (label, run) in enumerate(zip(labels, next(found), strict=True)):
            if number:
                yield LabProgress(len(curves), n_runs, label)
            values = (d, size, n, length, run.learner, seed)
            of_run: dict[str, Any] = dict(zip(RUN_COLUMNS, values, strict=True))
            curves.append(run.curve.assign(**of_run))
            if run.learner == AUTO:
                choices.append((d, run.taken, size))
            if run.n_empty:
                notes.append(
                    f"{label}: {run.n_empty:,} groups of which nobody was read are left out."
                )
            if run.fault:
                notes.append(f"{label}: the curve ends early. {run.fault}")
    notes += _said_of(choices)
    table = pd.concat(curves, ignore_index=True)
    table = table[[*RUN_COLUMNS, "iteration", "wall_s", "delta_nll", "free_energy"]]
    wall_s = time.perf_counter() - begun
    yield LabResult(settings, table, trends_of(settings.experiment, table), wall_s, tuple(notes))


@dataclass(frozen=True)
class _Run:
    """A learner's curve, whom it ``taken`` stands for, groups left out, and what ended it early.

    The curve holds numbers alone, as a checkpoint keeps no others.
    """

    learner: str
    taken: str
    curve: pd.DataFrame
    n_empty: int
    fault: str


def _curves(settings: LabSettings, case_of: tuple[int, int, int, int, int]) -> list[_Run]:
    """The runs of all learners on one case (seed, d, N, T) in groups of one size."""
    seed, d, n, length, size = case_of
    _warm_up(settings.experiment, settings.learners)
    runs: list[_Run] = []
    # What "auto" takes may run under its own name as well: one and the same curve.
    known: dict[str, tuple[pd.DataFrame, str]] = {}
    with one_thread():
        case = _Case.drawn(EXPERIMENTS[settings.experiment], seed, d, n, length)
        for learner in settings.learners:
            aggregates, n_empty = _data(case, size, learner)
            taken = _taken(case, aggregates, learner)
            if taken not in known:
                known[taken] = _curve(case, aggregates, taken, size, settings.iterations)
            curve, fault = known[taken]
            runs.append(_Run(learner, taken, curve, n_empty, fault))
    return runs


def _label(run: dict[str, Any], settings: LabSettings) -> str:
    """``d = 3, M = 10, seed 2``, and what else is varied."""
    varied = {"n_states": True, "group_size": True}
    varied["n_individuals"] = len(settings.n_individuals) > 1
    varied["length"] = len(settings.lengths) > 1
    parts = [f"{SYMBOLS[name]} = {run[name]:,}" for name, is_varied in varied.items() if is_varied]
    if len(settings.learners) > 1:
        parts.append(LEARNER_LABELS[run["learner"]])
    return ", ".join([*parts, f"seed {run['seed']}"])


def _data(case: _Case, size: int, learner: str) -> tuple[Aggregates, int]:
    """What the learner is given, and the number of groups that are left out of it."""
    return case.state_readings(size) if learner.endswith(ON_STATES) else (case.groups(size), 0)


def _taken(case: _Case, aggregates: Aggregates, learner: str) -> str:
    """The learner itself, or what "auto" takes for these data."""
    if learner != AUTO:
        return learner
    return choose_learner(AUTO, aggregates, case.start, fixed=case.fixed).learner


def _said_of(choices: list[tuple[int, str, int]]) -> Iterator[str]:
    """What "auto" took, from (d, learner, M) of each run: one sentence for each d."""
    for d in dict.fromkeys(d for d, _, _ in choices):
        at: dict[str, list[str]] = {}
        for learner, size in dict.fromkeys((name, size) for of, name, size in choices if of == d):
            at.setdefault(LEARNER_LABELS[learner], []).append(f"{size:,}")
        said = [f"{name} at M = {listed(sizes)}" for name, sizes in at.items()]
        yield f"d = {d}: the best for the data was {'; '.join(said)}."


def _curve(
    case: _Case, aggregates: Aggregates, learner: str, size: int, iterations: int
) -> tuple[pd.DataFrame, str]:
    """A learning curve, and what ended it early if something did."""
    steps = learner_steps(
        row_of(learner).name,
        aggregates,
        case.start,
        fixed=case.fixed,
        noise_map="identity" if learner.endswith(ON_STATES) else "emission",
        calibrate=int(learner.endswith(CALIBRATED)),
        random_state=case.rng(size, 6),
    )
    wanted = evaluated_iterations(iterations)
    rows = [(0, 0.0, case.delta_nll(case.start), np.nan)]
    fault, wall_s, begun = "", 0.0, time.perf_counter()
    try:
        for state in islice(steps, iterations):
            wall_s += time.perf_counter() - begun
            if state.iteration in wanted:
                delta = case.delta_nll(state.hmm)
                rows.append((state.iteration, wall_s, delta, state.free_energy))
            begun = time.perf_counter()
    except UnreachableError as error:
        fault = str(error)
    return pd.DataFrame(rows, columns=["iteration", "wall_s", "delta_nll", "free_energy"]), fault


@cache
def _warm_up(name: str, learners: tuple[str, ...]) -> None:
    """Let this process have what it compiles or loads at the first call, which is no learning."""
    with one_thread():
        case = _Case.drawn(EXPERIMENTS[name], seed=0, d=2, n=40, length=3)
        for learner, size in product(learners, (1, 20)):
            aggregates = _data(case, size, learner)[0]
            _curve(case, aggregates, _taken(case, aggregates, learner), size, 2)
