"""Values that are found of an object once and kept as long as it."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

__all__ = ["kept_with"]

Of = TypeVar("Of")
Given = ParamSpec("Given")
Value = TypeVar("Value")


def kept_with(
    function: Callable[Concatenate[Of, Given], Value],
) -> Callable[Concatenate[Of, Given], Value]:
    """A function of an object that never changes, which finds its value once for what is given.

    What is given beside the object is hashable, and given by position. Values go when the object
    does, so they must not hold it. An object is itself alone: one that equals it has its own.
    """
    held: dict[int, tuple[weakref.ref[Of], dict[Any, Value]]] = {}

    @wraps(function)
    def found(of: Of, /, *given: Given.args, **named: Given.kwargs) -> Value:
        number = id(of)
        kept = held.get(number)
        if kept is None or kept[0]() is not of:
            kept = held[number] = (weakref.ref(of, lambda _: held.pop(number, None)), {})
        values = kept[1]
        key = (given, tuple(named.items()))
        if key not in values:
            values[key] = function(of, *given, **named)
        return values[key]

    return found
