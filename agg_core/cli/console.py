"""What commands do with a terminal and with files: tell how far they are, write what they made."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from agg_core.base.errors import InputError
from agg_core.base.report import SetAside

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["announce", "aside_lines", "records", "watched", "write_csv", "writing"]

Step = TypeVar("Step")
Result = TypeVar("Result")


def announce(sentence: str) -> None:
    """Say something before work begins, at a terminal, where its steps are told."""
    if sys.stderr.isatty():
        print(sentence, file=sys.stderr)


def aside_lines(set_aside: Mapping[str, SetAside], of: str = "") -> list[str]:
    """How many rows of a table were left out for what, a line for each cause."""
    return [f"{rows.count:,} {of}left out: {cause}" for cause, rows in set_aside.items()]


def watched(
    steps: Iterator[Step | Result], kind: type[Result], describe: Callable[[Step], str]
) -> Result:
    """The result at the end of the steps; at a terminal, each step is told on one line."""
    is_watched = sys.stderr.isatty()
    for step in steps:
        if isinstance(step, kind):
            break
        if is_watched:
            # The rest of the line that was there is wiped out.
            print(f"\r{describe(cast(Step, step))}\033[K", end="", file=sys.stderr, flush=True)
    if is_watched:
        print(file=sys.stderr)
    assert isinstance(step, kind)
    return step


@contextmanager
def writing(name: str) -> Iterator[None]:
    """A disk that refuses is one sentence.

    Raises
    ------
    InputError
        In place of an OSError.
    """
    try:
        yield
    except OSError as fault:
        raise InputError(
            f"{name} could not be written ({fault.strerror}); choose another place.",
            code="file-not-written",
        ) from fault


def write_csv(name: str, table: pd.DataFrame) -> str:
    """Write a table to a file; returns a line that says so.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    from agg_core.exports.tables import csv_bytes  # noqa: PLC0415

    with writing(name):
        Path(name).write_bytes(csv_bytes(table))
    return f"{name}: {len(table):,} rows"


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows for JSON, with None for what is not known."""
    known = table.astype(object).where(table.notna(), None)
    return [
        {str(name): value.item() if hasattr(value, "item") else value
         for name, value in row.items()}
        for row in known.to_dict("records")
    ]  # fmt: skip
