"""What was found by trying, by all that it depends on, so that it need not be tried again."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import field, fields, is_dataclass
from hashlib import sha256
from typing import Any

import numpy as np

__all__ = ["Remembered", "fingerprint", "later"]

EDITION = 1
"""To be raised when trials of the same data come to find something else: what was remembered before
is then tried again."""


def later(default: Any) -> Any:
    """A field of a dataclass that came when keys of it had been kept, and what stood for it."""
    return field(default=default, metadata={"later": True})


def fingerprint(*parts: object) -> str:
    """A key of values: alike for equal arrays, dataclasses, sequences and plain values.

    Sparse tables are arrays, those with equal entries and patterns being equal. A field that a
    dataclass got `later` counts only where it is not as it was before, so that keys stay.
    Keys of another `EDITION` differ.
    """
    digest = sha256(f"edition {EDITION}".encode())
    _feed(digest.update, parts)
    return digest.hexdigest()


def _feed(feed: Callable[[bytes], None], part: Any) -> None:
    if isinstance(part, np.ndarray):
        feed(f"array {part.dtype} {part.shape}".encode())
        plain = part.dtype.kind != "O"
        feed(np.ascontiguousarray(part).tobytes() if plain else repr(part.tolist()).encode())
    elif _is_sparse(part):
        feed(f"sparse {part.shape}".encode())
        for array in (part.data, part.indices.astype(np.int64), part.indptr.astype(np.int64)):
            _feed(feed, array)
    elif is_dataclass(part) and not isinstance(part, type):
        feed(type(part).__name__.encode())
        for each in fields(part):
            value = getattr(part, each.name)
            if not each.metadata.get("later") or value != each.default:
                _feed(feed, value)
    elif isinstance(part, (tuple, list)):
        feed(f"sequence {len(part)}".encode())
        for each in part:
            _feed(feed, each)
    elif part is None or isinstance(part, (str, int, float, np.generic)):
        feed(f"{type(part).__name__} {part!r}".encode())
    else:
        raise TypeError(f"no key of a {type(part).__name__}")


def _is_sparse(part: Any) -> bool:
    """Whether it is a sparse table, of which there is none where nobody has loaded scipy yet."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and isinstance(part, sparse.csr_array)


class Remembered:
    """Findings in plain JSON types by `fingerprint`, those of an earlier run and new ones.

    ``found`` are all that were looked up or added, for the next run.
    """

    def __init__(self, known: Mapping[str, Any] | None = None) -> None:
        self._known = dict(known or {})
        self.found: dict[str, Any] = {}

    def get(self, key: str) -> Any:
        """What is known, or None."""
        value = self._known.get(key)
        if value is not None:
            self.found[key] = value
        return value

    def put(self, key: str, value: Any) -> None:
        """Add a finding."""
        self._known[key] = self.found[key] = value
