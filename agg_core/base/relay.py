"""Work in steps that ends with a result, told of in other words on its way."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import TypeVar, cast

__all__ = ["last_of", "relayed"]

Step = TypeVar("Step")
Told = TypeVar("Told")
Result = TypeVar("Result")


def relayed(
    steps: Generator[Step, None, Result], tell: Callable[[Step], Told]
) -> Generator[Told, None, Result]:
    """What ``tell`` makes of each step; returns what the steps return."""
    while True:
        try:
            step = next(steps)
        except StopIteration as end:
            return cast(Result, end.value)
        yield tell(step)


def last_of(steps: Iterable[Step]) -> Step:
    """The last of some steps, of which there is one at least; none before it is kept.

    ``*_, last = steps`` would hold what all of them carry until the end.
    """
    given = iter(steps)
    last = next(given)
    for each in given:
        last = each
    return last
