"""A study: trajectories and settings to flows learned from groups, from single people, and counted.

This is the whole experiment of the paper's last section, in the one place that the command line
and the pages share: grid the people, make the observations noisy, form groups of M, learn, and
hold the flows against the M = 1 fit and against the flows counted before the noise.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from agg_core.base.errors import InputError
from agg_core.learn.esteps.gaussian_pairs import INNER_STEPS
from agg_core.learn.learners import (
    AUTO,
    CROWDED,
    GAUSSIAN_PAIRS,
    MOMENTS,
    SAMPLING,
    ConvergenceMonitor,
    Reason,
    choose_learner,
    learner_steps,
    moments_start,
    monitored,
)
from agg_core.learn.saem import m_steps_per_iteration
from agg_core.learn.table import CALIBRATED
from agg_core.model.aggregates import Aggregates, aggregate, aggregate_points
from agg_core.model.emissions import TAIL, CategoricalEmission, Emission, grid_emission
from agg_core.model.gaussian import grid_gaussian_emission, grid_positions
from agg_core.model.hmm import HMM, distance_decay_transmat
from agg_core.space.grid import Grid
from agg_core.study.settings import LearnSettings, StudySettings
from agg_core.tables.flows import (
    FlowComparison,
    compare_flows,
    count_flows,
    count_flows_at,
    flow_table,
    flow_table_at,
    with_places,
)
from agg_core.tables.sequences import Sequences
from agg_core.tables.trajectories import Trajectories, to_sequences

__all__ = [
    "ALL_DAY",
    "SOURCES",
    "AnchorResult",
    "CostEstimate",
    "Fit",
    "Progress",
    "StudyResult",
    "estimate_cost",
    "study_steps",
]

FloatArray = npt.NDArray[np.float64]

ALL_DAY = "all day"
"""Name of the only model of a study without anchors: windows of the whole day pooled."""

SOURCES = ("estimate", "single", "counted")
"""Where flows come from: groups of M, the M = 1 fit, or counted before the noise."""

FIT_TOL = 1e-5


@dataclass(frozen=True)
class Progress:
    """Where a study stands: fit number ``fit`` of ``n_fits``, at ``iteration`` of ``n_iter``."""

    anchor: str
    source: str
    fit: int
    n_fits: int
    iteration: int
    n_iter: int
    free_energy: float
    change: float
    people: int

    @property
    def share(self) -> float:
        """Share of all iterations done, 0 to 1."""
        return (self.fit + self.iteration / self.n_iter) / self.n_fits


@dataclass(frozen=True)
class Fit:
    """A learned chain and how the learning went.

    ``learner`` is the one that did it and ``choice`` says why, if it was chosen by itself.
    ``history`` is the free energy of each iteration; ``n_unconverged`` the sequences whose counts
    were not met to a thousandth in the last E-step; ``change`` the last move of the parameters.
    """

    startprob: FloatArray
    transmat: FloatArray
    history: tuple[float, ...]
    reason: Reason
    change: float
    n_unconverged: int
    wall_s: float
    learner: str = "cfb"
    choice: str = ""

    @property
    def converged(self) -> bool:
        """Whether the parameters stood still."""
        return self.reason == "converged"

    @property
    def iterations(self) -> int:
        """Iterations done."""
        return len(self.history)


@dataclass(frozen=True)
class AnchorResult:
    """The models of one time of day and what their flows are worth."""

    anchor: str
    n_sequences: int
    n_groups: int
    estimate: Fit
    single: Fit
    vs_single: FlowComparison
    vs_counted: FlowComparison
    observed: FloatArray | None
    """People observed in each block (and outside) at each step, noise and all, (T, n_states);
    None where positions are observed."""

    def fit(self, source: str) -> Fit:
        """The chain learned from groups ("estimate") or from single people ("single")."""
        return {"estimate": self.estimate, "single": self.single}[source]


@dataclass(frozen=True)
class StudyResult:
    """Everything that a study found.

    ``flows`` has the columns of `flow_table` after ``anchor`` and ``source`` (see `SOURCES`), a
    mean over the steps of the window; ``counted_steps`` the counted flows of each step by itself:
    anchor, step (from 0), origin, dest, count. With several anchors ``vs_single`` and
    ``vs_counted`` compare all their flows together.
    """

    settings: StudySettings
    n_individuals: int
    n_states: int
    has_outside: bool
    dropped: Mapping[str, int]
    anchors: tuple[AnchorResult, ...]
    flows: pd.DataFrame
    counted_steps: pd.DataFrame
    vs_single: FlowComparison
    vs_counted: FlowComparison
    wall_s: float

    @property
    def n_sequences(self) -> int:
        """Sequences of single people, over all anchors."""
        return sum(a.n_sequences for a in self.anchors)

    @property
    def n_groups(self) -> int:
        """Aggregate sequences, over all anchors."""
        return sum(a.n_groups for a in self.anchors)

    @property
    def iterations(self) -> int:
        """Most iterations that a model learned from groups took."""
        return max(a.estimate.iterations for a in self.anchors)

    @property
    def converged(self) -> bool:
        """Whether all fits, also those at M = 1, stood still before the limit."""
        return all(a.estimate.converged and a.single.converged for a in self.anchors)

    @property
    def learner(self) -> str:
        """Who learned from the groups, in the end; several names if it was not one for all."""
        return ", ".join(dict.fromkeys(a.estimate.learner for a in self.anchors))

    @property
    def busiest(self) -> str:
        """The anchor at which most people move, as counted."""
        moves = self.flows.loc[
            (self.flows["source"] == "counted") & (self.flows["origin"] != self.flows["dest"])
        ]
        if moves.empty:
            return self.anchors[0].anchor
        return str(moves.groupby("anchor")["count"].sum().idxmax())

    @property
    def n_steps(self) -> int:
        """Steps of a window between which people move."""
        return self.settings.window.length - 1

    def at(self, anchor: str) -> AnchorResult:
        """The models of one time of day."""
        return next(a for a in self.anchors if a.anchor == anchor)

    def table(self, anchor: str, source: str, step: int | None = None) -> pd.DataFrame:
        """Flow table of one anchor and source, largest first.

        Of one ``step`` of the window, from 0, or the mean over all of them.
        """
        if step is None:
            mine = (self.flows["anchor"] == anchor) & (self.flows["source"] == source)
            return self.flows.loc[mine].drop(columns=["anchor", "source"]).reset_index(drop=True)
        grid = self.settings.grid.make()
        if source == "counted":
            steps = self.counted_steps
            mine = (steps["anchor"] == anchor) & (steps["step"] == step)
            return with_places(steps.loc[mine, ["origin", "dest", "count"]], grid)
        found = self.at(anchor)
        fit = found.fit(source)
        return flow_table_at(fit.startprob, fit.transmat, grid, found.n_sequences, step)

    def summary(self) -> dict[str, object]:
        """The figures of the study, JSON-ready."""
        return {
            "n_individuals": self.n_individuals,
            "n_sequences": self.n_sequences,
            "n_groups": self.n_groups,
            "n_states": self.n_states,
            "inference": self.settings.learn.inference,
            "learner": self.learner,
            "learner_reason": self.anchors[0].estimate.choice,
            "n_unconverged": sum(a.estimate.n_unconverged for a in self.anchors),
            "iterations": self.iterations,
            "converged": self.converged,
            "wall_s": round(self.wall_s, 3),
            "dropped": dict(self.dropped),
            "vs_single": self.vs_single.to_dict(),
            "vs_counted": self.vs_counted.to_dict(),
            "anchors": [
                {
                    "anchor": a.anchor,
                    "n_sequences": a.n_sequences,
                    "n_groups": a.n_groups,
                    "iterations": a.estimate.iterations,
                    "converged": a.estimate.converged,
                    "single_iterations": a.single.iterations,
                    "single_converged": a.single.converged,
                    "vs_single": a.vs_single.to_dict(),
                    "vs_counted": a.vs_counted.to_dict(),
                }
                for a in self.anchors
            ],
        }


def study_steps(
    trajectories: Trajectories, settings: StudySettings
) -> Iterator[Progress | StudyResult]:
    """Run a study; yields `Progress` after every iteration and the `StudyResult` at the end.

    Raises
    ------
    InputError
        If nobody is in the extent at the chosen times, or groups would be larger than the
        people there are.
    """
    began = time.perf_counter()
    grid = settings.grid.make()
    window = settings.window
    sequences = to_sequences(
        trajectories, grid, step=window.step, length=window.length,
        start=list(window.anchors) or None, max_gap=window.max_gap,
    )  # fmt: skip
    parts = [(a, sequences.at_anchor(a)) for a in window.anchors] or [(ALL_DAY, sequences)]
    for _, part in parts:
        _check_group_size(part, settings.learn.group_size)
    start = HMM(
        startprob=np.full(sequences.n_states, 1 / sequences.n_states),
        transmat=distance_decay_transmat(grid, outside=sequences.has_outside),
        emission=_noise(grid, settings.learn, outside=sequences.has_outside),
    )
    single_only = settings.learn.group_size == 1
    n_fits = len(parts) * (1 if single_only else 2)
    results, flows, counted_steps = [], [], []
    for part_number, (anchor, part) in enumerate(parts):
        groups, singles, people = _observe_and_group(
            part, trajectories, grid, start.emission, settings.learn, part_number
        )
        fits: dict[str, Fit] = {}
        for source, observed in (("estimate", groups), ("single", singles)):
            if source == "single" and single_only:
                fits["single"] = fits["estimate"]
                break
            number = part_number * (1 if single_only else 2) + len(fits)
            fits[source] = yield from _fit(
                observed, start, settings.learn, anchor, source, number, n_fits
            )
        tables = {
            source: flow_table(fit.startprob, fit.transmat, grid, len(part.states), window.length)
            for source, fit in fits.items()
        }
        tables["counted"] = count_flows(part, grid)
        flows += [t.assign(anchor=anchor, source=source) for source, t in tables.items()]
        counted_steps += [
            count_flows_at(part, grid, step)[["origin", "dest", "count"]].assign(
                anchor=anchor, step=step
            )
            for step in range(window.length - 1)
        ]
        threshold = settings.learn.threshold
        results.append(
            AnchorResult(
                anchor=anchor,
                n_sequences=len(part.states),
                n_groups=groups.n_sequences,
                estimate=fits["estimate"],
                single=fits["single"],
                vs_single=compare_flows(tables["estimate"], tables["single"], threshold),
                vs_counted=compare_flows(tables["estimate"], tables["counted"], threshold),
                observed=people,
            )
        )
    table = pd.concat(flows, ignore_index=True)
    by_source = {source: table.loc[table["source"] == source] for source in SOURCES}
    yield StudyResult(
        settings=settings,
        n_individuals=sequences.n_individuals,
        n_states=sequences.n_states,
        has_outside=sequences.has_outside,
        dropped=dict(sequences.dropped),
        anchors=tuple(results),
        flows=table,
        counted_steps=pd.concat(counted_steps, ignore_index=True),
        vs_single=compare_flows(
            by_source["estimate"], by_source["single"], settings.learn.threshold
        ),
        vs_counted=compare_flows(
            by_source["estimate"], by_source["counted"], settings.learn.threshold
        ),
        wall_s=time.perf_counter() - began,
    )


def _check_group_size(part: Sequences, group_size: int) -> None:
    most = int(np.bincount(part.window).max())
    if group_size > most:
        raise InputError(
            f"The group size M = {group_size} is larger than the {most} people that any one "
            "window holds; choose a smaller M, a wider extent or more data."
        )


def _noise(grid: Grid, learn: LearnSettings, *, outside: bool) -> Emission:
    """How a person in a block is observed."""
    if learn.observed == "positions":
        return grid_gaussian_emission(grid, learn.sigma_m, outside=outside)
    return CategoricalEmission(
        grid_emission(grid, learn.misclassify, learn.sigma_m, outside=outside)
    )


def _observe_and_group(
    part: Sequences,
    trajectories: Trajectories,
    grid: Grid,
    emission: Emission,
    learn: LearnSettings,
    number: int,
) -> tuple[Aggregates, Aggregates, FloatArray | None]:
    """The same noisy observations in groups of M, person by person, and all together by block."""
    noise, grouping = np.random.default_rng([learn.seed, number]).spawn(2)
    if isinstance(emission, CategoricalEmission):
        symbols = emission.sample(part.states, noise)
        n_symbols = emission.emissionprob.shape[1]
        groups = aggregate(symbols, learn.group_size, n_symbols, grouping, within=part.window)
        people = [np.bincount(at, minlength=n_symbols) for at in symbols.T]
        return groups, aggregate(symbols, 1, n_symbols), np.array(people, dtype=np.float64)
    lon, lat = (trajectories.table[name].to_numpy()[part.fixes] for name in ("lon", "lat"))
    places = grid_positions(grid, np.stack([lon, lat], axis=-1), learn.sigma_m, noise)
    groups = aggregate_points(places, learn.group_size, grouping, within=part.window)
    return groups, aggregate_points(places, 1), None


def _fit(
    observed: Aggregates,
    start: HMM,
    learn: LearnSettings,
    anchor: str,
    source: str,
    number: int,
    n_fits: int,
) -> Generator[Progress, None, Fit]:
    """Learn one model with the emission known; returns the `Fit`."""
    began = time.perf_counter()
    monitor = ConvergenceMonitor(tol=FIT_TOL, n_iter=learn.iterations)
    # Single people hide nothing: their exact likelihood is the truth for every learner.
    asked = "cfb" if source == "single" else learn.inference
    choice = choose_learner(asked, observed, start, fixed=("emission",))
    if source == "estimate" and learn.start == "moments":
        start = moments_start(observed, start)
    hmm = start
    steps = learner_steps(
        asked, observed, start, fixed=("emission",), prior=learn.prior,
        calibrate=learn.calibrate if source == "estimate" and asked in CALIBRATED else 0,
        random_state=learn.seed,
    )  # fmt: skip
    for state in monitored(steps, monitor):
        hmm = state.hmm
        yield Progress(
            anchor=anchor, source=source, fit=number, n_fits=n_fits,
            iteration=state.iteration, n_iter=learn.iterations,
            free_energy=state.free_energy, change=state.change,
            people=int(observed.n_individuals),
        )  # fmt: skip
    if monitor.reason == "failed":
        raise InputError(monitor.message)
    return Fit(
        startprob=hmm.startprob,
        transmat=hmm.transmat,
        history=tuple(monitor.history),
        reason=monitor.reason,
        change=monitor.change,
        n_unconverged=monitor.n_unconverged,
        wall_s=time.perf_counter() - began,
        learner=choice.learner,
        choice=choice.reason if asked == AUTO else "",
    )


@dataclass(frozen=True)
class CostEstimate:
    """What a study will take, roughly: seconds on this kind of machine and peak memory."""

    seconds: float
    megabytes: float


PAIRS_PER_SECOND = 4e9
"""State pairs that the E-step passes a second: what ``python -m benchmarks tokyo`` comes to."""

DENSE_PAIRS_PER_SECOND = 1.5e9
"""The same of the learners that work on all states, whatever the support of the tokens."""

FACTORS_PER_SECOND = 5e9
"""d^3 of the covariances that Gaussian pairs factors a second."""

SLOTS_PER_SECOND = 2.5e6
"""People at a step that an M-step of sampling goes through a second."""

TYPICAL_SWEEPS = {"cfb": 8.0, "cavity": 8.0, "nlbp": 100.0, "bethe_rda": 350.0, "prox": 60.0}
"""Mean sweeps per E-step over a fit with warm starts, on a grid of Tokyo's size."""

FIX_BYTES = 200
"""Memory that a study takes per fix while the trajectories are cut into sequences."""


def estimate_cost(n_people: int, n_fixes: int, grid: Grid, settings: StudySettings) -> CostEstimate:
    """Rough time and memory of a study; each person is taken to have one window an anchor.

    Without anchors the windows of the whole day are as many as the fixes allow.
    """
    learn, window = settings.learn, settings.window
    d = grid.n_cells
    sequences = n_people * len(window.anchors) if window.anchors else n_fixes // window.length
    groups, reach = sequences / learn.group_size, min(_reach(grid, learn), d)
    support = d * -np.expm1(learn.group_size * np.log1p(-min(reach / d, 1 - 1e-9)))
    steps = window.length - 1
    single = steps * sequences * reach**2 * 4 / PAIRS_PER_SECOND
    learner = learn.inference
    if learner == AUTO:
        crowded = learn.group_size >= CROWDED * d and learn.observed == "blocks"
        learner = GAUSSIAN_PAIRS if crowded else SAMPLING
    if learner == MOMENTS:
        grouped = 20 * d**3 / DENSE_PAIRS_PER_SECOND
    elif learner == GAUSSIAN_PAIRS:
        grouped = INNER_STEPS * steps * groups * (1e-5 + d**3 / FACTORS_PER_SECOND)
    elif learner == SAMPLING:
        slots = sequences * window.length
        grouped = slots * m_steps_per_iteration(slots) / SLOTS_PER_SECOND
    else:
        passes = 2 * TYPICAL_SWEEPS[learner] + 2
        local = learner in CALIBRATED
        pass_s = support**2 / PAIRS_PER_SECOND if local else d**2 / DENSE_PAIRS_PER_SECOND
        grouped = steps * groups * passes * pass_s * (1 + 4 * learn.calibrate * local)
    seconds = learn.iterations * (grouped + single)
    tokens = sequences * window.length
    megabytes = 300 + (n_fixes * FIX_BYTES + tokens * 120 + 20 * d * d * 8) / 1e6
    return CostEstimate(float(seconds), float(megabytes))


def _reach(grid: Grid, learn: LearnSettings) -> float:
    """Blocks that one observation can come from, roughly."""
    width_m, height_m = grid.block_size_m
    if learn.observed == "positions":
        # Where the normal distribution of a block is above a millionth of the best one.
        side_m = np.sqrt(width_m * height_m)
        radius = np.sqrt(2 * np.log(1 / TAIL) * (1 / 12 + (learn.sigma_m / side_m) ** 2))
        return float(np.pi * radius**2)
    if learn.sigma_m == 0:
        return 9.0
    radius_m = 4 * learn.sigma_m
    return float((2 * np.ceil(radius_m / width_m) + 1) * (2 * np.ceil(radius_m / height_m) + 1)) + 8
