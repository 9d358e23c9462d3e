"""OMX: matrices from every zone to every zone, as transport models keep them in HDF5.

The library unpickles attributes of whatever it opens. So it reads in a process of its own, with
limits, after its pickle has been taken from it, and matrices by rows: zeros take no memory.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from agg_core.base.errors import InputError
from agg_core.base.extras import how_to_install
from agg_core.base.report import printable
from agg_core.io.apart import CONTENT, reading_apart
from agg_core.io.archives import MAX_RATIO, most_unpacked
from agg_core.io.contents import Data
from agg_core.io.points import SAMPLE_ROWS, sampled
from agg_core.io.source import RawRows, RawSource
from agg_core.space.limits import MOST_CELLS

__all__ = ["COLUMNS", "leave", "open_omx", "recognises_omx"]

MAGIC = b"\x89HDF\r\n\x1a\n"
READER, RESULT = "agg_core.io.formats.omx:leave", "flows.arrow"

COLUMNS = ("matrix", "origin", "dest", "count", "zones")
"""What a row has: its matrix, both ends, the value, and of how many zones the ends are.

Ends are what the file's mapping calls them. Without one, or with one that counts from 0, they are
numbers from 0, and their columns are called origin_number and dest_number.
"""

MOST_MATRICES = 24 * 60
BLOCK_BYTES = 1 << 25
VALUE_BYTES = 8


def recognises_omx(head: bytes) -> bool:
    """Whether a file is HDF5, of which OMX is made."""
    return head.startswith(MAGIC)


def open_omx(data: Data, name: str) -> RawSource:
    """Open OMX: a row for each value of its matrices that is not 0.

    A matrix is called by its attribute "time" where each has another, else by its name.

    Raises
    ------
    InputError
        If the file is damaged or other HDF5, its matrices are too large, or it has several
        mappings to choose from.
    """
    if find_spec("openmatrix") is None:
        raise InputError(str(how_to_install("openmatrix")), code="package-missing")
    with reading_apart(READER, data, name) as (folder, about):
        file = pa.ipc.open_file(pa.memory_map(str(folder / RESULT)))
    names = tuple(about["names"])

    def stream(positions: Sequence[int]) -> Iterator[RawRows]:
        for number in range(file.num_record_batches):
            table = pa.Table.from_batches([file.get_batch(number)])
            columns = {at: table.column(at) for at in positions}
            yield RawRows(columns, table.num_rows, share=(number + 1) / file.num_record_batches)

    sample = []
    if file.num_record_batches:
        sample = sampled(pa.Table.from_batches([file.get_batch(0).slice(0, SAMPLE_ROWS)]).columns)
    return RawSource(names, True, sample, stream=stream)


class _NoPickle:
    """In place of the pickle of a library: nothing is made of what a file says."""

    @staticmethod
    def loads(*_: Any, **__: Any) -> Any:
        raise ValueError("nothing is unpickled")

    dumps = loads


def leave(folder: Path, name: str) -> dict[str, Any]:
    """What the process does: leave the values in the folder as Arrow, and tell the columns."""
    import openmatrix  # type: ignore[import-untyped]  # noqa: PLC0415  # it has no types

    library = openmatrix.tables
    for module in (library.attributeset, library.atom, library.hdf5extension):
        module.pickle = _NoPickle
    content = folder / CONTENT
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with openmatrix.open_file(str(content)) as file:
                return _left(file, folder, name, most_unpacked(content.stat().st_size))
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"{name} is damaged, or HDF5 that is no OMX; make or copy it again.",
            code="damaged-omx",
        ) from error


def _left(file: Any, folder: Path, name: str, most_bytes: int) -> dict[str, Any]:
    matrices = file.list_nodes(file.get_node("/data", classname="Group"), classname="CArray")
    # What lies in pieces lies in this file, and in no other one that it names.
    matrices = [matrix for matrix in matrices if matrix.chunkshape is not None]
    zones = _zones(matrices, name)
    labels, by_order = _labels(file, zones, name)
    titles = _titles(matrices)
    names = [f"{c}_number" if by_order and c in ("origin", "dest") else c for c in COLUMNS]
    ends = pa.dictionary(pa.int32(), pa.string())
    kinds = (ends, ends, ends, pa.float64(), ends)
    schema = pa.schema(list(zip(names, kinds, strict=True)))
    of_zones, n_bytes = pa.array([str(zones)]), 0
    rows = max(1, BLOCK_BYTES // (VALUE_BYTES * zones))
    with pa.ipc.new_file(str(folder / RESULT), schema) as writer:
        for number, matrix in enumerate(matrices):
            for first in range(0, zones, rows):
                values = np.asarray(matrix[first : first + rows], dtype=np.float64)
                origin, dest = np.nonzero(values)
                n_bytes += len(origin) * VALUE_BYTES
                if n_bytes > most_bytes:
                    raise InputError(
                        f"{name} unpacks to more than {MAX_RATIO} times its size; make it again.",
                        code="unpacks-too-large",
                    )
                columns = [
                    _coded(np.full(len(origin), number), titles),
                    _coded(origin + first, labels),
                    _coded(dest, labels),
                    pa.array(values[origin, dest], from_pandas=True),
                    _coded(np.zeros(len(origin)), of_zones),
                ]
                if len(origin):
                    writer.write_batch(pa.record_batch(columns, schema=schema))
    return {"names": names}


def _coded(number: Any, texts: pa.Array) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(number, pa.int32()), texts)


def _zones(matrices: Sequence[Any], name: str) -> int:
    """How many zones all the matrices have."""
    shapes = {tuple(map(int, matrix.shape)) for matrix in matrices}
    if len(matrices) > MOST_MATRICES:
        raise InputError(
            f"{name} has {len(matrices):,} matrices, and at most {MOST_MATRICES:,} are read; "
            "keep those that are to be compared.",
            code="too-many-matrices",
        )
    if len(shapes) != 1 or any(len(shape) != 2 or shape[0] != shape[1] for shape in shapes):
        raise InputError(
            f"{name} has no matrices, or not all of one square shape; give flows from every zone "
            "to every zone.",
            code="wrong-shape",
        )
    ((zones, _),) = shapes
    if not 0 < zones <= MOST_CELLS + 1:
        raise InputError(
            f"{name} has matrices of {zones:,} zones, and at most {MOST_CELLS:,} can be compared.",
            code="too-many-cells",
        )
    if any(matrix.dtype.kind not in "iuf" for matrix in matrices):
        raise InputError(
            f"{name} has a matrix of other than numbers; give counts.", code="not-a-number"
        )
    return zones


def _labels(file: Any, zones: int, name: str) -> tuple[pa.Array, bool]:
    """What the zones are called, and whether they are but counted."""
    found: dict[str, list[str]] = {}
    in_order = [str(number) for number in range(zones)]
    for title in file.list_mappings():
        node = file.get_node(f"/lookup/{title}")
        if tuple(node.shape) != (zones,) or node.dtype.kind not in "iuSU":
            continue
        entries = [e.decode("utf-8") if isinstance(e, bytes) else str(e) for e in node[:].tolist()]
        if entries != in_order:
            found[title] = entries
    if len(found) > 1:
        raise InputError(
            f"{name} has several mappings ({', '.join(map(printable, sorted(found)))}); keep the "
            "one that gives the names of the cells.",
            code="several-mappings",
        )
    return pa.array(next(iter(found.values()), in_order)), not found


def _titles(matrices: Sequence[Any]) -> pa.Array:
    """What the matrices are called: by their time where each has another, else by name."""
    times = [_time(matrix.attrs) for matrix in matrices]
    if all(times) and len(set(times)) == len(times):
        return pa.array(times)
    return pa.array([str(matrix.name) for matrix in matrices])


def _time(attributes: Any) -> str:
    found = getattr(attributes, "time", "")
    text = found.decode("utf-8", "replace") if isinstance(found, bytes) else found
    return str(text) if isinstance(text, str) else ""
