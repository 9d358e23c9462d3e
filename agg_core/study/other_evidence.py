"""What is known beside counts: a panel of people who were followed, and an old matrix of trips."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from agg_core.base.errors import InputError
from agg_core.counts.beside import apart_from_panel
from agg_core.counts.old_trips import OldTrips
from agg_core.counts.pairs import CountPairs
from agg_core.counts.panel import area_weights, areas_of, homes_of, panel_of
from agg_core.io.flow_tables import FlowTable
from agg_core.tables.counts import MISSING, CountTable
from agg_core.tables.sequences import states_of
from agg_core.tables.trajectories import Trajectories

__all__ = ["OtherEvidence", "panel_states", "with_evidence"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

NIGHT = 5
"""Hour of the local clock up to which people are where they live."""


@dataclass(frozen=True)
class OtherEvidence:
    """A panel and an old matrix beside a table of counts of c cells at T moments.

    Attributes
    ----------
    panel : (T, K) cell that each person of the panel is in at each moment, c outside of all cells,
        -1 where that is not known; None without a panel
    matrix : trips between the cells, and between them and the outside, whose times of day are those
        of the counts; None without one
    matrix_zones : the share of the trips of a matrix of other zones that lies in none of the cells
    """

    panel: IntArray | None = None
    matrix: FlowTable | None = None
    matrix_zones: float | None = None


def panel_states(people: Trajectories, table: CountTable) -> IntArray:
    """The cell (T, K) of each of K people at each of T moments of a table of counts.

    As in counts of trajectories it is that of the last fix before the next moment, which is a step
    later. Where a person has none it is -1, and outside of all cells it is their number.

    Raises
    ------
    InputError
        If cells have no places.
    """
    if table.grid is None:
        raise InputError(
            "A panel needs cells with places, which these counts have not; load counts of a mesh "
            "or of cells with coordinates.",
            code="cells-without-place",
        )
    state = states_of(table.grid.make(), people.table["lon"], people.table["lat"])
    begins = table.times.tz_convert("UTC").tz_localize(None).to_numpy().astype("datetime64[us]")
    at = np.searchsorted(begins, people.time_utc, side="right") - 1
    step = np.timedelta64(round(table.step.total_seconds() * 1e6), "us")
    during = (at >= 0) & (people.time_utc < begins[np.maximum(at, 0)] + step)
    states = np.full((len(begins), len(people.user_ids)), -1, dtype=np.int64)
    # Fixes of a person are in order of time: the last one stays.
    states[at[during], people.user_codes[during]] = state[during]
    return states


def with_evidence(
    pairs: CountPairs, table: CountTable, other: OtherEvidence, expansion: float = 1.0
) -> tuple[CountPairs, dict[str, Any]]:
    """Pairs with a panel and trips of an old matrix, and what is to be told of both.

    ``expansion`` people stand behind each one who was counted; unless it is one, who of the panel
    was counted is not known.

    Raises
    ------
    InputError
        If nobody of the panel is there at two successive moments, or no trip is between two cells.
    """
    told: dict[str, Any] = {}
    if other.panel is not None:
        pairs, told["panel"] = _with_panel(pairs, table, other.panel, expansion)
    if other.matrix is not None:
        pairs, told["matrix"] = _with_matrix(pairs, other.matrix, other.matrix_zones)
    return pairs, told


def _with_panel(
    pairs: CountPairs, table: CountTable, states: IntArray, expansion: float
) -> tuple[CountPairs, dict[str, Any]]:
    assert pairs.moment is not None
    c = table.n_cells
    known = states if pairs.has_outside else np.where(states == c, -1, states)
    panel = panel_of(known, pairs.moment)
    weights, areas = _weighed(table, np.where(states == c, -1, states))
    panel = replace(panel, weights=weights, among=expansion == 1)
    found = replace(pairs, panel=panel)
    taken = apart_from_panel(found)
    told = {
        "people": panel.n_people,
        "moves": int((panel.origin != panel.dest).sum()),
        "steps": panel.n_moves,
        "share": panel.n_moves / max(float(pairs.before.sum()) * expansion, 1.0),
        "among_counted": taken.panel is not None,
        "beyond_counts": taken.n_beyond,
        "areas": areas,
    }
    return found, told


def _weighed(table: CountTable, states: IntArray) -> tuple[FloatArray, list[dict[str, Any]]]:
    """What people of a panel count for, (K,), by the area in which they live; what areas there are.

    ``states`` (T, K) are cells, -1 where nothing is known.
    """
    hours = [label[:2] for label in table.slots]
    at_night = np.array([hour.isdigit() and int(hour) < NIGHT for hour in hours])[table.slot]
    homes = homes_of(states, at_night)
    known = ~(table.status == MISSING).any(axis=1)
    counts = np.nan_to_num(table.counts)
    living = at_night & known
    if not living.any():
        # Then people live where they are first.
        living = np.r_[True, np.diff(table.sequence) != 0] & known
    people = counts[living].sum(axis=0) if living.any() else counts.sum(axis=0)
    places = None if table.grid is None else table.grid.make().centroids_m
    of_cell = areas_of(people, places, int((homes >= 0).sum()))
    n = int(of_cell.max()) + 1
    lives = homes >= 0
    n_panel = np.bincount(of_cell[homes[lives]], minlength=n).astype(float)
    n_people = np.bincount(of_cell, people, n)
    by_area = area_weights(n_panel, n_people)
    weights = np.ones(states.shape[1])
    weights[lives] = by_area[of_cell[homes[lives]]]
    areas = [
        {
            "cells": int((of_cell == area).sum()),
            "largest": table.cells[int(np.argmax(np.where(of_cell == area, people, -1.0)))],
            "people": int(n_panel[area]),
            "weight": round(float(by_area[area]), 4),
        }
        for area in range(n)
        if (of_cell == area).any()
    ]
    return weights, areas


def _with_matrix(
    pairs: CountPairs, matrix: FlowTable, zones: float | None
) -> tuple[CountPairs, dict[str, Any]]:
    rows, d = matrix.flows, pairs.n_states
    n_times = len(pairs.slots) if matrix.times else 1
    trips = np.zeros((n_times, d, d))
    inside = (rows["origin"] < d) & (rows["dest"] < d)
    moved = rows.loc[inside & (rows["origin"] != rows["dest"])]
    np.add.at(trips, (moved["time"], moved["origin"], moved["dest"]), moved["count"])
    if not trips.sum() > 0:
        raise InputError(
            "The old matrix holds no trip between two of these cells; name origin and dest as the "
            "counts do, or say which zones they are.",
            code="matrix-without-trips",
        )
    told: dict[str, Any] = {
        "trips": float(trips.sum()),
        "by_time": bool(matrix.times),
        "within": float(rows.loc[rows["origin"] == rows["dest"], "count"].sum()),
        "share_outside": zones,
        "set_aside": dict(matrix.set_aside),
    }
    return replace(pairs, old_trips=OldTrips.of(trips)), told
