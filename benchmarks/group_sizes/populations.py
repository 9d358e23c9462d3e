"""Large populations: one group a day, many people per cell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from agg_core.model.aggregates import Aggregates
from agg_core.model.hmm import HMM, distance_decay_transmat
from agg_core.space.build import Grid
from agg_core.space.grid import BaseGrid
from benchmarks.group_sizes.learners import DEFAULT_LEARNERS, Learner, ready
from benchmarks.group_sizes.tables import (
    FloatArray,
    IntArray,
    Row,
    Table,
    attempted,
    expected_flows,
    flow_figures,
    simulated_counts,
)

__all__ = ["POPULATIONS", "PopulationSettings", "local_truth", "measure"]

EXTENT = (139.70, 35.65, 139.75, 35.70)


@dataclass(frozen=True)
class PopulationSettings:
    """``group_sizes`` are people a day; the chance to stay is drawn from ``stay`` ± ``spread``."""

    learners: tuple[str, ...] = DEFAULT_LEARNERS
    n_seeds: int = 3
    group_sizes: tuple[int, ...] = (100, 1_000, 10_000, 100_000)
    side: int = 5
    stay: float = 0.8
    spread: float = 0.1
    start_stay: float = 0.6
    n_days: int = 25
    length: int = 40
    iterations: int = 200


def measure(settings: PopulationSettings) -> Iterator[Row]:
    """Flows under what was learned, from the true start, against the moves that were made."""
    learners = ready(settings.learners)
    grid = Grid.from_bbox(*EXTENT, settings.side, settings.side)
    for seed in range(settings.n_seeds):
        pi, true = local_truth(grid, settings, np.random.default_rng([seed, 1]))
        start = _start(grid, settings.start_stay)
        for people in settings.group_sizes:
            counts, moves = simulated_counts(
                pi, true, np.full(settings.n_days, people), settings.length,
                np.random.default_rng([seed, people, 2]),
            )  # fmt: skip
            days = Aggregates.from_dense(counts)
            for learner in learners:
                yield attempted(
                    {"group_size": people, "seed": seed, "learner": learner.label},
                    _figures, learner, days, start, pi, moves, settings.iterations,
                )  # fmt: skip


def local_truth(
    grid: BaseGrid, settings: PopulationSettings, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Start (d,) and transitions (d, d) to the 8 neighbours, whose shares are uniform draws."""
    transmat = np.zeros((grid.n_cells, grid.n_cells))
    for cell, near in enumerate(grid.neighbours):
        stay = rng.uniform(settings.stay - settings.spread, settings.stay + settings.spread)
        transmat[cell, cell] = stay
        transmat[cell, near] = (1 - stay) * rng.dirichlet(np.ones(len(near)))
    return rng.dirichlet(np.full(grid.n_cells, 5.0)), transmat


def _start(grid: BaseGrid, stay: float) -> HMM:
    """Distance decay within the neighbours; a start of zero rules other moves out for good."""
    d = grid.n_cells
    transmat = distance_decay_transmat(grid, stay)
    for cell, near in enumerate(grid.neighbours):
        far = np.setdiff1d(np.arange(d), [*near, cell])
        transmat[cell, far] = 0.0
        transmat[cell, near] *= (1 - stay) / transmat[cell, near].sum()
    return HMM.categorical(np.full(d, 1 / d), transmat, np.eye(d))


def _figures(
    learner: Learner,
    days: Aggregates,
    start: HMM,
    pi: FloatArray,
    moves: IntArray,
    iterations: int,
) -> Row:
    fitted = learner.fit(days, start, iterations)
    flows = expected_flows(pi, fitted.hmm.transmat, days.n_individuals, days.length)
    return {**flow_figures(flows, moves), **fitted.course()}


POPULATIONS = Table(
    name="populations",
    title="Large populations without noise, moves to neighbours: flows against the moves made",
    settings=PopulationSettings,
    measure=measure,
    case=("group_size", "seed"),
    groupings=(("group_size",),),
    figures=("cpc", "cpc_with_stays", "total_ratio", "iterations", "converged", "seconds"),
)
