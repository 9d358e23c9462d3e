"""Flow tables that may have been, for other programs: NetCDF of all draws, OMX of what they tell.

NetCDF is written by scipy, in the classic format with 64-bit offsets, which xarray, ncdump, R,
Matlab and Panoply read without HDF5.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from agg_core.base.errors import InputError
from agg_core.base.moves import AnyMoves, at_pairs, ends_of, entries, moves_like
from agg_core.exports.matrices import UNITS, check_omx, fits_in_omx, write_omx
from agg_core.study.result import ESTIMATE, FlowResult
from agg_core.tables.certainty import LEVEL, sum_interval

__all__ = [
    "draws_netcdf",
    "draws_omx",
    "has_draws_omx",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

MOST_BYTES = 2**31 - 2**20
"""Bytes that one variable of a file in the classic format may have."""


def no_draws() -> InputError:
    """Why there is nothing: no simulated worlds."""
    return InputError(
        "This result has no draws of its flows; choose another export, or learn again with "
        "simulated worlds.",
        code="nothing-to-export",
    )


def has_draws_omx(result: FlowResult) -> bool:
    """Whether there are draws, of few enough states for whole matrices."""
    return bool(result.times_of_draws) and fits_in_omx(result)


def draws_omx(result: FlowResult, time: str, source: str = ESTIMATE) -> bytes:
    """An OMX file of one moment and source: matrices estimate, mean, q05 and q95.

    ``mean`` is the mean of the draws, which is the estimate without what simulated worlds show it
    to miss on average; between q05 and q95 each flow lies by nine chances in ten (see
    `agg_core.tables.certainty.sum_interval`). Their sums are not the ends of intervals of sums,
    since flows do not err alike: take these of each draw. Otherwise as `agg_core.exports.omx`.

    Raises
    ------
    InputError
        If there are no draws of this moment, or more than 20,000 states.
    """
    check_omx(result)
    drawn = result.draws(time, source)
    if drawn is None:
        raise no_draws()
    flows = result.matrix(time, source)
    people = entries(flows)
    errors = np.stack([entries(draw) - people for draw in drawn], axis=-1)
    low, high = sum_interval(people, errors)
    low_at, high_at = (1 - LEVEL) / 2, (1 + LEVEL) / 2
    tables = {
        "estimate": people,
        "mean": people + errors.mean(axis=-1),
        f"q{100 * low_at:02.0f}": low,
        f"q{100 * high_at:02.0f}": high,
    }
    return write_omx(
        result,
        {name: (moves_like(flows, values), time) for name, values in tables.items()},
        {"n_draws": np.int64(len(drawn))},
    )


def draws_netcdf(result: FlowResult, source: str = ESTIMATE) -> bytes:
    """Draws of the flows of one source at every time that they are kept of, as NetCDF.

    ``flow`` (draw, time, origin, dest) are people per step, which may be below 0 in a single one;
    ``estimate`` (time, origin, dest) is what was learned. Where moves are within a reach alone
    they are (draw, time, pair) and (time, pair), with the variables pair_origin and pair_dest.
    Coordinates are numbers of cells, with their names and, where they have places, the longitude
    and latitude of their middles; the outside is the last one, at nan.

    Raises
    ------
    InputError
        If the result has no draws, or too many for such a file.
    """
    from scipy.io import netcdf_file  # noqa: PLC0415

    times = result.times_of_draws
    drawn = [result.draws(time, source) for time in times]
    known = [draw for draw in drawn if draw is not None]
    if not known or len(known) < len(times):
        raise no_draws()
    tables = [result.matrix(time, source) for time in times]
    n_draws, names = len(known[0]), result.states.names
    pairs = _pairs(tables) if result.is_sparse else None
    shape = (len(names), len(names)) if pairs is None else (len(pairs[0]),)
    if 8 * n_draws * len(times) * int(np.prod(shape)) > MOST_BYTES:
        raise InputError(
            f"{n_draws} draws at {len(times)} times of flows among {len(names):,} cells are too "
            "many for a NetCDF file; take them as Parquet.",
            code="too-many-cells",
        )
    target = io.BytesIO()
    file = netcdf_file(target, "w", version=2)
    for name, size in {"draw": n_draws, "time": len(times)}.items():
        file.createDimension(name, size)
    ends = ("origin", "dest")
    for name in ends:
        file.createDimension(name, len(names))
        _numbers(file, name, (name,), np.arange(len(names)), long_name=f"cell of the {name}")
    axes: tuple[str, ...] = ends
    if pairs is not None:
        axes = ("pair",)
        file.createDimension("pair", shape[0])
        for name, of in zip(ends, pairs, strict=True):
            _numbers(file, f"pair_{name}", axes, of, long_name=f"cell of the {name} of a pair")
    _numbers(file, "draw", ("draw",), np.arange(n_draws), long_name="draw, from 0")
    _texts(file, "time", "time", times, "local time at which steps begin")
    _texts(file, "cell_name", "origin", names, "name of the cell")
    _places(file, result)
    flow = file.createVariable("flow", "f8", ("draw", "time", *axes))
    estimate = file.createVariable("estimate", "f8", ("time", *axes))
    for number, (table, draws) in enumerate(zip(tables, known, strict=True)):
        estimate[number] = _values(table, pairs)
        for draw, one in enumerate(draws):
            flow[draw, number] = _values(one, pairs)
    _about(flow, units=UNITS, long_name="people who move, as they may have")
    _about(estimate, units=UNITS, long_name="people who move, as learned")
    _about(file, Conventions="CF-1.11", title="Draws of population flows")
    _about(file, source=result.source_words(source).encode())
    if result.step_minutes is not None:
        _about(file, step_minutes=np.float64(result.step_minutes))
    file.flush()
    content = target.getvalue()
    file.close()
    return content


def _pairs(tables: list[AnyMoves]) -> tuple[IntArray, IntArray]:
    """Origin and dest of all flows that any of some sparse tables has."""
    n = tables[0].shape[0]
    keys = [origin.astype(np.int64) * n + dest for origin, dest in map(ends_of, tables)]
    origin, dest = np.divmod(np.unique(np.concatenate(keys)), n)
    return origin, dest


def _values(table: AnyMoves, pairs: tuple[IntArray, IntArray] | None) -> FloatArray:
    return entries(table) if pairs is None else at_pairs(table, *pairs)


def _numbers(
    file: Any, name: str, axes: tuple[str, ...], values: npt.ArrayLike, **about: str
) -> None:
    """A variable of whole numbers, or of others, with attributes."""
    numbers = np.asarray(values)
    kind = "i4" if numbers.dtype.kind in "iu" else "f8"
    variable = file.createVariable(name, kind, axes)
    variable[:] = numbers
    _about(variable, **about)


def _about(thing: Any, **attributes: Any) -> None:
    """Attributes of a file or of a variable of it."""
    for name, value in attributes.items():
        setattr(thing, name, value)


def _texts(file: Any, name: str, axis: str, texts: Sequence[str], long_name: str) -> None:
    """A variable of texts, as rows of bytes in UTF-8."""
    rows = np.array([text.encode() for text in texts])
    size = max(rows.dtype.itemsize, 1)
    file.createDimension(f"{name}_bytes", size)
    variable = file.createVariable(name, "c", (axis, f"{name}_bytes"))
    variable[:] = rows.astype(f"S{size}").view("S1").reshape(len(rows), size)
    _about(variable, _Encoding="utf-8", long_name=long_name)


def _places(file: Any, result: FlowResult) -> None:
    grid = result.states.grid
    if grid is None:
        return
    outside = np.full((int(result.states.has_outside), 2), np.nan)
    places = np.concatenate([grid.centroids, outside]).T
    for name, values, units in zip(
        ("longitude", "latitude"), places, ("degrees_east", "degrees_north"), strict=True
    ):
        _numbers(file, name, ("origin",), values, units=units, standard_name=name)
