"""From a table to flows in one call: `learn_flows`, and at several values `sweep_flows`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Protocol

from agg_core.base.engine import Engine, use_engine
from agg_core.base.errors import InputError
from agg_core.io import Choices
from agg_core.io.counts import CountChoices
from agg_core.io.formats.registry import Source
from agg_core.io.opening import choices_kind, open_as, rereadable
from agg_core.space.areas import AreaGrid
from agg_core.space.settings import AnyGridSettings, GridSettings
from agg_core.study.counts import CountStudy, count_study_steps
from agg_core.study.other_evidence import evidence_from
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
from agg_core.study.sweeps import Sweep, SweepResult, Value, check_used, first_at, sweep_steps
from agg_core.tables.counts import CountTable
from agg_core.tables.crossings import CrossingTable
from agg_core.tables.trajectories import Trajectories

__all__ = ["GateSource", "learn_flows", "sweep_flows"]


class GateSource(Protocol):
    """What gates counted, read for a table of counts."""

    def beside(self, table: CountTable) -> CrossingTable:
        """What they counted in the steps of the table."""


def learn_flows(
    source: Source,
    *,
    grid: AnyGridSettings | None = None,
    columns: Mapping[str, str | int] | None = None,
    where: Mapping[str, str] | None = None,
    like: FlowResult | None = None,
    engine: str | Engine | None = None,
    gates: GateSource | None = None,
    panel: Source | None = None,
    matrix: Source | None = None,
    matrix_zones: AreaGrid | None = None,
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
    gates
        What gates counted beside counts, as `agg_core.GateFile`.
    panel, matrix, matrix_zones
        What is known beside counts: fixes of a few of the people who were counted; an old table of
        trips between the cells, with columns origin, dest, count and perhaps time; and the zones
        that it is of where these are not the cells, as `Grid.from_polygons` makes them.
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
    beside_counts = (gates, panel, matrix, matrix_zones)
    if not of_counts and any(given is not None for given in beside_counts):
        raise InputError(
            "Gates, a panel and an old matrix stand beside counts, and this table holds people; "
            "leave them out.",
            code="option-unused",
        )
    result: object
    with use_engine(engine):
        if of_counts:
            table, learn, _ = _counts_of(source, grid, columns, where, options)
            gated = None if gates is None else gates.beside(table)
            beside = evidence_from(table, panel, matrix, matrix_zones)
            *_, result = count_study_steps(table, learn, known, gates=gated, beside=beside)
        else:
            people, settings, _ = _people_of(source, grid, columns, where, options)
            *_, result = study_steps(people, settings, known)
    assert isinstance(result, StudyResult | CountStudy)
    return result


def sweep_flows(
    source: Source,
    name: str,
    values: Sequence[Value],
    *,
    grid: AnyGridSettings | None = None,
    columns: Mapping[str, str | int] | None = None,
    where: Mapping[str, str] | None = None,
    engine: str | Engine | None = None,
    **options: Any,
) -> SweepResult:
    """Learn flows at each of several values of one setting, with all others as for `learn_flows`.

    >>> import agg_core
    >>> import pandas as pd
    >>> hours = pd.date_range("2024-05-01", periods=48, freq="h", tz="UTC")
    >>> counts = pd.DataFrame(
    ...     {"time": hours.repeat(2), "cell": ["a", "b"] * 48, "count": [30, 20, 25, 25] * 24}
    ... )
    >>> found = agg_core.sweep_flows(
    ...     counts, "prior", [1, 20], strength="given", replicates=0, time="one"
    ... )
    >>> found.table["value"].tolist()
    [1.0, 20.0]

    Parameters
    ----------
    source, grid, columns, where, engine, **options
        As for `learn_flows`; the setting that is varied is none of the options.
    name
        The setting: a field of `LearnSettings` or `CountLearnSettings` that changes which flows are
        learned, or the size of cells: "grid" ("7x8", rows and columns), "mesh" (its level) or "h3"
        (the resolution).
    values
        2 to 12 of them, each once.

    Returns
    -------
    `SweepResult`: its ``table`` has a row a value, with movement and how far it is from that of
    single people or, of counts, how well held-out counts are foretold.

    Raises
    ------
    InputError
        As for `learn_flows`, or if a value is none that the setting can have with these data.
    """
    source = rereadable(source)
    if name in options:
        raise InputError(
            f"{name} is what is varied; leave it out of the other options.",
            code="options-conflict",
        )
    of_counts = choices_kind(source, columns or (), options) is CountChoices
    first = first_at(CountLearnSettings if of_counts else StudySettings, name, values)
    data: Trajectories | CountTable
    settings: StudySettings | CountLearnSettings
    with use_engine(engine):
        data, settings, stated = (_counts_of if of_counts else _people_of)(
            source, grid, columns, where, options, first
        )
        sweep = Sweep(settings, name, tuple(values))
        check_used(stated, sweep)
        *_, result = sweep_steps(data, sweep)
    assert isinstance(result, SweepResult)
    return result


def _people_of(
    source: Source,
    grid: AnyGridSettings | None,
    columns: Mapping[str, str | int] | None,
    where: Mapping[str, str] | None,
    options: Mapping[str, Any],
    first: Mapping[str, Any] | None = None,
) -> tuple[Trajectories, StudySettings, Mapping[str, Any]]:
    """The people of a source, what is learned from them with, and what of it was stated.

    Of a setting that is varied ``first`` is its first value: what is stated besides may be of use
    at another one only.
    """
    of_grid, of_window, of_learning, of_reading = _sorted_out(
        options, GridSettings, WindowSettings, LearnSettings, Choices
    )
    if grid is not None and of_grid:
        raise InputError(
            f"Give either grid or {', '.join(of_grid)}, not both.", code="options-conflict"
        )
    learn = (
        learn_settings(LearnSettings, of_learning)
        if first is None
        else LearnSettings(**of_learning, **first)
    )
    people = open_as(source, Choices.of(columns, where, **of_reading))
    assert isinstance(people, Trajectories)
    if "times" in of_window:
        of_window["times"] = tuple(of_window["times"])
    settings = StudySettings(
        grid if grid is not None else replace(suggest_grid(people), **of_grid),
        replace(suggest_window(people), **of_window),
        learn,
    )
    return people, settings, of_learning


def _counts_of(
    source: Source,
    grid: AnyGridSettings | None,
    columns: Mapping[str, str | int] | None,
    where: Mapping[str, str] | None,
    options: Mapping[str, Any],
    first: Mapping[str, Any] | None = None,
) -> tuple[CountTable, CountLearnSettings, Mapping[str, Any]]:
    """The same of counts."""
    if grid is not None:
        raise InputError(
            "Counts come with their own cells; leave grid out, or give people.",
            code="option-unused",
        )
    of_learning, of_reading = _sorted_out(options, CountLearnSettings, CountChoices)
    settings = (
        learn_settings(CountLearnSettings, of_learning)
        if first is None
        else CountLearnSettings(**of_learning, **first)
    )
    table = open_as(source, CountChoices.of(columns, where, **of_reading))
    assert isinstance(table, CountTable)
    return table, settings, of_learning


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
