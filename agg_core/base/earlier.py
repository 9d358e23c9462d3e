"""Names that earlier versions gave to what is kept in files, and what they are called now."""

from __future__ import annotations

from typing import Any

__all__ = ["KEYS", "present_keys"]

KEYS = {"anchors": "times", "anchor": "time"}
"""Keys of saved results and settings, and columns of their tables."""


def present_keys(values: Any) -> Any:
    """The same JSON with the names of today."""
    if isinstance(values, dict):
        return {KEYS.get(name, name): present_keys(value) for name, value in values.items()}
    if isinstance(values, list):
        return [present_keys(value) for value in values]
    return values
