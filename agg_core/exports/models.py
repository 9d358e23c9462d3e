"""What was learned and what it was learned from: parameters, observed counts, flows as numbers."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pandas as pd

from agg_core.base.errors import InputError
from agg_core.exports.tables import csv_bytes, step_times, timed_flows, zip_bytes
from agg_core.study.counts import CountStudy
from agg_core.study.people import StudyResult
from agg_core.study.results import WHOLE_DAY, Result, cell_names, grid_of, times_of

__all__ = [
    "LEARNED",
    "flows_csv",
    "flows_parquet",
    "has_observed",
    "observed_csv",
    "parameters_csv",
    "parameters_npz",
]

Arrays = dict[str, npt.NDArray[np.generic]]

LEARNED = ("estimate", "single")
"""The sources that have parameters."""


def flows_csv(result: Result, *anchors: str) -> bytes:
    """Every flow of `timed_flows` at these moments as a row, the outside and stays too."""
    return csv_bytes(timed_flows(result, anchors))


def flows_parquet(result: Result) -> bytes:
    """`timed_flows` of every time of day as Parquet, names as they are."""
    target = io.BytesIO()
    timed_flows(result, times_of(result)).to_parquet(target, index=False)
    return target.getvalue()


def parameters_npz(result: Result) -> bytes:
    """All that was learned, at every time, as numpy arrays of numbers and text.

    Of a study ``anchors`` (A,), ``cell_centroids`` (d, 2) longitude and latitude, ``settings`` as
    JSON, and for ``estimate`` and ``single`` their ``_startprob`` (A, S) and ``_transmat``
    (A, S, S); with counts of blocks, ``observed_counts`` (A, T, S) too. Of counts ``times`` (H,),
    ``states`` (S,) their names, ``people`` (H, S) on an average day, ``transmat`` (H, S, S), or
    (1, S, S) for all times, ``settings``, and ``cell_centroids`` where cells have places. S counts
    the outside where there is one.
    """
    arrays = _arrays_of_study(result) if isinstance(result, StudyResult) else _arrays(result)
    grid = grid_of(result)
    if grid is not None:
        arrays["cell_centroids"] = grid.centroids
    target = io.BytesIO()
    np.savez_compressed(target, allow_pickle=False, **arrays)
    return target.getvalue()


def _arrays_of_study(result: StudyResult) -> Arrays:
    arrays: Arrays = {
        "anchors": np.array([a.anchor for a in result.anchors]),
        "settings": np.array(json.dumps(result.settings.to_dict(), sort_keys=True)),
    }
    for source in LEARNED:
        fits = [a.fit(source) for a in result.anchors]
        arrays[f"{source}_startprob"] = np.stack([fit.startprob for fit in fits])
        arrays[f"{source}_transmat"] = np.stack([fit.transmat for fit in fits])
    observed = [a.observed for a in result.anchors if a.observed is not None]
    if observed:
        arrays["observed_counts"] = np.stack(observed)
    return arrays


def _arrays(study: CountStudy) -> Arrays:
    return {
        "times": np.array(study.slots),
        "states": np.array(cell_names(study)),
        "people": study.people,
        "transmat": study.transmats,
        "settings": np.array(json.dumps(study.settings.to_dict(), sort_keys=True)),
    }


def parameters_csv(result: Result) -> bytes:
    """A zip of two tables of all that was learned.

    Of a study transitions.csv (anchor, source, origin, dest, prob) and start.csv, all anchors; of
    counts transitions.csv (time, origin, dest, prob), chances above 0, and people.csv (time, cell,
    name, people), at all times of day.
    """
    if isinstance(result, CountStudy):
        return zip_bytes({f"{name}.csv": csv_bytes(table) for name, table in _tables(result)})
    starts, moves = [], []
    origin, dest = np.indices((result.n_states, result.n_states)).reshape(2, -1)
    for anchor in result.anchors:
        for source in LEARNED:
            fit = anchor.fit(source)
            about = {"anchor": anchor.anchor, "source": source}
            cells = np.arange(result.n_states)
            starts.append(pd.DataFrame({**about, "cell": cells, "prob": fit.startprob}))
            probs = fit.transmat.ravel()
            moves.append(pd.DataFrame({**about, "origin": origin, "dest": dest, "prob": probs}))
    return zip_bytes(
        {
            "transitions.csv": csv_bytes(pd.concat(moves)),
            "start.csv": csv_bytes(pd.concat(starts)),
        }
    )


def _tables(study: CountStudy) -> Iterator[tuple[str, pd.DataFrame]]:
    times = np.array(study.slots if len(study.transmats) > 1 else (WHOLE_DAY,), dtype=object)
    at, origin, dest = np.nonzero(study.transmats)
    probs = study.transmats[at, origin, dest]
    yield (
        "transitions",
        pd.DataFrame({"time": times[at], "origin": origin, "dest": dest, "prob": probs}),
    )
    slot, cell = np.indices(study.people.shape).reshape(2, -1)
    slots, names = (np.array(texts, dtype=object) for texts in (study.slots, cell_names(study)))
    yield (
        "people",
        pd.DataFrame(
            {"time": slots[slot], "cell": cell, "name": names[cell], "people": study.people.ravel()}
        ),
    )


def has_observed(result: Result) -> bool:
    """Whether a study kept counts of people per block; one of positions, or of counts, has none."""
    return isinstance(result, StudyResult) and all(a.observed is not None for a in result.anchors)


def observed_csv(result: Result, anchor: str) -> bytes:
    """People counted in each block at each step after the noise, over all groups.

    Columns anchor, step, time (local HH:MM, empty for the whole day), cell, name, count.

    Raises
    ------
    InputError
        If the study observed positions, which have no counts.
    """
    counts = result.at(anchor).observed if isinstance(result, StudyResult) else None
    if counts is None or isinstance(result, CountStudy):
        raise InputError(
            "This study kept no counts per block; choose another export, or observe blocks."
        )
    step, cell = np.indices(counts.shape).reshape(2, -1)
    times = step_times(anchor, result.settings.window.step_minutes, len(counts))
    names = cell_names(result)
    return csv_bytes(
        pd.DataFrame(
            {
                "anchor": anchor,
                "step": step,
                "time": [times[k] for k in step],
                "cell": cell,
                "name": [names[i] for i in cell],
                "count": counts.ravel(),
            }
        )
    )
