"""How often intervals of flows from groups, and of sums of them, hold what truly happened."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from agg_core.study.people import StudyResult, study_steps
from agg_core.study.result import ESTIMATE
from agg_core.study.settings import StudySettings
from agg_core.tables.trajectories import Trajectories
from benchmarks.coverage import BoolArray, held_flows, held_sums, sum_masks
from benchmarks.group_sizes.tables import Row, Table, attempted
from benchmarks.group_sizes.untold import (
    LEARNED,
    TOLD,
    UntoldSettings,
    city_people,
    study_of,
    tokyo_people,
)

__all__ = ["COVERAGE", "ON_A_DAY", "CoverageSettings", "held_shares", "measure"]


@dataclass(frozen=True)
class CoverageSettings:
    """As of the table untold, with intervals from ``replicates`` simulated worlds."""

    learners: tuple[str, ...] = (TOLD, LEARNED)
    cases: tuple[str, ...] = UntoldSettings.cases
    n_seeds: int = 2
    group_sizes: tuple[int, ...] = (20, 100)
    misclassify: tuple[float, ...] = (0.05,)
    people: int = UntoldSettings.people
    iterations: int = UntoldSettings.iterations
    replicates: int = 4


FLOWS = "flows"
SUMS = {
    "out of a cell": "out",
    "into a cell": "into",
    "out of a district": "district_out",
    "into a district": "district_into",
    "within a district": "within",
    "all moves": "total",
}
"""Columns of the sums that intervals are found of."""

ON_A_DAY = {FLOWS: "day_flows", "out of a cell": "day_out", "all moves": "day_total"}
"""Those of each day chosen alone, where there are several."""


def measure(settings: CoverageSettings) -> Iterator[Row]:
    """Shares of true flows above 5 people, and of sums estimated above 5, within their interval."""
    told = UntoldSettings(people=settings.people, iterations=settings.iterations)
    for case in settings.cases:
        tokyo = tokyo_people() if case == "tokyo" else None
        for noise, size, seed, learner in product(
            settings.misclassify, settings.group_sizes, range(settings.n_seeds), settings.learners
        ):
            people = tokyo or city_people(settings.people, seed)
            study = study_of(told, case, noise, size, seed, learned=learner == LEARNED)
            study = replace(study, learn=replace(study.learn, replicates=settings.replicates))
            yield attempted(
                {
                    "case": case, "misclassify": noise, "group_size": size, "seed": seed,
                    "learner": learner,
                },
                held_shares, people, study,
            )  # fmt: skip


def held_shares(people: Trajectories, study: StudySettings) -> Row:
    """Shares of flows and of sums that a study of people holds, over all days and on each alone."""
    *_, result = study_steps(people, study)
    assert isinstance(result, StudyResult)
    d, n = result.n_states, result.states.n_cells
    masks = sum_masks(n, result.states.placed_grid.centroids_m)
    held: dict[str, list[BoolArray]] = {}
    for time in result.times_of_day:
        truth = result.matrix(time, "counted")
        low, high = (result.matrix(time, column=end) for end in ("low", "high"))
        held.setdefault(FLOWS, []).append(held_flows(truth, low, high))
        for name, column in SUMS.items():
            among = held_sums(result, time, ESTIMATE, masks[name], truth[:n, :n])
            held.setdefault(column, []).append(among)
    assert d in (n, n + 1)
    for day in result.days:
        one = result.of_days([day])
        for time in one.times_of_day:
            truth = one.matrix(time, "counted")
            ends = [one.matrix(time, column=end) for end in ("low", "high")]
            held.setdefault(ON_A_DAY[FLOWS], []).append(held_flows(truth, *ends))
            for name in ON_A_DAY.keys() - {FLOWS}:
                among = held_sums(one, time, ESTIMATE, masks[name], truth[:n, :n])
                held.setdefault(ON_A_DAY[name], []).append(among)
    joined = {column: np.concatenate(parts) for column, parts in held.items()}
    return {
        "n_flows": float(len(joined[FLOWS])),
        **dict.fromkeys(ON_A_DAY.values(), np.nan),
        **{column: float(of.mean()) if len(of) else np.nan for column, of in joined.items()},
        "total_ratio": result.vs_counted.total_ratio,
        "seconds": result.wall_s,
    }


COVERAGE = Table(
    name="coverage",
    title="Intervals of nine in ten of flows from groups: shares that hold what was counted",
    settings=CoverageSettings,
    measure=measure,
    case=("case", "misclassify", "group_size", "seed"),
    groupings=(("case", "misclassify", "group_size"),),
    figures=("n_flows", FLOWS, *SUMS.values(), *ON_A_DAY.values(), "total_ratio", "seconds"),
)
