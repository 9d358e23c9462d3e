"""What is known beside counts: a panel of people who were followed, and an old matrix of trips."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from agg_core.base.errors import InputError
from agg_core.counts.beside import apart_from_panel
from agg_core.counts.old_trips import OldTrips
from agg_core.counts.pairs import CountPairs
from agg_core.counts.panel import area_weights, areas_of, homes_of, panel_of
from agg_core.io import Choices
from agg_core.io.flow_tables import FlowTable, KnownStates, read_flow_table
from agg_core.io.formats.registry import Source
from agg_core.io.opening import open_as
from agg_core.space.areas import AreaGrid
from agg_core.space.shares import shares_in_cells
from agg_core.study.result import OUTSIDE_NAME
from agg_core.tables.counts import MISSING, CountTable
from agg_core.tables.crossings import CrossingTable
from agg_core.tables.sequences import states_of
from agg_core.tables.trajectories import Trajectories

__all__ = [
    "OtherEvidence",
    "beside_sentences",
    "evidence_from",
    "on_cells",
    "panel_states",
    "with_evidence",
    "without_each",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

NIGHT = 5
"""Hour of the local clock up to which people are where they live."""


BIASED = 1.2
"""How much more a person of one area counts for than one of another before that is said."""


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


def evidence_from(
    table: CountTable,
    panel: Source | None = None,
    matrix: Source | None = None,
    zones: AreaGrid | None = None,
) -> OtherEvidence | None:
    """Read what is known beside a table of counts; None where nothing is given.

    ``panel`` are fixes of people, a row per person and time; their clock is that of the counts
    where they do not tell it. ``matrix`` are trips between the cells, or between ``zones`` by their
    names.

    Raises
    ------
    InputError
        If a file cannot be read, zones are given without a matrix, or cells have no places.
    """
    if zones is not None and matrix is None:
        raise InputError(
            "Zones are those of an old matrix; give the matrix too, or leave them out.",
            code="option-unused",
        )
    if panel is None and matrix is None:
        return None
    states = trips = share = None
    if panel is not None:
        people = open_as(panel, Choices(tz=table.timezone))
        assert isinstance(people, Trajectories)
        states = panel_states(people, table)
    if matrix is not None:
        names = table.cells if zones is None else tuple(zones.labels)
        known = KnownStates(
            names, OUTSIDE_NAME, table.slots, table.step.total_seconds() / 60, table.timezone
        )
        trips = read_flow_table(matrix, known)
        if zones is not None:
            trips, share = on_cells(trips, zones, table)
    return OtherEvidence(states, trips, share)


def without_each(
    gates: CrossingTable | None, beside: OtherEvidence | None
) -> dict[str, tuple[CrossingTable | None, OtherEvidence | None]]:
    """What is left of the sources beside counts without each of them, by its name."""
    found: dict[str, tuple[CrossingTable | None, OtherEvidence | None]] = {}
    if gates is not None:
        found["gates"] = None, beside
    known = beside or OtherEvidence()
    if known.panel is not None:
        left = replace(known, panel=None)
        found["panel"] = gates, left if left.matrix is not None else None
    if known.matrix is not None:
        left = replace(known, matrix=None, matrix_zones=None)
        found["matrix"] = gates, left if left.panel is not None else None
    return found


def on_cells(matrix: FlowTable, zones: AreaGrid, table: CountTable) -> tuple[FlowTable, float]:
    """Trips between zones as trips between the cells of counts, and the share that is lost.

    Trips begin, and end, evenly over the area of a zone: of those from zone a to zone b a cell has
    the share of a that lies in it, and so has a cell where they end. Trips that begin or end beyond
    the cells are lost.

    Raises
    ------
    InputError
        If cells have no places, or no zone meets one.
    """
    if table.grid is None:
        raise InputError(
            "A matrix of zones needs cells with places, which these counts have not; name its ends "
            "by the cells, or load counts of cells with coordinates.",
            code="cells-without-place",
        )
    shares = shares_in_cells(zones, table.grid.make())
    rows, n, c = matrix.flows, zones.n_cells, table.n_cells
    parts = []
    for time, mine in rows.loc[(rows["origin"] < n) & (rows["dest"] < n)].groupby("time"):
        of_zones = sparse.csr_array((mine["count"], (mine["origin"], mine["dest"])), shape=(n, n))
        found = sparse.coo_array(shares.T @ of_zones @ shares)
        parts.append(
            pd.DataFrame(
                {"time": time, "origin": found.coords[0], "dest": found.coords[1],
                 "count": found.data, "rows": 1}
            )
        )  # fmt: skip
    columns = ["time", "origin", "dest", "count", "rows"]
    flows = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)
    total, inside = float(rows["count"].sum()), float(flows["count"].sum())
    assert (flows["origin"] < c).all()
    return replace(matrix, flows=flows), 1 - inside / total if total > 0 else 0.0


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
    during = (at >= 0) & (people.time_utc - begins[np.maximum(at, 0)] < step)
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
    n_panel = np.bincount(of_cell[homes[lives]], minlength=n).astype(np.float64)
    n_people = np.bincount(of_cell, people, n).astype(np.float64)
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


def beside_sentences(told: Mapping[str, Any]) -> tuple[str, ...]:
    """What `with_evidence` told, and what that counts for, in words."""
    found = []
    panel, matrix = told.get("panel"), told.get("matrix")
    if panel:
        found.append(
            f"A panel of {panel['people']:,} {'person' if panel['people'] == 1 else 'people'} with "
            f"{panel['moves']:,} moves was known, {100 * panel['share']:.2g} % of all that was "
            f"counted; one of its moves counts for {panel['weight']:g} of those of others."
        )
        if panel["among_counted"]:
            found.append("Its people are taken to be among those who were counted.")
        if panel["beyond_counts"]:
            found.append(
                f"{panel['beyond_counts']:,} of its steps are of more people than were counted in "
                "their cell, and are not taken for known."
            )
        weights = [area["weight"] for area in panel["areas"] if area["people"]]
        if weights and max(weights) > BIASED * min(weights):
            found.append(
                "By where they live its people count for "
                f"{min(weights):.2g} to {max(weights):.2g} each, as the counts tell."
            )
    if matrix:
        said = f"An old matrix of {matrix['trips']:,.0f} trips "
        found.append(
            said + "counts for nothing: with it the counts are not foretold better."
            if not matrix["weight"]
            else said + "tells where people go who leave a cell, as "
            f"{matrix['weight']:g} people per cell would."
        )
        if matrix["share_outside"] is not None:
            found.append(
                "It was split between the cells by area; "
                f"{100 * matrix['share_outside']:.2g} % of its trips lie beyond them."
            )
    return tuple(found)
