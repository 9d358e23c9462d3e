"""Real people flow in Tokyo, in groups of every size, against the flows that were counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from agg_core.base.options import options_of
from agg_core.io import read_trajectories
from agg_core.model.aggregates import aggregate
from agg_core.model.emissions import CategoricalEmission, grid_emission
from agg_core.model.hmm import HMM, distance_decay_transmat
from agg_core.space.settings import GridSettings
from agg_core.study.people import StudyResult, study_steps
from agg_core.study.settings import LearnSettings, StudySettings, WindowSettings
from agg_core.tables.flows import FlowComparison, compare_flows, count_matrix, flow_matrix
from agg_core.tables.sequences import to_sequences
from agg_core.tables.trajectories import Trajectories
from benchmarks.group_sizes.learners import DEFAULT_LEARNERS, Learner, ready
from benchmarks.group_sizes.tables import Row, Table, attempted, real_data

__all__ = ["TOKYO", "TokyoSettings", "by_command", "by_learner", "measure", "measure_people"]


@dataclass(frozen=True)
class TokyoSettings:
    """The study of the ``learn`` command; each seed draws the noise and the groups."""

    learners: tuple[str, ...] = DEFAULT_LEARNERS
    n_seeds: int = 5
    group_sizes: tuple[int, ...] = (1, 5, 10, 20, 50, 100)
    misclassify: tuple[float, ...] = (0.05,)
    bounds: tuple[float, float, float, float] = (139.68, 35.65, 139.80, 35.75)
    rows: int = 10
    cols: int = 10
    step_minutes: int = 20
    length: int = 3
    iterations: int = 60
    threshold: float = 35.0

    def study(self, group_size: int, misclassify: float, seed: int) -> StudySettings:
        """The settings of one study that is told the noise."""
        return StudySettings(
            GridSettings(*self.bounds, self.rows, self.cols),
            WindowSettings(self.step_minutes, self.length),
            LearnSettings(
                group_size=group_size, misclassify=misclassify, noise="given", assumed=misclassify,
                iterations=self.iterations, replicates=0, threshold=self.threshold, seed=seed,
            ),
        )  # fmt: skip


def measure(settings: TokyoSettings) -> Iterator[Row]:
    """CPC and total_ratio of moves against the flows counted before the noise."""
    path = real_data("tokyo_people_flow/tokyo_1000users_20min.csv")
    return measure_people(read_trajectories(path, where={"full_day": "1"}), settings)


def measure_people(trajectories: Trajectories, settings: TokyoSettings) -> Iterator[Row]:
    """The same for any people."""
    learners = ready(settings.learners)
    of_command = options_of(LearnSettings)["inference"].choices
    for noise, size, seed in product(
        settings.misclassify, settings.group_sizes, range(settings.n_seeds)
    ):
        study = settings.study(size, noise, seed)
        for learner in learners:
            run = by_command if learner.label in of_command else by_learner
            yield attempted(
                {"misclassify": noise, "group_size": size, "seed": seed, "learner": learner.label},
                run, trajectories, study, learner,
            )  # fmt: skip


def by_command(trajectories: Trajectories, study: StudySettings, learner: Learner) -> Row:
    """Exactly what the ``learn`` command does; seconds are those of the fit to groups."""
    study = replace(study, learn=replace(study.learn, inference=learner.name))
    *_, result = study_steps(trajectories, study)
    assert isinstance(result, StudyResult)
    fit = result.by_time[0].estimate
    return {
        **_figures(result.vs_counted),
        "iterations": float(fit.iterations),
        "converged": float(fit.converged),
        "seconds": fit.wall_s,
    }


def by_learner(trajectories: Trajectories, study: StudySettings, learner: Learner) -> Row:
    """The same data, noise, groups and start, for a learner that the command does not offer."""
    grid, learn, window = study.grid.make(), study.learn, study.window
    people = to_sequences(trajectories, grid, window.step, window.length)
    emission = CategoricalEmission(
        grid_emission(grid, learn.misclassify, outside=people.has_outside)
    )
    noise, grouping = np.random.default_rng([learn.seed, 0]).spawn(2)
    d = people.n_states
    symbols = emission.sample(people.states, noise)
    groups = aggregate(symbols, learn.group_size, d, grouping, within=people.window)
    transmat = distance_decay_transmat(grid, outside=people.has_outside)
    fitted = learner.fit(groups, HMM(np.full(d, 1 / d), transmat, emission), learn.iterations)
    found = flow_matrix(
        fitted.hmm.startprob, fitted.hmm.transmat, len(people.states), window.length
    )
    comparison = compare_flows(found, count_matrix(people), learn.threshold)
    return {**_figures(comparison), **fitted.course()}


def _figures(comparison: FlowComparison) -> Row:
    return {"cpc": comparison.cpc, "total_ratio": comparison.total_ratio}


TOKYO = Table(
    name="tokyo",
    title="Real people flow in Tokyo: moves learned from groups against the moves counted",
    settings=TokyoSettings,
    measure=measure,
    case=("misclassify", "group_size", "seed"),
    groupings=(("misclassify", "group_size"),),
    figures=("cpc", "total_ratio", "iterations", "converged", "seconds"),
)
