"""The story that the Lab tells a class: how people on their way become counts, and flows again.

It is the city of `agg_core.lab.teaching`: the same people, noise and groups that its flows were
learned from.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from agg_core.base.clock import later_on_the_clock
from agg_core.lab.teaching import TEACHING_TIME, TeachingResult, sample_people
from agg_core.learn.table import PAPERS
from agg_core.space.grid import BaseGrid
from agg_core.study.people import observed_at

__all__ = ["GROUP_SIZE", "Morning", "morning"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

GROUP_SIZE = 20
"""People in the groups that the story forms, and the group size that its flows begin with."""

N_SHOWN = 400
"""People who are dots: more of them hide each other."""

ROOM = 0.8
"""Share of a cell's sides over which the people in it are strewn."""


@dataclass(frozen=True)
class Morning:
    """What is known of people at each stage, and of a few of them where they are.

    N people, of whom n are shown, T times, d cells.

    Parameters
    ----------
    grid
        The cells.
    clock
        Local time of each step, (T,), HH:MM.
    states, reported
        Cell of each person, and the one in which they are counted once noise is added, (N, T);
        d is outside of all cells.
    shown
        Numbers of the people who are shown, (n,).
    places
        Longitude and latitude of those who are shown, in degrees, (n, T, 2).
    within
        Where in their cells they are drawn, as shares of its sides from south-west, (n, 2).
    group
        People of one group counted in each cell, (T, d).
    n_groups
        Number of groups.
    misclassify
        The chance with which a person is counted in a neighbour cell.
    """

    grid: BaseGrid
    clock: tuple[str, ...]
    states: IntArray
    reported: IntArray
    shown: IntArray
    places: FloatArray
    within: FloatArray
    group: FloatArray
    n_groups: int
    misclassify: float

    @property
    def moves(self) -> float:
        """People per step who go to another cell."""
        return _moves(self.states)

    @property
    def seeming_moves(self) -> float:
        """People per step who are counted in another cell than before."""
        return _moves(self.reported)

    @property
    def movers(self) -> BoolArray:
        """Which of those who are shown go to another cell at some time, (n,)."""
        return _move(self.states[self.shown])

    @property
    def misplaced(self) -> BoolArray:
        """Which of those who are shown are counted in a wrong cell at some time, (n,)."""
        return np.asarray(
            (self.states[self.shown] != self.reported[self.shown]).any(axis=1), dtype=np.bool_
        )

    def in_cells(self, states: IntArray) -> FloatArray:
        """Those who are shown, strewn over the cells of ``states``, (n, T, 2), degrees.

        Who is outside of all cells stays at the true place.
        """
        d = self.grid.n_cells
        west, south, east, north = self.grid.cell_bounds[np.minimum(states[self.shown], d - 1)].T
        share = self.within.T[:, None, :]
        lon = west + (east - west) * share[0]
        lat = south + (north - south) * share[1]
        inside = (states[self.shown] < d)[..., None]
        return np.where(inside, np.stack([lon.T, lat.T], axis=-1), self.places)


def morning(result: TeachingResult, group_size: int = GROUP_SIZE) -> Morning:
    """The people, their reports and one group of those whom a teaching view learned from."""
    settings = result.settings
    people = sample_people(settings.n_people)
    study = settings.study(PAPERS, group_size)
    part, reported, groups = observed_at(people, study, TEACHING_TIME)
    grid = study.grid.make()
    rng = np.random.default_rng(settings.seed)
    n = len(part)
    shown = np.sort(rng.choice(n, size=min(N_SHOWN, n), replace=False))
    lon, lat = (people.table[name].to_numpy()[part.fixes[shown]] for name in ("lon", "lat"))
    minutes = settings.study(PAPERS, 1).window.step_minutes
    return Morning(
        grid=grid,
        clock=tuple(
            later_on_the_clock(TEACHING_TIME, step * minutes) for step in range(part.length)
        ),
        states=part.states,
        reported=reported,
        shown=shown,
        places=np.stack([lon, lat], axis=-1),
        within=0.5 + ROOM * (rng.random((len(shown), 2)) - 0.5),
        group=groups.take([0]).to_dense()[0][:, : grid.n_cells],
        n_groups=groups.n_sequences,
        misclassify=study.learn.misclassify,
    )


def _moves(states: IntArray) -> float:
    return float((states[:, 1:] != states[:, :-1]).sum() / (states.shape[1] - 1))


def _move(states: IntArray) -> BoolArray:
    return np.asarray((states[:, 1:] != states[:, :-1]).any(axis=1), dtype=np.bool_)
