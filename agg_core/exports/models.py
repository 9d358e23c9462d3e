"""What was learned and what it was learned from: parameters, observed counts, flows as numbers."""

from __future__ import annotations

import io
import json

import numpy as np
import numpy.typing as npt
import pandas as pd

from agg_core.errors import InputError
from agg_core.exports.tables import cell_names, csv_bytes, step_times, wide_flows, zip_bytes
from agg_core.study import StudyResult

__all__ = [
    "LEARNED",
    "flows_csv",
    "has_observed",
    "observed_csv",
    "parameters_csv",
    "parameters_npz",
]

LEARNED = ("estimate", "single")
"""The sources that have parameters."""


def flows_csv(result: StudyResult, anchor: str) -> bytes:
    """Every flow of `wide_flows` as a row, the outside and stays too."""
    return csv_bytes(wide_flows(result, anchor))


def parameters_npz(result: StudyResult) -> bytes:
    """All that was learned, at every anchor, as numpy arrays of numbers and text.

    ``anchors`` (A,), ``cell_centroids`` (d, 2) longitude and latitude, ``settings`` as JSON, and
    for ``estimate`` and ``single`` their ``_startprob`` (A, S) and ``_transmat`` (A, S, S); with
    counts of blocks, ``observed_counts`` (A, T, S) too. S counts the outside where there is one.
    """
    arrays: dict[str, npt.NDArray[np.generic]] = {
        "anchors": np.array([a.anchor for a in result.anchors]),
        "cell_centroids": result.settings.grid.make().centroids,
        "settings": np.array(json.dumps(result.settings.to_dict(), sort_keys=True)),
    }
    for source in LEARNED:
        fits = [a.fit(source) for a in result.anchors]
        arrays[f"{source}_startprob"] = np.stack([fit.startprob for fit in fits])
        arrays[f"{source}_transmat"] = np.stack([fit.transmat for fit in fits])
    observed = [a.observed for a in result.anchors if a.observed is not None]
    if observed:
        arrays["observed_counts"] = np.stack(observed)
    target = io.BytesIO()
    np.savez_compressed(target, allow_pickle=False, **arrays)
    return target.getvalue()


def parameters_csv(result: StudyResult) -> bytes:
    """A zip of transitions.csv (anchor, source, origin, dest, prob) and start.csv, all anchors."""
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


def has_observed(result: StudyResult) -> bool:
    """Whether the study kept counts of people per block; positions have none."""
    return all(a.observed is not None for a in result.anchors)


def observed_csv(result: StudyResult, anchor: str) -> bytes:
    """People counted in each block at each step after the noise, over all groups.

    Columns anchor, step, time (local HH:MM, empty for the whole day), cell, name, count.

    Raises
    ------
    InputError
        If the study observed positions, which have no counts.
    """
    counts = next(a.observed for a in result.anchors if a.anchor == anchor)
    if counts is None:
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
