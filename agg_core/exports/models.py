"""What was learned and what it was learned from: parameters, observed counts, flows as numbers."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd

from agg_core.base.errors import InputError
from agg_core.exports.tables import csv_bytes, step_times, timed_flows, zip_bytes
from agg_core.study.result import FlowResult
from agg_core.tables.flows import matrix_rows

__all__ = [
    "ensemble_parquet",
    "flows_csv",
    "flows_parquet",
    "has_ensemble",
    "has_observed",
    "observed_csv",
    "parameters_csv",
    "parameters_npz",
]


def flows_csv(result: FlowResult, *times: str) -> bytes:
    """Every flow of `timed_flows` at these moments as a row, the outside and stays too."""
    return csv_bytes(timed_flows(result, times))


def flows_parquet(result: FlowResult) -> bytes:
    """`timed_flows` of every time of day as Parquet, names as they are."""
    target = io.BytesIO()
    timed_flows(result, result.times_of_day).to_parquet(target, index=False)
    return target.getvalue()


def has_ensemble(result: FlowResult) -> bool:
    """Whether flow tables that may have been are kept, of each time of day or of the whole day."""
    return bool(result.times_of_draws)


def ensemble_parquet(result: FlowResult, source: str) -> bytes:
    """Flow tables that may have been, at every time that they are kept of, as Parquet.

    Columns draw (from 0), time, origin, dest, count (people per step, which may be below 0 in a
    single row); a flow that a draw lacks is 0 there. A time is one of day, or the whole day where
    these are too many to keep. Any sum, taken of each draw, tells how sure it is.

    Raises
    ------
    InputError
        If the result has none.
    """
    tables = []
    for time in result.times_of_draws:
        flows = result.draws(time, source)
        if flows is None:
            break
        for draw, table in enumerate(flows):
            # Single flows may lie below 0.
            rows = matrix_rows(table, least=-np.inf)
            rows.insert(0, "draw", draw)
            rows.insert(1, "time", time)
            tables.append(rows)
    if not tables:
        raise InputError(
            "This result has no draws of its flows; choose another export, or learn again with "
            "simulated worlds.",
            code="nothing-to-export",
        )
    target = io.BytesIO()
    pd.concat(tables, ignore_index=True).to_parquet(target, index=False)
    return target.getvalue()


def parameters_npz(result: FlowResult) -> bytes:
    """All that was learned, at every time, as numpy arrays of numbers and text.

    Of a study ``times`` (A,), ``cell_centroids`` (d, 2) longitude and latitude, ``settings`` as
    JSON, and for ``estimate`` and ``single`` their ``_startprob`` (A, S) and ``_transmat``
    (A, S, S); with counts of cells, ``observed_counts`` (A, T, S) too. Of counts ``times`` (H,),
    ``states`` (S,) their names, ``people`` (H, S) on an average day, ``transmat`` (H, S, S), or
    (1, S, S) for all times, ``happened`` (H, S, S) people per step who went from each state to
    each, ``settings``, and ``cell_centroids`` where cells have places. S counts the outside where
    there is one. Of a study with a farthest move in a step ``_transmat`` are (A, n): the data of
    sparse tables (CSR) whose ``indices`` (n,) and ``indptr`` (S + 1,) are there, too.
    """
    arrays = result.parameters()
    grid = result.states.grid
    if grid is not None:
        arrays["cell_centroids"] = grid.centroids
    target = io.BytesIO()
    np.savez_compressed(target, allow_pickle=False, **arrays)
    return target.getvalue()


def parameters_csv(result: FlowResult) -> bytes:
    """A zip of two tables of all that was learned.

    Of a study transitions.csv (time, source, origin, dest, prob) and start.csv, all times; of
    counts transitions.csv (time, origin, dest, prob), chances above 0, and people.csv (time, cell,
    name, people), at all times of day.
    """
    tables = result.parameter_tables()
    return zip_bytes({f"{name}.csv": csv_bytes(table) for name, table in tables.items()})


def has_observed(result: FlowResult) -> bool:
    """Whether a study kept counts of people per cell; one of positions, or of counts, has none."""
    return all(result.observed(time) is not None for time in result.times)


def observed_csv(result: FlowResult, time: str) -> bytes:
    """People counted in each cell at each step after the noise, over all groups.

    Columns time, step, local_time (HH:MM, empty for the whole day), cell, name, count.

    Raises
    ------
    InputError
        If the study observed positions, which have no counts.
    """
    counts = result.observed(time)
    if counts is None:
        raise InputError(
            "This study kept no counts per cell; choose another export, or observe cells.",
            code="nothing-to-export",
        )
    step, cell = np.indices(counts.shape).reshape(2, -1)
    clock = step_times(time, int(result.step_minutes or 0), len(counts))
    names = result.states.names
    return csv_bytes(
        pd.DataFrame(
            {
                "time": time,
                "step": step,
                "local_time": [clock[k] for k in step],
                "cell": cell,
                "name": [names[i] for i in cell],
                "count": counts.ravel(),
            }
        )
    )
