"""How many of a thousand real people are followed through their counts, by cell size and limit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from agg_core.evidence.attack import attack
from agg_core.io import read_trajectories
from agg_core.learn.estimator import AggregateHMM
from agg_core.model.aggregates import aggregate
from agg_core.model.hmm import distance_decay_transmat
from agg_core.space.grid import BaseGrid
from agg_core.space.settings import GridSettings
from agg_core.tables.flows import count_matrix
from agg_core.tables.sequences import Sequences, to_sequences
from agg_core.tables.trajectories import Trajectories
from benchmarks.group_sizes.tables import Row, real_data

__all__ = ["ATTACKS", "AttackSettings", "measure", "measure_people"]

ATTACKS = ("distance", "heading", "learned", "true moves")
"""By what people are assigned: distance alone, where they are heading, the chances of moves that
were learned from groups, and those that were counted person by person, which nobody publishes."""


@dataclass(frozen=True)
class AttackSettings:
    """What is measured; each seed draws the groups, and which of equal ways is taken.

    ``sides`` are the cells along a side of the box, ``least`` the people below which counts are
    withheld.
    """

    attacks: tuple[str, ...] = ATTACKS
    n_seeds: int = 3
    sides: tuple[int, ...] = (20, 10, 5, 2)
    least: tuple[float, ...] = (0, 3, 10)
    bounds: tuple[float, float, float, float] = (139.68, 35.65, 139.80, 35.75)
    step_minutes: int = 20
    length: int = 30
    start: str = "09:00"
    group_size: int = 20
    iterations: int = 30


def measure(settings: AttackSettings) -> Iterator[Row]:
    """A row for each cell size, limit, attack and seed."""
    path = real_data("tokyo_people_flow/tokyo_1000users_20min.csv")
    yield from measure_people(read_trajectories(path, where={"full_day": "1"}), settings)


def measure_people(people: Trajectories, settings: AttackSettings) -> Iterator[Row]:
    """The same for any people."""
    for side, seed in product(settings.sides, range(settings.n_seeds)):
        grid = GridSettings(*settings.bounds, side, side).make()
        cut = to_sequences(
            people, grid, f"{settings.step_minutes}min", settings.length, start=settings.start
        )
        # Nobody can be assigned by distance to where there is no place.
        found = cut.without((cut.states == cut.n_cells).any(axis=1), "outside")
        for name in settings.attacks:
            how = _how(name, found, grid, settings, seed)
            for least in settings.least:
                told = attack(
                    found.states, grid.n_cells, least_people=least, random_state=seed, **how
                )
                case = {"cells": side**2, "least_people": least, "attack": name, "seed": seed}
                yield {**case, **asdict(told)}


def _how(
    name: str, people: Sequences, grid: BaseGrid, settings: AttackSettings, seed: int
) -> dict[str, Any]:
    """By what an attack assigns people."""
    if name == "learned":
        return {"transmat": _learned(people, grid, settings, seed)}
    if name == "true moves":
        moves = count_matrix(people)
        leaving = moves.sum(axis=1, keepdims=True)
        return {"transmat": moves / np.where(leaving > 0, leaving, 1)}
    return {"places_m": grid.centroids_m, "heading": name == "heading"}


def _learned(
    people: Sequences, grid: BaseGrid, settings: AttackSettings, seed: int
) -> npt.NDArray[np.float64]:
    """Chances of moves that were learned from groups without noise."""
    d = grid.n_cells
    start = distance_decay_transmat(grid)
    groups = aggregate(people.states, settings.group_size, d, seed)
    model = AggregateHMM(
        n_states=d, n_iter=settings.iterations, fixed=("emission",), random_state=seed,
        init={"startprob": [1 / d] * d, "transmat": start, "emissionprob": np.eye(d)},
    )  # fmt: skip
    return np.asarray(model.fit(groups).transmat_)
