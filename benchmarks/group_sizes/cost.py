"""What learning costs on a city of the paper's size, and how long until it is good."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from agg_core.io import read_trajectories
from agg_core.made.samples import SAMPLES, make_sample
from agg_core.model.aggregates import Aggregates, aggregate
from agg_core.model.emissions import CategoricalEmission, grid_emission
from agg_core.model.hmm import HMM, distance_decay_transmat
from agg_core.space.build import Grid
from agg_core.tables.flows import compare_flows, count_matrix, flow_matrix
from agg_core.tables.sequences import Sequences, to_sequences
from benchmarks.group_sizes.learners import DEFAULT_LEARNERS, Learner, ready
from benchmarks.group_sizes.tables import Row, Table, attempted

__all__ = ["COST", "CostSettings", "measure", "stops", "within"]

CITY = SAMPLES["tokyo_commuters"]


@dataclass(frozen=True)
class CostSettings:
    """People on the made city's own grid; fits of ever more iterations, up to ``iterations``."""

    learners: tuple[str, ...] = DEFAULT_LEARNERS
    group_sizes: tuple[int, ...] = (20, 100)
    n_individuals: int = 10_000
    time_of_day: str = "08:00"
    neighbour_chance: float = 0.05
    iterations: int = 60
    margin: float = 0.05


def measure(settings: CostSettings) -> Iterator[Row]:
    """Seconds an iteration, and of the shortest fit whose CPC is within the margin of the last.

    Every stop is a fit of its own from the start, as a person would have run it: what a learner
    does at its end, such as averaging its iterates, belongs to it.
    """
    learners = ready(settings.learners)
    grid = Grid.from_bbox(*CITY.bounds, CITY.rows, CITY.cols)
    made = read_trajectories(make_sample(CITY.key, settings.n_individuals), tz=CITY.timezone)
    people = to_sequences(
        made, grid, f"{CITY.step_minutes}min", CITY.length, start=settings.time_of_day
    )
    emission = CategoricalEmission(
        grid_emission(grid, settings.neighbour_chance, outside=people.has_outside)
    )
    d = people.n_states
    transmat = distance_decay_transmat(grid, outside=people.has_outside)
    start = HMM(np.full(d, 1 / d), transmat, emission)
    symbols = emission.sample(people.states, np.random.default_rng([0, 0]))
    for size in settings.group_sizes:
        groups = aggregate(symbols, size, d, np.random.default_rng([0, size]))
        for learner in learners:
            yield attempted(
                {"group_size": size, "learner": learner.label},
                _figures, learner, groups, start, people, settings,
            )  # fmt: skip


def stops(iterations: int) -> list[int]:
    """Lengths of the fits: 1, 2, 4, ... and ``iterations``."""
    doubled = [2**k for k in range(iterations.bit_length()) if 2**k < iterations]
    return [*doubled, iterations]


def within(values: npt.ArrayLike, margin: float) -> int:
    """Place of the first value from which on all are within a share of the last one."""
    course = np.asarray(values, dtype=np.float64)
    outside = np.flatnonzero(np.abs(course - course[-1]) > margin * abs(course[-1]))
    return int(outside[-1]) + 1 if outside.size else 0


def _figures(
    learner: Learner,
    groups: Aggregates,
    start: HMM,
    people: Sequences,
    settings: CostSettings,
) -> Row:
    truth = count_matrix(people)
    fits, scores = [], []
    for limit in stops(settings.iterations):
        fitted = learner.fit(groups, start, limit)
        chain = fitted.hmm.startprob, fitted.hmm.transmat
        flows = flow_matrix(*chain, len(people.states), people.length)
        fits.append(fitted)
        scores.append(compare_flows(flows, truth))
    enough = fits[within([score.cpc for score in scores], settings.margin)]
    return {
        "seconds_per_iteration": fits[-1].seconds / max(fits[-1].monitor.iteration, 1),
        "seconds_to_accuracy": enough.seconds,
        "iterations_to_accuracy": float(enough.monitor.iteration),
        "cpc": scores[-1].cpc,
        "total_ratio": scores[-1].total_ratio,
        **fits[-1].course(),
    }


COST = Table(
    name="cost",
    title="Cost on a made city: seconds an iteration, and until CPC is within a margin of its last",
    settings=CostSettings,
    measure=measure,
    case=("group_size",),
    groupings=(("group_size",),),
    figures=(
        "seconds_per_iteration", "seconds_to_accuracy", "iterations_to_accuracy", "cpc",
        "total_ratio", "iterations", "converged", "seconds",
    ),
    ratio_of="seconds_per_iteration",
)  # fmt: skip
