"""Columns in which a receiver or an archive says that a fix is not to be believed."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from agg_core.base.report import printable
from agg_core.io.guess.columns import plain_name
from agg_core.io.source import RawSource
from agg_core.io.texts import as_text

__all__ = ["are_off", "flags_of"]

NAMES = frozenset((
    *("valid", "isvalid", "gpsvalid", "validity", "visible", "fixvalid", "positionvalid"),
    *("locationvalid", "gpsfix", "hasfix", "isfix", "fixok", "gpsstatus", "rmcstatus"),
))  # fmt: skip
"""Names of such columns, as `plain_name` writes them."""
_OFF = ("0", "false", "f", "no", "n", "v", "void", "invalid")
_ON = ("1", "true", "t", "yes", "y", "a", "active", "valid")


def flags_of(source: RawSource, taken: Iterable[int]) -> dict[int, str]:
    """Position and name of each column whose values only say whether a row is to be believed."""
    if not source.has_header:
        return {}
    used, found = set(taken), {}
    for at, name in enumerate(source.names):
        if at in used or plain_name(name) not in NAMES:
            continue
        values = {row[at].strip().lower() for row in source.sample if at < len(row)} - {""}
        if values and values <= {*_OFF, *_ON}:
            found[at] = printable(name, 40)
    return found


def are_off(column: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """Which rows (n,) are marked as not to be believed."""
    text = pc.utf8_lower(as_text(column))
    return np.asarray(pc.is_in(text, pa.array(_OFF, text.type)), dtype=bool)
