"""From a table to flows in one call: `learn_flows`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from agg_core.base.engine import Engine, use_engine
from agg_core.base.errors import InputError
from agg_core.io import Choices
from agg_core.io.counts import CountChoices
from agg_core.io.formats.registry import Source
from agg_core.io.opening import choices_kind, open_as, rereadable
from agg_core.space.settings import AnyGridSettings, GridSettings
from agg_core.study.counts import CountStudy, count_study_steps
from agg_core.study.people import StudyResult, study_steps
from agg_core.study.result import FlowResult
from agg_core.study.settings import (
    CountLearnSettings,
    LearnSettings,
    StudySettings,
    WindowSettings,
    learn_settings,
)
from agg_core.study.suggest import suggest_grid, suggest_window
from agg_core.tables.counts import CountTable
from agg_core.tables.trajectories import Trajectories

__all__ = ["learn_flows"]


def learn_flows(
    source: Source,
    *,
    grid: AnyGridSettings | None = None,
    columns: Mapping[str, str | int] | None = None,
    where: Mapping[str, str] | None = None,
    like: FlowResult | None = None,
    engine: str | Engine | None = None,
    **options: Any,
) -> FlowResult:
    """Learn flows from a table, or a file, of people or of counts; which of both is found out.

    >>> import agg_core
    >>> import pandas as pd
    >>> hours = pd.date_range("2024-05-01", periods=48, freq="h", tz="UTC")
    >>> counts = pd.DataFrame(
    ...     {"time": hours.repeat(2), "cell": ["a", "b"] * 48, "count": [30, 20, 25, 25] * 24}
    ... )
    >>> result = agg_core.learn_flows(counts, replicates=0, time="one")
    >>> result.cells
    ('a', 'b')

    Parameters
    ----------
    source
        People: a row per person and time, with columns such as user_id, time, lon, lat. Counts: a
        row per cell and time, with columns such as time, cell, count.
    grid
        Settings of the cells, for people. Left out: cells over the extent of the data, or those
        that west, south, east, north, rows and cols say.
    columns, where
        Columns by role and rows to keep, as in `read_trajectories` and `read_counts`.
    like
        A result of the same data: what its trials found is not tried again.
    engine
        Who does the work: "local", the cores of this machine; "dask", processes on them;
        "dask://host:port", the scheduler of a Dask cluster. The flows are the same with any.
    **options
        Fields of `WindowSettings`, `LearnSettings` and `Choices` for people, where steps and times
        of day left out are those that suit the data; fields of `CountLearnSettings` and
        `CountChoices` for counts.

    Returns
    -------
    `StudyResult` from people, `CountStudy` from counts.

    Raises
    ------
    InputError
        If an option is unknown or out of range, the table cannot be read or learned from, or the
        engine cannot be used.
    """
    source = rereadable(source)
    known = {} if like is None else like.remembered
    of_counts = choices_kind(source, columns or (), options) is CountChoices
    with use_engine(engine):
        return (_from_counts if of_counts else _from_people)(
            source, grid, columns, where, known, options
        )


def _from_people(
    source: Source,
    grid: AnyGridSettings | None,
    columns: Mapping[str, str | int] | None,
    where: Mapping[str, str] | None,
    known: Mapping[str, Any],
    options: Mapping[str, Any],
) -> StudyResult:
    of_grid, of_window, of_learning, of_reading = _sorted_out(
        options, GridSettings, WindowSettings, LearnSettings, Choices
    )
    if grid is not None and of_grid:
        raise InputError(
            f"Give either grid or {', '.join(of_grid)}, not both.", code="options-conflict"
        )
    learn = learn_settings(LearnSettings, of_learning)
    people = open_as(source, Choices.of(columns, where, **of_reading))
    assert isinstance(people, Trajectories)
    if "times" in of_window:
        of_window["times"] = tuple(of_window["times"])
    settings = StudySettings(
        grid if grid is not None else replace(suggest_grid(people), **of_grid),
        replace(suggest_window(people), **of_window),
        learn,
    )
    *_, result = study_steps(people, settings, known)
    assert isinstance(result, StudyResult)
    return result


def _from_counts(
    source: Source,
    grid: AnyGridSettings | None,
    columns: Mapping[str, str | int] | None,
    where: Mapping[str, str] | None,
    known: Mapping[str, Any],
    options: Mapping[str, Any],
) -> CountStudy:
    if grid is not None:
        raise InputError(
            "Counts come with their own cells; leave grid out, or give people.",
            code="option-unused",
        )
    of_learning, of_reading = _sorted_out(options, CountLearnSettings, CountChoices)
    settings = learn_settings(CountLearnSettings, of_learning)
    table = open_as(source, CountChoices.of(columns, where, **of_reading))
    assert isinstance(table, CountTable)
    *_, result = count_study_steps(table, settings, known)
    assert isinstance(result, CountStudy)
    return result


def _sorted_out(options: Mapping[str, Any], *kinds: type[Any]) -> list[dict[str, Any]]:
    """The options by the settings that have a field of that name; none may be left."""
    known = [{f.name for f in fields(kind)} for kind in kinds]
    unknown = [name for name in options if not any(name in names for names in known)]
    if unknown:
        there = ", ".join(sorted(set().union(*known) - {"columns", "where"}))
        raise InputError(
            f"There is no option {unknown[0]!r} for this table; there are {there}.",
            code="unknown-option",
        )
    return [{name: options[name] for name in options if name in names} for names in known]
