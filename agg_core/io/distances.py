"""Tables of distances between known cells: OMX, a square table, or one row for each pair."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import PurePath

import numpy as np
import numpy.typing as npt

from agg_core.base.errors import InputError
from agg_core.base.report import printable
from agg_core.io.counts.values import coded
from agg_core.io.formats.registry import Source
from agg_core.io.guess.columns import ColumnFinder
from agg_core.io.known_tables import open_table
from agg_core.io.source import RawSource, show_names

__all__ = ["ROLES", "read_distances"]

FloatArray = npt.NDArray[np.float64]

ROLES = {
    "origin": ("origin", "from", "o", "i", "origincell", "fromcell", "originzone", "fromzone"),
    "dest": ("dest", "destination", "to", "d", "j", "destcell", "tocell", "destzone", "tozone"),
    "origin_number": ("originnumber",),
    "dest_number": ("destnumber",),
    "km": ("km", "distancekm", "distkm", "lengthkm", "distance", "dist", "length", "count"),
}
"""Spellings of each column's name, in order of preference, as `plain_name` writes them."""


def read_distances(source: Source, cells: Sequence[str], filename: str | None = None) -> FloatArray:
    """Kilometres (d, d) from each of some cells to each.

    OMX with one matrix; a square table, with a row and a column for each cell by name, or of as
    many numbers in the order of the cells; or rows of origin, dest and km. Who stays goes 0 km
    where nothing else is said, and OMX leaves out zeros.

    Raises
    ------
    InputError
        If the file cannot be read, names no cell, or a pair has no distance.
    """
    given = filename or (source if isinstance(source, str | PathLike) else None)
    name = "The table" if given is None else printable(PurePath(given).name)
    table = open_table(source, name)
    at = {label: number for number, label in enumerate(cells)}
    finder = ColumnFinder(table, ROLES)
    finder.look_for("origin", "dest", "km")
    if not {"origin", "dest"} <= finder.positions.keys():
        finder.look_for("origin_number", "dest_number")
    by_number = {"origin_number", "dest_number", "km"} <= finder.positions.keys()
    if by_number:
        at = {str(number): number for number in range(len(cells))}
    if by_number or {"origin", "dest", "km"} <= finder.positions.keys():
        km = _of_pairs(table, finder.positions, at, "matrix" in table.names, name)
    else:
        km = _of_square(table, at, name)
    empty = np.isnan(km)
    if empty.any():
        origin, dest = (int(number) for number in np.argwhere(empty)[0])
        raise InputError(
            f"{name} has no distance from {printable(cells[origin])} to {printable(cells[dest])}, "
            f"and of {int(empty.sum()):,} pairs in all; give kilometres for every pair.",
            code="distance-missing",
        )
    if not (np.isfinite(km).all() and (km >= 0).all()):
        raise InputError(
            f"{name} has distances that are negative or endless; give kilometres from 0 on.",
            code="distance-missing",
        )
    return km


def _of_pairs(
    table: RawSource, positions: dict[str, int], at: dict[str, int], is_omx: bool, name: str
) -> FloatArray:
    km = np.full((len(at), len(at)), 0.0 if is_omx else np.nan)
    np.fill_diagonal(km, 0.0)
    ends = [next(positions[r] for r in (end, f"{end}_number") if r in positions)
            for end in ("origin", "dest")]  # fmt: skip
    matrix = table.names.index("matrix") if is_omx else None
    matrices: set[str] = set()
    some = False
    for rows in table.batches([*ends, positions["km"], *([] if matrix is None else [matrix])]):
        origin, dest = (
            np.array([at.get(text, -1) for text in found.texts], dtype=np.int64)[found.codes]
            for found in (coded(rows.columns[end]) for end in ends)
        )
        values = coded(rows.columns[positions["km"]])
        numbers = np.array([_number(text) for text in values.texts])[values.codes]
        here = (origin >= 0) & (dest >= 0)
        some = some or bool(here.any())
        km[origin[here], dest[here]] = numbers[here]
        if matrix is not None:
            matrices |= set(coded(rows.columns[matrix]).texts) - {""}
    if len(matrices) > 1:
        raise InputError(
            f"{name} holds several matrices; keep the one with distances in kilometres.",
            code="several-matrices",
        )
    if not some:
        raise InputError(
            f"{name} names no cell of these flows as origin or dest; name them as the cells are.",
            code="unknown-cells",
        )
    return km


def _of_square(table: RawSource, at: dict[str, int], name: str) -> FloatArray:
    """A row and a column for each cell, by name, or all in order."""
    columns = [number for number, label in enumerate(table.names) if label.strip() in at]
    named = table.has_header and len(columns) == len(at)
    if not named and len(table.names) != len(at):
        raise InputError(
            f"{name} is no table of distances between these {len(at):,} cells: its columns are "
            f"{show_names(table)}; give a column for each cell, or origin, dest and km.",
            code="column-not-found",
        )
    columns = columns if named else list(range(len(table.names)))
    first = next((number for number in range(len(table.names)) if number not in columns), None)
    dest = [at[table.names[number].strip()] for number in columns] if named else columns
    km, seen = np.full((len(at), len(at)), np.nan), 0
    for rows in table.batches([*columns, *([] if first is None else [first])]):
        origin = np.arange(seen, seen + rows.n_rows)
        if first is not None:
            labels = coded(rows.columns[first])
            origin = np.array([at.get(text, -1) for text in labels.texts])[labels.codes]
        seen += rows.n_rows
        here = (origin >= 0) & (origin < len(at))
        for number, to in zip(columns, dest, strict=True):
            values = coded(rows.columns[number])
            numbers = np.array([_number(text) for text in values.texts])[values.codes]
            km[origin[here], to] = numbers[here]
    diagonal = np.diagonal(km)
    np.fill_diagonal(km, np.where(np.isnan(diagonal), 0.0, diagonal))
    return km


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")
