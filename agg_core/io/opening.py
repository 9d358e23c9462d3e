"""A table of people or of counts, which of both being found out: `open_file`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from os import PathLike
from typing import Any

import pandas as pd

from agg_core.base.errors import InputError
from agg_core.base.options import options_of
from agg_core.io.choices import Choices, Stated
from agg_core.io.contents import read_content
from agg_core.io.counts import CountChoices, counts_of, holds_counts
from agg_core.io.formats.registry import Source
from agg_core.io.kinds import explained
from agg_core.io.reading import reading_steps
from agg_core.tables.counts import CountTable
from agg_core.tables.trajectories import Trajectories

__all__ = ["HOLDS", "AnyChoices", "choices_kind", "open_as", "open_file", "rereadable"]

AnyChoices = Choices | CountChoices

HOLDS: Mapping[type[AnyChoices], str] = {Choices: "people", CountChoices: "counts"}
"""What a table holds that is read by choices of a kind."""


def open_file(
    source: Source,
    *,
    columns: Mapping[str, str | int] | None = None,
    where: Mapping[str, str] | None = None,
    filename: str | None = None,
    **stated: Any,
) -> Trajectories | CountTable:
    """Read people or counts from a file or folder, bytes, a table, or several files by name.

    >>> import agg_core
    >>> import pandas as pd
    >>> hours = ["2024-05-01 08:00", "2024-05-01 09:00"]
    >>> type(agg_core.open_file(pd.DataFrame({"time": hours, "cell": "a", "count": [30, 25]})))
    <class 'agg_core.tables.counts.CountTable'>
    >>> person = {"user_id": "x", "time": hours, "lon": [139.5, 139.6], "lat": 35.5}
    >>> type(agg_core.open_file(pd.DataFrame(person)))
    <class 'agg_core.tables.trajectories.Trajectories'>

    Parameters
    ----------
    columns, where, filename
        As in `read_trajectories` and `read_counts`. A column that is said to hold user_id makes it
        a table of people, one that is said to hold the count a table of counts.
    **stated
        Fields of `Choices` for people, of `CountChoices` for counts.

    Returns
    -------
    `Trajectories` of people, or a `CountTable`.

    Raises
    ------
    InputError
        If the file cannot be read, or a choice is none of what the file holds.
    """
    source = rereadable(source, filename)
    kind = choices_kind(source, columns or (), stated)
    known = {f.name for f in fields(kind)}
    for other, holds in HOLDS.items():
        for name in stated.keys() & {f.name for f in fields(other)} - known:
            raise InputError(
                f"{name} is a choice for {holds}, and this table holds {HOLDS[kind]}; leave it "
                "out.",
                code="option-unused",
            )
    return open_as(source, kind.of(columns, where, **stated), filename=filename)


def rereadable(source: Source, filename: str | None = None) -> Source:
    """The source as it is, or the content of an open file, which can be read but once.

    Raises
    ------
    InputError
        If it is open as text, or empty.
    """
    if isinstance(source, str | PathLike | bytes | pd.DataFrame | Mapping):
        return source
    return bytes(read_content(source, filename or "The file"))


def choices_kind(
    source: Source, roles: Iterable[str], stated: Mapping[str, Any]
) -> type[Choices] | type[CountChoices]:
    """`CountChoices` if the table holds counts, else `Choices`, by its columns and first rows.

    ``roles`` are those whose columns are stated, ``stated`` what else is said of the file.
    """
    if "user_id" in roles:
        return Choices
    of_file = {name: stated[name] for name in options_of(Stated) if name in stated}
    is_count = "count" in roles or holds_counts(source, CountChoices(**of_file))
    return CountChoices if is_count else Choices


def open_as(
    source: Source, choices: AnyChoices, *, filename: str | None = None
) -> Trajectories | CountTable:
    """Like `open_file`, of the kind that the choices are of.

    Raises
    ------
    InputError
        If the file cannot be read so.
    """
    if isinstance(choices, CountChoices):
        return counts_of(source, choices, filename=filename)
    try:
        *_, trajectories = reading_steps(source, choices, filename=filename)
    except InputError as fault:
        raise explained(fault, source, choices) from fault
    assert isinstance(trajectories, Trajectories)
    return trajectories
