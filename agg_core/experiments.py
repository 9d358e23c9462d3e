"""The paper's experiments on random models: settings to learning curves, and what they show."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import islice, product
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from numba import get_num_threads, set_num_threads

from agg_core.aggregates import Aggregates, aggregate, aggregate_points
from agg_core.emissions import CategoricalEmission
from agg_core.errors import InputError, UnreachableError
from agg_core.gaussian import GaussianEmission, kmeans_centres
from agg_core.learning import learner_steps, log_likelihood
from agg_core.parameters import HMM, random_probs
from agg_core.settings import Checked, option_field
from agg_core.synthetic import random_gaussian_hmm, random_hmm

__all__ = [
    "EXPERIMENTS",
    "LEARNER_LABELS",
    "RUN_COLUMNS",
    "SYMBOLS",
    "Experiment",
    "LabProgress",
    "LabResult",
    "LabSettings",
    "Trend",
    "estimate_seconds",
    "evaluated_iterations",
    "final_rows",
    "final_table",
    "lab_steps",
    "setting_text",
    "trends_of",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

ON_STATES = "_states"
"""Ending of the learners that are given Poisson readings of the counts of states."""

LEARNER_LABELS: dict[str, str] = {
    "cfb": "CFB",
    "moments": "Least squares",
    "nlbp": "NLBP, counts of symbols",
    "bethe_rda": "Bethe-RDA, counts of symbols",
    "prox": "Prox, counts of symbols",
    "nlbp_states": "NLBP, Poisson counts of states",
    "bethe_rda_states": "Bethe-RDA, Poisson counts of states",
    "prox_states": "Prox, Poisson counts of states",
}
"""What a person reads for a learner. Counts of symbols are the data that CFB has, with the emission
as noise map; Poisson counts of states are what the paper most likely gave these learners."""

BASELINES = ("nlbp", "bethe_rda", "prox")

KNOWN_EMISSION = ("fig7",)
"""Experiments that give every learner the emission; the others learn it too."""

RUN_COLUMNS = ["n_states", "group_size", "n_individuals", "length", "learner", "seed"]
SYMBOLS = {"n_states": "d", "group_size": "M", "n_individuals": "N", "length": "T"}

EVALUATIONS = 24
OVERFIT_MARGIN = 0.01
"""A curve turns up again if it ends this far above its lowest value, in nats per person."""

FEW_PEOPLE = 500
"""The paper sees overfitting below this many individuals."""


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
        "fig3", "Experiment", "Which of the paper's figures is run.",
        choices=("fig3", "fig4", "fig5", "fig6", "fig7"),
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
        ("cfb",), "Learners", "Who learns, and from which counts.",
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
                    raise InputError(f"{name} is empty; give at least one value.")
        super().__post_init__()
        largest, fewest = max(self.group_sizes), min(self.n_individuals)
        if largest > fewest:
            raise InputError(
                f"Groups of M = {largest:,} cannot be formed from N = {fewest:,} individuals; "
                "choose a smaller M or a larger N."
            )
        others = [name for name in self.learners if name != "cfb"]
        if others and self.experiment not in KNOWN_EMISSION:
            raise InputError(
                f"The learner {LEARNER_LABELS[others[0]]} needs a known emission, which "
                f"{self.experiment} learns; use CFB alone, or the experiment "
                f"{', '.join(KNOWN_EMISSION)}."
            )

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


@dataclass(frozen=True)
class Experiment:
    """A figure of the paper: how it is drawn, what it shows, and settings to run it with.

    ``panel`` and ``curve`` are columns of the table of a `LabResult`: one picture per value of the
    first, one curve per value of the second, over ``x``.
    """

    name: str
    title: str
    emission: Literal["categorical", "gaussian"]
    panel: str
    curve: str
    x: str
    see: str
    doubt: str
    quick: LabSettings
    full: LabSettings

    @property
    def known_emission(self) -> bool:
        """Whether learners are given the emission, and learn start and transitions alone."""
        return self.name in KNOWN_EMISSION


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
class Trend:
    """Something that the paper says of a figure, held against a table.

    ``holds`` is the verdict on the averages over seeds; ``n_holding`` of ``n_seeds`` seeds show
    it each on their own; ``sentence`` gives the figures.
    """

    claim: str
    holds: bool
    n_seeds: int
    n_holding: int
    sentence: str


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
    lengths=(5,), learners=("cfb",), n_seeds=10, iterations=500,
)  # fmt: skip
_FIG4 = replace(
    _FIG3, experiment="fig4", n_states=(10, 20, 25), group_sizes=(1, 10, 100), iterations=100
)
_FIG5 = replace(
    _FIG3, experiment="fig5", n_states=(5,), group_sizes=(1, 100, 250), n_individuals=(500,),
    lengths=(3, 5, 10, 20), iterations=200,
)  # fmt: skip
_FIG6 = replace(
    _FIG3, experiment="fig6", n_states=(10,), group_sizes=(1, 10, 100), lengths=(10,),
    n_individuals=(100, 500, 1000, 5000), iterations=300,
)  # fmt: skip
_FIG7 = replace(
    _FIG3,
    experiment="fig7",
    group_sizes=(10,),
    learners=tuple(LEARNER_LABELS),
    iterations=60,
    n_seeds=5,
)

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        Experiment(
            name="fig3",
            title="Discrete observations: the larger the groups, the less is learned",
            emission="categorical",
            panel="n_states",
            curve="group_size",
            x="iteration",
            see="The curve of M = 1, where nothing is hidden, ends lowest. The larger the groups, "
            "the slower the curve falls and the higher it ends.",
            doubt="The paper names neither its group sizes nor its iterations; these are ours, and "
            "start, transitions and emission are all learned from a random start. Some starts end "
            "in a poor optimum even at M = 1, so look at many seeds.",
            quick=replace(
                _FIG3, n_states=(3, 5), group_sizes=(1, 10, 100), n_individuals=(1000,),
                n_seeds=4, iterations=200,
            ),
            full=_FIG3,
        ),
        Experiment(
            name="fig4",
            title="Gaussian observations: the larger the groups, the less is learned",
            emission="gaussian",
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
            emission="gaussian",
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
            emission="categorical",
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
            emission="categorical",
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
            quick=replace(_FIG7, n_states=(3, 5), n_individuals=(500,), n_seeds=3, iterations=30),
            full=_FIG7,
        ),
    )
}  # fmt: skip
"""The experiments of the paper by the figure that shows them."""


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
        return _grouped(self.observations, size, self.truth, self._rng(size, 4))

    def state_readings(self, size: int) -> tuple[Aggregates, int]:
        """Poisson readings of how many of each group are in each state, and how many show nobody.

        A group without a count at any step is left out.
        """
        groups = aggregate(self.states, size, self.truth.n_states, self._rng(size, 4))
        readings = self._rng(size, 5).poisson(groups.to_dense())
        seen = readings.any(axis=(1, 2))
        if not seen.any():
            raise InputError("Poisson noise left no count at all; choose a larger N or M.")
        return Aggregates.from_dense(readings[seen], sizes=groups.sizes[seen]), int((~seen).sum())

    def delta_nll(self, hmm: HMM) -> float:
        """(NLL(theta) - NLL(theta*)) / N on the test set; infinite if it cannot happen."""
        return (self.truth_log_likelihood - log_likelihood(hmm, self.test)) / self.test.n_sequences

    def _rng(self, size: int, part: int) -> np.random.Generator:
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
    experiment = EXPERIMENTS[settings.experiment]
    n_runs = _n_runs(settings)
    yield LabProgress(0, n_runs, "getting ready")
    # The first call of a kernel compiles or loads it, which is no learning.
    _warm_up(experiment, settings.learners)
    curves: list[pd.DataFrame] = []
    notes: list[str] = []
    sizes = product(settings.n_states, settings.n_individuals, settings.lengths)
    seeds = range(settings.seed, settings.seed + settings.n_seeds)
    for seed, (d, n, length) in product(seeds, list(sizes)):
        with _one_thread():
            case = _Case.drawn(experiment, seed, d, n, length)
        for size, learner in product(settings.group_sizes, settings.learners):
            run: dict[str, Any] = dict(
                zip(RUN_COLUMNS, (d, size, n, length, learner, seed), strict=True)
            )
            label = _label(run, settings)
            yield LabProgress(len(curves), n_runs, label)
            with _one_thread():
                aggregates, n_empty = _data(case, size, learner)
                curve, fault = _curve(case, aggregates, learner, settings.iterations)
            curves.append(curve.assign(**run))
            if n_empty:
                notes.append(f"{label}: {n_empty:,} groups of which nobody was read are left out.")
            if fault:
                notes.append(f"{label}: the curve ends early. {fault}")
    table = pd.concat(curves, ignore_index=True)
    table = table[[*RUN_COLUMNS, "iteration", "wall_s", "delta_nll", "free_energy"]]
    wall_s = time.perf_counter() - begun
    yield LabResult(settings, table, trends_of(settings.experiment, table), wall_s, tuple(notes))


# Seconds of an iteration per unit of work (`_work`), measured on one core, and without any work.
SECONDS_PER_WORK = {"moments": 8e-8, "nlbp": 3e-7, "bethe_rda": 2e-6, "prox": 8e-8}
CFB_SINGLE, CFB_GROUPS, GAUSSIAN_FACTOR = 6e-9, 2e-8, 3.0
SECONDS_AT_LEAST = 4e-4
READY_S = 1.0


def estimate_seconds(settings: LabSettings) -> float:
    """Roughly how long a run takes, in seconds, on a core with nothing else to do."""
    experiment = EXPERIMENTS[settings.experiment]
    factor = GAUSSIAN_FACTOR if experiment.emission == "gaussian" else 1.0
    n_evaluations = len(evaluated_iterations(settings.iterations))
    total = 0.0
    for d, size, n, length, learner in product(
        settings.n_states, settings.group_sizes, settings.n_individuals, settings.lengths,
        settings.learners,
    ):  # fmt: skip
        cfb = CFB_SINGLE if size == 1 else CFB_GROUPS
        pace = SECONDS_PER_WORK.get(learner.removesuffix(ON_STATES), cfb * factor)
        tokens = size if experiment.emission == "gaussian" else min(size, d)
        learning = pace * _work(d, tokens, n / size, length) + SECONDS_AT_LEAST
        testing = factor * CFB_SINGLE * _work(d, 1, n, length) + SECONDS_AT_LEAST
        total += settings.iterations * learning + n_evaluations * testing
    return READY_S + settings.n_seeds * total


def _work(d: int, tokens: int, n_groups: float, length: int) -> float:
    """Products of a sweep over all groups, and twenty a step for its keeping."""
    return n_groups * length * (d * d + d * tokens + 20)


def _n_runs(settings: LabSettings) -> int:
    tuples = [value for value in vars(settings).values() if isinstance(value, tuple)]
    return int(np.prod([len(value) for value in tuples])) * settings.n_seeds


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


def _curve(
    case: _Case, aggregates: Aggregates, learner: str, iterations: int
) -> tuple[pd.DataFrame, str]:
    """A learning curve, and what ended it early if something did."""
    steps = learner_steps(
        learner.removesuffix(ON_STATES),
        aggregates,
        case.start,
        fixed=("emission",) if case.experiment.known_emission else (),
        noise_map="identity" if learner.endswith(ON_STATES) else "emission",
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


def _warm_up(experiment: Experiment, learners: Iterable[str]) -> None:
    with _one_thread():
        case = _Case.drawn(experiment, seed=0, d=2, n=40, length=3)
        for learner, size in product(learners, (1, 20)):
            _curve(case, _data(case, size, learner)[0], learner, 2)


@contextmanager
def _one_thread() -> Iterator[None]:
    """One thread for all kernels: small steps on shared cores wait for each other for long.

    It also makes the clock fair to learners that share their work less well.
    """
    before = get_num_threads()
    set_num_threads(1)
    try:
        yield
    finally:
        set_num_threads(before)


# ----------------------------------------------------------------------------------- the trends


def final_rows(table: pd.DataFrame) -> pd.DataFrame:
    """The last row of each run."""
    ordered = table.sort_values("iteration", kind="stable")
    return ordered.groupby(RUN_COLUMNS, as_index=False, sort=True).last()


def final_table(table: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard deviation of ΔNLL at the end, and mean seconds of learning, over seeds.

    There is no deviation of one value, or where one is infinite.
    """
    by = [name for name in RUN_COLUMNS if name != "seed"]
    grouped = final_rows(table).groupby(by, sort=False)
    return grouped.agg(
        delta_nll=("delta_nll", "mean"),
        sd=("delta_nll", _deviation),
        wall_s=("wall_s", "mean"),
        n_seeds=("seed", "size"),
    ).reset_index()


def _deviation(values: pd.Series) -> float:
    finite = len(values) > 1 and bool(np.isfinite(values).all())
    return float(values.std(ddof=1)) if finite else np.nan


def trends_of(experiment: str, table: pd.DataFrame) -> tuple[Trend, ...]:
    """What the paper says of a figure, each claim held against the table of a `LabResult`.

    A claim about a comparison is left out where the table holds nothing to compare.
    """
    return tuple(TRENDS[experiment](table))


def _trends_by_group_size(table: pd.DataFrame) -> Iterator[Trend]:
    for where, _, ends in _compared(table, "group_size"):
        claim = f"{where}: M = {ends.columns[0]:,} ends lowest."
        yield _verdict(claim, ends, _first_is_least, _ends_at("group_size", ends))
        claim = f"{where}: the larger the groups, the higher the end."
        yield _verdict(claim, ends, _rises, _ends_at("group_size", ends))


def _trends_by_length(table: pd.DataFrame) -> Iterator[Trend]:
    for where, _, ends in _compared(table, "length"):
        claim = f"{where}: the longer the sequences, the lower the end."
        yield _verdict(claim, ends, _falls, _ends_at("length", ends))
        # A longer test sequence adds up the errors of more steps; this is the other yardstick.
        per_step = ends.div(ends.columns.to_numpy(), axis=1)
        claim = f"{where}: the longer the sequences, the lower the end per step."
        yield _verdict(claim, per_step, _falls, _ends_at("length", per_step) + " and step")
    for where, _, ends in _compared(table, "group_size"):
        claim = f"{where}: the larger the groups, the higher the end."
        yield _verdict(claim, ends, _rises, _ends_at("group_size", ends))


def _trends_by_people(table: pd.DataFrame) -> Iterator[Trend]:
    for where, part, ends in _compared(table, "n_individuals"):
        claim = f"{where}: the more individuals, the lower the end."
        yield _verdict(claim, ends, _falls, _ends_at("n_individuals", ends))
        rise = _rise_at_the_end(part)
        figures = "from its lowest value to its end a curve rises by " + _figures(
            [f"at N = {n:,}" for n in rise.columns], rise
        )
        for n in (int(n) for n in rise.columns if int(n) < FEW_PEOPLE):
            claim = f"{where}: with N = {n:,} the curve turns up again (overfitting)."
            yield _verdict(claim, rise[[n]], lambda row: row[0] > OVERFIT_MARGIN, figures)


def _rise_at_the_end(table: pd.DataFrame) -> pd.DataFrame:
    """How far curves end above their lowest value, seeds x individuals."""
    rows = final_rows(table)
    lowest = table.groupby(RUN_COLUMNS, sort=True)["delta_nll"].min().to_numpy()
    ends = rows["delta_nll"].to_numpy()
    rise = np.subtract(ends, lowest, out=np.zeros(len(ends)), where=np.isfinite(lowest))
    return rows.assign(rise=rise).pivot(index="seed", columns="n_individuals", values="rise")


def _trends_by_learner(table: pd.DataFrame) -> Iterator[Trend]:
    for where, part, ends in _compared(table, "learner"):
        for ending, kind in (("", "counts of symbols"), (ON_STATES, "Poisson counts of states")):
            rivals = [name + ending for name in BASELINES if name + ending in ends]
            if rivals and "cfb" in ends:
                names = _listed([_short(name) for name in rivals])
                yield _lower(f"{where}: CFB ends below {names} ({kind}).", ends, rivals)
                claim = f"{where}: CFB gets there sooner than {names} ({kind})."
                yield _sooner(claim, part, ends, rivals)


def _lower(claim: str, ends: pd.DataFrame, rivals: list[str]) -> Trend:
    chosen = ends[["cfb", *rivals]]
    names = [f"({_short(name)})" for name in chosen.columns]
    return _verdict(claim, chosen, _first_is_least, "curves end at " + _figures(names, chosen))


def _sooner(claim: str, table: pd.DataFrame, ends: pd.DataFrame, rivals: list[str]) -> Trend:
    """Who first comes down to the level that both reach: the higher of the two ends."""
    # Two columns a rival: when CFB was there, and when the rival was.
    times, figures = [], []
    for rival in rivals:
        level = ends[["cfb", rival]].max(axis=1)
        pair = [_first_below(table, name, level) for name in ("cfb", rival)]
        times += pair
        figures.append(f"{pair[0].mean():.2g} s against {pair[1].mean():.2g} s ({_short(rival)})")
    return _verdict(
        claim, pd.concat(times, axis=1), lambda row: bool((row[::2] < row[1::2]).all()),
        f"to the higher of the two ends it learns for {_listed(figures)}",
    )  # fmt: skip


def _first_below(table: pd.DataFrame, learner: str, level: pd.Series) -> pd.Series:
    """Seconds of learning until a curve first is at the level of its seed."""
    curves = table[table["learner"] == learner]
    there = curves["delta_nll"] <= curves["seed"].map(level)
    return curves[there].groupby("seed")["wall_s"].min()


TRENDS: dict[str, Callable[[pd.DataFrame], Iterator[Trend]]] = {
    "fig3": _trends_by_group_size,
    "fig4": _trends_by_group_size,
    "fig5": _trends_by_length,
    "fig6": _trends_by_people,
    "fig7": _trends_by_learner,
}


def _compared(table: pd.DataFrame, column: str) -> Iterator[tuple[str, pd.DataFrame, pd.DataFrame]]:
    """What can be compared: a name, the rows, and where curves end, seeds x values of the column.

    One for each setting of the other columns; the name says those that vary.
    """
    others = [name for name in RUN_COLUMNS if name not in (column, "seed")]
    named = [name for name in others if table[name].nunique() > 1] or ["n_states"]
    for values, part in table.groupby(others, sort=True):
        setting = dict(zip(others, values, strict=True))
        where = ", ".join(setting_text(name, setting[name]) for name in named)
        ends = final_rows(part).pivot(index="seed", columns=column, values="delta_nll")
        if ends.shape[1] > 1:
            yield where, part, ends


def _verdict(
    claim: str, values: pd.DataFrame, test: Callable[[FloatArray], bool], figures: str
) -> Trend:
    """Whether the mean over seeds, and how many of the seeds (rows), pass the test."""
    rows = values.to_numpy(dtype=np.float64)
    n_holding = sum(bool(test(row)) for row in rows)
    holds = bool(test(rows.mean(axis=0)))
    how = "Holds on average and in" if holds else "Does not hold on average; it does in"
    sentence = f"{how} {n_holding} of {len(rows)} seeds: {figures}."
    return Trend(claim, holds, len(rows), n_holding, sentence)


def _first_is_least(row: FloatArray) -> bool:
    return bool((row[0] < row[1:]).all())


def _rises(row: FloatArray) -> bool:
    return bool((row[:-1] < row[1:]).all())


def _falls(row: FloatArray) -> bool:
    return bool((row[:-1] > row[1:]).all())


def _ends_at(column: str, ends: pd.DataFrame) -> str:
    at = [f"at {setting_text(column, value)}" for value in ends.columns]
    return "curves end at " + _figures(at, ends)


def _figures(names: list[str], values: pd.DataFrame) -> str:
    """Means over seeds with their names; values are in nats per person."""
    means = values.mean(axis=0)
    return (
        _listed([f"{mean:.3g} {name}" for mean, name in zip(means, names, strict=True)])
        + " nats per person"
    )


def setting_text(column: str, value: Any) -> str:
    """A value of a column of the table as a person reads it."""
    return LEARNER_LABELS[value] if column == "learner" else f"{SYMBOLS[column]} = {value:,}"


def _short(learner: str) -> str:
    """The name of a learner without its data."""
    return LEARNER_LABELS[learner].split(",", maxsplit=1)[0]


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
