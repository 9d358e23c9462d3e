"""Flows as matrices from every state to every state: CSV, and OMX for transport models."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from agg_core.base.errors import InputError
from agg_core.base.moves import AnyMoves, whole
from agg_core.exports.tables import csv_bytes
from agg_core.study.result import ESTIMATE, FlowResult

__all__ = [
    "UNITS",
    "check_omx",
    "check_sheet",
    "fits_in_omx",
    "fits_in_sheet",
    "od_csv",
    "omx",
    "omx_times",
    "write_omx",
]

UNITS = "people per step"

MOST_OF_SHEET, MOST_OF_OMX = 5_000, 20_000
"""States of which a square table of text, or matrices of OMX, are still of use."""

ROWS_AT_ONCE = 256
"""Rows of a sparse matrix that are made whole at once, to be written."""

Matrices = Mapping[str, tuple[AnyMoves, str]]
"""Matrices by name, each with the moment that it is of."""


def fits_in_sheet(result: FlowResult) -> bool:
    """Whether a square table has few enough rows and columns to be of use."""
    return len(result.states.names) <= MOST_OF_SHEET


def fits_in_omx(result: FlowResult) -> bool:
    """Whether a matrix has few enough rows and columns for OMX, which holds whole ones."""
    return len(result.states.names) <= MOST_OF_OMX


def check_sheet(result: FlowResult) -> None:
    """Refuse a square table of more than `MOST_OF_SHEET` states.

    Raises
    ------
    InputError
        If there are as many.
    """
    _check(result, MOST_OF_SHEET)


def check_omx(result: FlowResult) -> None:
    """Refuse matrices of more than `MOST_OF_OMX` states.

    Raises
    ------
    InputError
        If there are as many.
    """
    _check(result, MOST_OF_OMX)


def _check(result: FlowResult, most: int) -> None:
    n = len(result.states.names)
    if n > most:
        raise InputError(
            f"A table from every one of {n:,} cells to every other is too large to be of use, "
            f"which is so above {most:,}; take the flows as a table, which lists those of "
            "somebody alone.",
            code="too-many-cells",
        )


def od_csv(result: FlowResult, time: str, source: str = ESTIMATE) -> bytes:
    """Square CSV of people per step: origins down, destinations across, stays on the diagonal.

    The outside, where the result has one, is the last row and column. What is withheld of a limited
    result is empty.

    Raises
    ------
    InputError
        If there are more than `MOST_OF_SHEET` states.
    """
    check_sheet(result)
    names = result.states.names
    table = pd.DataFrame(whole(result.matrix(time, source)), columns=names)
    table.insert(0, "origin", names, allow_duplicates=True)
    return csv_bytes(table)


def omx(result: FlowResult, time: str) -> bytes:
    """An OMX file with a matrix for each of `FlowResult.value_columns`, and cells by number.

    Each matrix has the attributes time, units and, of a study, step_minutes. The outside, where
    the result has one, is the last row and column; its number is the number of cells. HDF5 keeps
    the time of writing, so equal results give equal contents, not equal bytes. Moves beyond the
    reach of a study are 0, like those of nobody; what is withheld of a limited result is nan, and
    the attribute limit says what was done.

    Raises
    ------
    InputError
        If there are more than `MOST_OF_OMX` states.
    """
    of_time = result.matrices(time)
    return write_omx(result, {name: (matrix, time) for name, matrix in of_time.items()})


def omx_times(result: FlowResult, source: str = ESTIMATE) -> bytes:
    """An OMX file with a matrix of one source for each time of day; otherwise as `omx`.

    A matrix is named after its time in letters and digits, as ``at_08_00``.

    Raises
    ------
    InputError
        If there are more than `MOST_OF_OMX` states.
    """
    matrices: dict[str, tuple[AnyMoves, str]] = {}
    for number, time in enumerate(result.times_of_day):
        name = f"at_{re.sub('[^0-9A-Za-z]+', '_', time).strip('_')}"
        unique = name if name not in matrices else f"{name}_{number}"
        matrices[unique] = result.matrix(time, source), time
    return write_omx(result, matrices)


def write_omx(
    result: FlowResult, matrices: Matrices, more: Mapping[str, Any] | None = None
) -> bytes:
    """An OMX file of matrices by name, with cells by number and the attributes of `omx`.

    ``more`` are further attributes of each matrix.

    Raises
    ------
    InputError
        If there are more than `MOST_OF_OMX` states.
    """
    import openmatrix  # type: ignore[import-untyped]  # noqa: PLC0415  # it has no types

    check_omx(result)
    about: dict[str, Any] = {"units": UNITS, **(more or {})}
    if result.step_minutes is not None:
        about["step_minutes"] = np.float64(result.step_minutes)
    if result.limit_words:
        about["limit"] = result.limit_words
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "flows.omx"
        with openmatrix.open_file(str(path), "w") as file:
            for name, (matrix, time) in matrices.items():
                attributes = {**about, "time": time}
                if isinstance(matrix, np.ndarray):
                    file.create_matrix(name, obj=matrix, attrs=attributes)
                    continue
                zero = openmatrix.tables.Float64Atom()
                rows = file.create_matrix(name, zero, shape=matrix.shape, attrs=attributes)
                for first in range(0, matrix.shape[0], ROWS_AT_ONCE):
                    here = slice(first, first + ROWS_AT_ONCE)
                    rows[here] = matrix[here].toarray()
            file.create_mapping("cell", np.arange(len(result.states.names)))
        return path.read_bytes()
