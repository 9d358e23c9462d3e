"""Flows as matrices from every state to every state: CSV, and OMX for transport models."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from agg_core.exports.tables import csv_bytes
from agg_core.study.result import ESTIMATE, FlowResult

__all__ = ["UNITS", "od_csv", "omx", "omx_times"]

UNITS = "people per step"

Matrices = Mapping[str, tuple[npt.NDArray[np.float64], str]]
"""Matrices by name, each with the moment that it is of."""


def od_csv(result: FlowResult, time: str, source: str = ESTIMATE) -> bytes:
    """Square CSV of people per step: origins down, destinations across, stays on the diagonal.

    The outside, where the result has one, is the last row and column.
    """
    names = result.states.names
    table = pd.DataFrame(result.matrix(time, source), columns=names)
    table.insert(0, "origin", names)
    return csv_bytes(table)


def omx(result: FlowResult, time: str) -> bytes:
    """An OMX file with a matrix for each of `FlowResult.value_columns`, and cells by number.

    Each matrix has the attributes time, units and, of a study, step_minutes. The outside, where
    the result has one, is the last row and column; its number is the number of cells. HDF5 keeps
    the time of writing, so equal results give equal contents, not equal bytes.
    """
    of_time = result.matrices(time)
    return _omx(result, {name: (matrix, time) for name, matrix in of_time.items()})


def omx_times(result: FlowResult, source: str = ESTIMATE) -> bytes:
    """An OMX file with a matrix of one source for each time of day; otherwise as `omx`.

    A matrix is named after its time in letters and digits, as ``at_08_00``.
    """
    matrices: dict[str, tuple[npt.NDArray[np.float64], str]] = {}
    for number, time in enumerate(result.times_of_day):
        name = f"at_{re.sub('[^0-9A-Za-z]+', '_', time).strip('_')}"
        unique = name if name not in matrices else f"{name}_{number}"
        matrices[unique] = result.matrix(time, source), time
    return _omx(result, matrices)


def _omx(result: FlowResult, matrices: Matrices) -> bytes:
    import openmatrix  # type: ignore[import-untyped]  # noqa: PLC0415  # it has no types

    about: dict[str, Any] = {"units": UNITS}
    if result.step_minutes is not None:
        about["step_minutes"] = np.float64(result.step_minutes)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "flows.omx"
        with openmatrix.open_file(str(path), "w") as file:
            for name, (matrix, time) in matrices.items():
                file.create_matrix(name, obj=matrix, attrs={**about, "time": time})
            file.create_mapping("cell", np.arange(len(result.states.names)))
        return path.read_bytes()
