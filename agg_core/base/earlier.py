"""Names that earlier versions gave to what is kept in files, and what they are called now."""

from __future__ import annotations

from typing import Any

__all__ = ["KEYS", "of_today"]

KEYS = {"anchors": "times", "anchor": "time"}
"""Keys of saved results and settings, and columns of their tables."""

CHOICES = {"observed": {"blocks": "cells"}}
"""Choices by the key of their setting."""


def of_today(values: Any) -> Any:
    """The same JSON with the names of today."""
    if isinstance(values, dict):
        return {
            KEYS.get(name, name): CHOICES[name].get(value, value)
            if name in CHOICES and isinstance(value, str)
            else of_today(value)
            for name, value in values.items()
        }
    if isinstance(values, list):
        return [of_today(value) for value in values]
    return values
