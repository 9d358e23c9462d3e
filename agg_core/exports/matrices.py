"""Flows as matrices from every state to every state: CSV, and OMX for transport models."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from agg_core.exports.tables import cell_names, csv_bytes, od_matrix
from agg_core.study import SOURCES, StudyResult

__all__ = ["UNITS", "od_csv", "omx"]

UNITS = "people per step"


def od_csv(result: StudyResult, anchor: str, source: str = "estimate") -> bytes:
    """Square CSV of people per step: origins down, destinations across, stays on the diagonal.

    The outside, where the study has one, is the last row and column.
    """
    names = cell_names(result)
    table = pd.DataFrame(od_matrix(result, anchor, source), columns=names)
    table.insert(0, "origin", names)
    return csv_bytes(table)


def omx(result: StudyResult, anchor: str) -> bytes:
    """An OMX file with a matrix for each of `SOURCES` and the numbers of the cells as ``cell``.

    Each matrix has the attributes anchor, step_minutes and units. The outside, where the study has
    one, is the last row and column; its number is the number of cells. HDF5 keeps the time of
    writing, so equal results give equal contents, not equal bytes.
    """
    import openmatrix  # type: ignore[import-untyped]  # noqa: PLC0415  # it has no types

    about = {
        "anchor": anchor,
        "step_minutes": np.int64(result.settings.window.step_minutes),
        "units": UNITS,
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "flows.omx"
        with openmatrix.open_file(str(path), "w") as file:
            for source in SOURCES:
                file.create_matrix(source, obj=od_matrix(result, anchor, source), attrs=about)
            file.create_mapping("cell", np.arange(result.n_states))
        return path.read_bytes()
