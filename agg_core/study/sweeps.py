"""One setting of a study at several values, everything else as chosen: a row of figures for each.

What is found at a value is what a study with that value finds alone: the values are parts of the
work that do not wait for each other, done by the engine in use, each with checkpoints of its own.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import Field, asdict, dataclass, fields, replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
import pandas as pd

from agg_core.base.checkpoints import checkpoints, use_checkpoints
from agg_core.base.errors import EngineError, InputError
from agg_core.base.moves import at_origin, entries, origin_sums
from agg_core.base.options import Option, options_of
from agg_core.base.relay import last_of
from agg_core.space.settings import (
    GridSettings,
    HexSettings,
    MeshSettings,
    parse_grid_size,
)
from agg_core.study.counts import CountStudy, check_identifiable, count_study_steps
from agg_core.study.lasting import Lasting
from agg_core.study.people import StudyResult, check_people, likelihoods_of_people, study_steps
from agg_core.study.result import WHOLE_DAY
from agg_core.study.settings import CountLearnSettings, LearnSettings, StudySettings
from agg_core.tables.counts import CountTable
from agg_core.tables.trajectories import Trajectories

__all__ = [
    "FEWEST_VALUES",
    "FIGURES",
    "MOST_VALUES",
    "Figure",
    "Sweep",
    "SweepProgress",
    "SweepResult",
    "SweepRow",
    "Value",
    "check_sweep",
    "check_used",
    "first_at",
    "lasting_of_sweep",
    "megabytes_of_sweep",
    "read_values",
    "suggested_values",
    "sweep_steps",
    "texts_of",
    "to_be_used",
    "variable",
]

Value = int | float | str
"""What a setting is at."""

AnySettings = StudySettings | CountLearnSettings

FEWEST_VALUES, MOST_VALUES = 2, 12
"""Values that a sweep has."""

OF_PEOPLE = (
    "group_size", "misclassify", "sigma_m", "noise", "assumed", "assumed_m", "inference",
    "calibrate", "strength", "prior", "start", "iterations", "reach_m", "seed",
)  # fmt: skip
OF_COUNTS = ("time", "strength", "prior", "count_error", "expansion", "reach_m", "seed")
"""Settings of learning that can be varied: those that change which flows are learned."""

GRID, MESH, H3 = "grid", "mesh", "h3"
CELLS: Mapping[str, tuple[type[GridSettings | MeshSettings | HexSettings], Option]] = {
    GRID: (
        GridSettings,
        Option(
            "Cells, rows x columns", "How many cells the extent is divided into, such as 14x16."
        ),
    ),
    MESH: (MeshSettings, options_of(MeshSettings)["level"]),
    H3: (HexSettings, options_of(HexSettings)["resolution"]),
}
"""How the size of cells is varied, by the kind of grid."""


@dataclass(frozen=True)
class Figure:
    """What a column of a sweep's table is called, and what it says."""

    label: str
    help: str
    digits: int


FIGURES: Mapping[str, Figure] = {
    "n_states": Figure("States", "Cells, and one more where people are outside of them.", 0),
    "movers": Figure("Movement", "People per step who change their cell, as learned.", 1),
    "movers_low": Figure("From", "Lower end of an interval of nine in ten around the movement.", 1),
    "movers_high": Figure("To", "Upper end of that interval.", 1),
    "share_moving": Figure("Share that moves", "Movement over all people, from 0 to 1.", 3),
    "cpc": Figure(
        "CPC to M = 1", "Common part of movement with what single people tell; 1 is the same.", 3
    ),
    "total_ratio": Figure(
        "Ratio to M = 1",
        "Movement over that of M = 1: above 1 it is invented, below 1 it is lost.",
        3,
    ),
    "chances_apart": Figure(
        "Chances apart",
        "Share of the people who go elsewhere next than by the chances that single people tell: "
        "half of the L1 distance of rows, in the mean over people; 0 is the same.",
        3,
    ),
    "cpc_counted": Figure(
        "CPC to counted", "Common part of movement with what was counted before the noise.", 3
    ),
    "ratio_counted": Figure(
        "Ratio to counted", "Movement over what was counted before the noise.", 3
    ),
    "delta_nll": Figure(
        "ΔNLL",
        "How much less likely the chain learned from groups finds what single people showed than "
        "the one learned from them, in nats per person; 0 is as likely, and it has no end where "
        "somebody is ruled out.",
        4,
    ),
    "held_out_mae": Figure(
        "Error of held-out counts", "Mean error of counts of days kept aside, in people.", 3
    ),
    "held_out_gain": Figure(
        "Error over nobody moves",
        "That error over the one of leaving everybody in place; below 1 the flows foretell.",
        3,
    ),
    "held_out_score": Figure(
        "Score of held-out counts", "How well they are foretold in all; larger is better.", 1
    ),
    "cpu_s": Figure("CPU seconds", "Seconds that one core was at work for it.", 1),
}
"""Figures of a row, in the order in which they are listed."""

COMPARED = ("cpc", "total_ratio", "chances_apart", "cpc_counted", "ratio_counted", "delta_nll")
HELD_OUT = ("held_out_mae", "held_out_gain", "held_out_score")
INTERVAL = ("movers_low", "movers_high")


@dataclass(frozen=True)
class Sweep:
    """A setting and the values that it is to have, and all other settings.

    ``settings`` are those of a study of people or of counts, ``name`` is the field of these that is
    varied: one of `variable`. Sizes of cells are called grid (``7x8``, rows and columns), mesh (its
    level) and h3 (the resolution).

    >>> from agg_core.study.settings import StudySettings
    >>> sweep = Sweep(StudySettings(), "group_size", (1, 5, 20))
    >>> [each.learn.group_size for each in sweep.each]
    [1, 5, 20]

    Raises
    ------
    InputError
        If there is no such setting, it is of no use beside the others, there are too few or too
        many values or one of them twice, or one of them is none that the setting can have.
    """

    settings: AnySettings
    name: str
    values: tuple[Value, ...]

    def __post_init__(self) -> None:
        known = variable(self.settings)
        if self.name not in known:
            raise _unknown(self.name, known)
        of = _field(type(self.settings), self.name)
        object.__setattr__(
            self, "values", tuple(_as_typed(value, of, self.option) for value in self.values)
        )
        if not FEWEST_VALUES <= len(self.values) <= MOST_VALUES:
            raise InputError(
                f"{self.option.label} is to be compared at {FEWEST_VALUES} to {MOST_VALUES} "
                f"values; it was given {len(self.values):,}.",
                code="wrong-number-of-values",
            )
        twice = [value for value in self.values if self.values.count(value) > 1]
        if twice:
            raise InputError(
                f"{self.option.label} is given the value {self._said(twice[0])} twice; give each "
                "value once.",
                code="value-given-twice",
            )
        for settings in self.each:
            learn = settings.learn if isinstance(settings, StudySettings) else settings
            if self.name in learn.unused:
                raise InputError(
                    f"{learn.unused_by} makes no use of {self.name}; vary another setting, or "
                    "change that.",
                    code="option-unused",
                )

    @property
    def of_counts(self) -> bool:
        """Whether it is learned from counts."""
        return isinstance(self.settings, CountLearnSettings)

    @property
    def option(self) -> Option:
        """What there is to know of the setting."""
        return variable(self.settings)[self.name]

    @cached_property
    def each(self) -> tuple[AnySettings, ...]:
        """The settings of the study at each value."""
        return tuple(_with(self.settings, self.name, value) for value in self.values)

    @property
    def labels(self) -> tuple[str, ...]:
        """The values as people see them."""
        return tuple(self._said(value) for value in self.values)

    def _said(self, value: Value) -> str:
        option = self.option
        if option.choices:
            labels = dict(zip(option.choices, option.choice_labels or option.choices, strict=True))
            return str(labels[value])
        return value if isinstance(value, str) else f"{option.shown(value):.10g}"

    @property
    def texts(self) -> tuple[str, ...]:
        """The values as people type them (see `read_values`)."""
        return texts_of(self.values, self.option)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "kind": "counts" if self.of_counts else "people",
            "settings": self.settings.to_dict(),
            "name": self.name,
            "values": list(self.values),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Back from JSON, checked again."""
        of = CountLearnSettings if values["kind"] == "counts" else StudySettings
        return cls(of.from_dict(values["settings"]), values["name"], tuple(values["values"]))


def variable(settings: AnySettings) -> dict[str, Option]:
    """Settings that can be varied, by name; sizes of the cells of people are of their kind of grid.

    >>> from agg_core.study.settings import CountLearnSettings
    >>> list(variable(CountLearnSettings()))
    ['time', 'strength', 'prior', 'count_error', 'expansion', 'reach_m', 'seed']
    """
    if isinstance(settings, CountLearnSettings):
        known = options_of(settings)
        return {name: known[name] for name in OF_COUNTS}
    known = options_of(settings.learn)
    found = {name: known[name] for name in OF_PEOPLE}
    of_grid = {name: opt for name, (kind, opt) in CELLS.items() if type(settings.grid) is kind}
    return found | of_grid


def to_be_used(settings: AnySettings, name: str) -> AnySettings:
    """The settings, changed so that a setting is of use: a prior that is given, not chosen."""
    of = {"prior": "strength", "assumed": "noise", "assumed_m": "noise"}
    if name not in of:
        return settings
    return _with(settings, of[name], "given")


def suggested_values(
    settings: AnySettings, name: str, n_people: int | None = None
) -> tuple[Value, ...]:
    """Values to begin with, all of which can be: choices, or numbers about what is usual.

    Groups are of ``n_people`` at most, where it is known how many there are.
    """
    option = variable(settings)[name]
    given: tuple[Value, ...] = SUGGESTED.get(name, ())
    if name == GRID and isinstance(settings, StudySettings):
        assert isinstance(settings.grid, GridSettings)
        rows, cols = settings.grid.rows, settings.grid.cols
        given = tuple(
            dict.fromkeys(
                f"{_within(rows * by)}x{_within(cols * by)}" for by in (0.5, 0.75, 1.0, 1.5)
            )
        )
    elif name in (MESH, H3) and isinstance(settings, StudySettings):
        grid = settings.grid
        now = grid.level if isinstance(grid, MeshSettings) else getattr(grid, "resolution", 0)
        given = (now - 1, now, now + 1)
    elif name == "group_size" and n_people is not None:
        given = tuple(size for size in SIZES if size <= n_people)
    elif option.choices:
        given = option.choices
    return tuple(value for value in given if _can_be(settings, name, value))[:MOST_VALUES]


SIZES = (1, 5, 20, 50)
SUGGESTED: Mapping[str, tuple[Value, ...]] = {
    "group_size": SIZES,
    "misclassify": (0.0, 0.05, 0.1, 0.2),
    "sigma_m": (0.0, 200.0, 500.0, 1000.0),
    "assumed": (0.0, 0.05, 0.1, 0.2),
    "assumed_m": (0.0, 200.0, 500.0, 1000.0),
    "calibrate": (0, 1, 2),
    "prior": (0.0, 1.0, 5.0, 20.0, 100.0),
    "iterations": (10, 30, 100),
    "reach_m": (2000.0, 5000.0, 10_000.0),
    "seed": (0, 1, 2, 3, 4),
    "count_error": (0.0, 0.02, 0.05, 0.1),
    "expansion": (1.0, 2.0, 5.0),
}
MOST_A_SIDE = 100
"""Rows, or columns, of a grid at most."""


def _within(cells: float) -> int:
    return min(max(round(cells), 1), MOST_A_SIDE)


def _can_be(settings: AnySettings, name: str, value: Value) -> bool:
    try:
        found = _with(to_be_used(settings, name), name, value)
    except InputError:
        return False
    learn = found.learn if isinstance(found, StudySettings) else found
    return name not in learn.unused


def read_values(kind: type[AnySettings], name: str, texts: Sequence[str]) -> tuple[Value, ...]:
    """Values of a setting as people type them: numbers in the unit that they see.

    >>> read_values(StudySettings, "reach_m", ["2", "5.5"])
    (2000.0, 5500.0)

    Raises
    ------
    InputError
        If such settings have none of that name to vary, or a text is none of its values.
    """
    known = OF_COUNTS if kind is CountLearnSettings else (*OF_PEOPLE, *CELLS)
    if name not in known:
        raise _unknown(name, known)
    of = _field(kind, name)
    option = CELLS[name][1] if of is None else of.metadata["option"]
    return tuple(_read(text.strip(), of, option) for text in texts)


def first_at(kind: type[AnySettings], name: str, values: Sequence[Value]) -> dict[str, Value]:
    """A setting of learning at the first of its values, to make the settings that a `Sweep` has.

    Nothing of other names and without values, of which the `Sweep` tells.

    Raises
    ------
    InputError
        If the value is of another type.
    """
    if name not in (OF_COUNTS if kind is CountLearnSettings else OF_PEOPLE) or not len(values):
        return {}
    of = _field(kind, name)
    assert of is not None, "settings of learning are fields"
    return {name: _as_typed(values[0], of, of.metadata["option"])}


def check_used(stated: Iterable[str], sweep: Sweep) -> None:
    """Refuse settings of learning that were stated and are of use at none of the values.

    Raises
    ------
    InputError
        If there is one.
    """
    learns = [each.learn if isinstance(each, StudySettings) else each for each in sweep.each]
    for name in stated:
        if all(name in learn.unused for learn in learns):
            raise InputError(
                f"{learns[0].unused_by} makes no use of {name}; leave it out.",
                f"--{name.replace('_', '-')}",
                code="option-unused",
            )


def texts_of(values: Iterable[Value], option: Option) -> tuple[str, ...]:
    """The values of a setting as people type them."""
    return tuple(
        value if isinstance(value, str) else f"{option.shown(value):.10g}" for value in values
    )


def _unknown(name: str, known: Iterable[str]) -> InputError:
    return InputError(
        f"The setting {str(name)[:40]!r} cannot be varied here; choose one of {', '.join(known)}.",
        code="unknown-option",
    )


def _field(kind: Any, name: str) -> Field[Any] | None:
    """The field of the setting; None of cells by rows and columns."""
    if name == GRID:
        return None
    if kind is StudySettings:
        kind = CELLS[name][0] if name in CELLS else LearnSettings
    called = {MESH: "level", H3: "resolution"}.get(name, name)
    return next(each for each in fields(kind) if each.name == called)


def _kind_of(of: Field[Any] | None) -> str:
    return "str" if of is None else str(of.type).split(" |")[0]


def _as_typed(value: Any, of: Field[Any] | None, option: Option) -> Value:
    """A value of the kind that the setting has; whole numbers are numbers, truths are none."""
    kind = _kind_of(of)
    if kind == "float" and type(value) in (int, float):
        value = float(value)
    if type(value).__name__ != kind:
        raise _wrong(value, kind, option)
    if of is None:
        rows, cols = parse_grid_size(value)
        return f"{rows}x{cols}"
    found: Value = value
    return found


def _read(text: str, of: Field[Any] | None, option: Option) -> Value:
    kind = _kind_of(of)
    try:
        if kind == "int":
            return int(text)
        return option.kept(float(text)) if kind == "float" else text
    except ValueError:
        raise _wrong(text, kind, option) from None


def _wrong(value: Any, kind: str, option: Option) -> InputError:
    """What is said of a value of another type."""
    not_this = f"with commas between them, not {str(value)[:40]!r}."
    if kind == "int":
        return InputError(
            f"{option.label} takes whole numbers {not_this}", code="not-whole-numbers"
        )
    if kind == "float":
        return InputError(f"{option.label} takes numbers {not_this}", code="not-a-number")
    return InputError(f"{option.label} takes texts {not_this}", code="not-a-choice")


def _with(settings: AnySettings, name: str, value: Any) -> AnySettings:
    """The settings with one of them at another value."""
    if isinstance(settings, CountLearnSettings):
        return replace(settings, **{name: value})
    grid = settings.grid
    if name == GRID and isinstance(grid, GridSettings):
        rows, cols = parse_grid_size(value)
        return replace(settings, grid=replace(grid, rows=rows, cols=cols, names=()))
    if name == MESH and isinstance(grid, MeshSettings):
        return replace(settings, grid=replace(grid, level=value, codes=()))
    if name == H3 and isinstance(grid, HexSettings):
        return replace(settings, grid=replace(grid, resolution=value, cells=()))
    return replace(settings, learn=replace(settings.learn, **{name: value}))


@dataclass(frozen=True)
class SweepProgress:
    """``done`` of ``n_values`` values are done, and ``label`` says which one is next to be."""

    done: int
    n_values: int
    label: str

    @property
    def share(self) -> float:
        """Share of the values done, 0 to 1."""
        return self.done / self.n_values


@dataclass(frozen=True)
class SweepRow:
    """What the study at one value found: `FIGURES`, nan where a figure has no meaning.

    ``learner`` is who learned in the end. Where the study failed ``fault`` says why, in a sentence,
    and ``code`` as that of an `InputError`; all figures are nan then.
    """

    value: Value
    learner: str = ""
    n_states: float = math.nan
    movers: float = math.nan
    movers_low: float = math.nan
    movers_high: float = math.nan
    share_moving: float = math.nan
    cpc: float = math.nan
    total_ratio: float = math.nan
    chances_apart: float = math.nan
    cpc_counted: float = math.nan
    ratio_counted: float = math.nan
    delta_nll: float = math.nan
    held_out_mae: float = math.nan
    held_out_gain: float = math.nan
    held_out_score: float = math.nan
    cpu_s: float = math.nan
    fault: str = ""
    code: str = ""

    @property
    def figures(self) -> dict[str, float]:
        """Its figures by name."""
        return {name: getattr(self, name) for name in FIGURES}

    def to_dict(self) -> dict[str, Any]:
        """For JSON: what has no meaning, or no end, becomes None."""
        return {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in asdict(self).items()
        }


@dataclass(frozen=True)
class SweepResult:
    """What a sweep found: a row a value, in the order of the values."""

    sweep: Sweep
    rows: tuple[SweepRow, ...]
    wall_s: float

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the figures that are found of such data; an interval where there are some."""
        others = {*COMPARED} if self.sweep.of_counts else {*HELD_OUT}
        if all(math.isnan(row.movers_low) for row in self.rows):
            others |= {*INTERVAL}
        return tuple(name for name in FIGURES if name not in others)

    @property
    def table(self) -> pd.DataFrame:
        """Value, its label, the figures of `columns`, learner and fault; a row a value."""
        table = pd.DataFrame(
            {name: [getattr(row, name) for row in self.rows] for name in self.columns}
        )
        table.insert(0, "value", [row.value for row in self.rows])
        table.insert(1, "label", list(self.sweep.labels))
        table["learner"] = [row.learner for row in self.rows]
        table["fault"] = [row.fault for row in self.rows]
        return table

    def summary(self) -> dict[str, Any]:
        """The same in plain JSON types."""
        named = ("value", *self.columns, "learner", "fault", "code")
        return {
            "sweep": self.sweep.name,
            "rows": [{name: row.to_dict()[name] for name in named} for row in self.rows],
            "wall_s": round(self.wall_s, 3),
        }


def check_sweep(data: Trajectories | CountTable, sweep: Sweep) -> None:
    """Refuse values that such data cannot be learned from, before anything is learned.

    Raises
    ------
    InputError
        As the study of such a value would: if a group would be larger than the people there are,
        nobody is in the cells, or counts do not tell flows without the prior that is left out.
    """
    if sweep.of_counts:
        assert isinstance(data, CountTable), "settings and data are of one kind"
        _check_counts(data, sweep)
        return
    assert isinstance(data, Trajectories), "settings and data are of one kind"
    largest: dict[Any, StudySettings] = {}
    for settings in sweep.each:
        assert isinstance(settings, StudySettings)
        key = settings.grid, settings.window, settings.learn.reach_m
        known = largest.get(key)
        # Whoever can be grouped by many can be grouped by few.
        if known is None or settings.learn.group_size > known.learn.group_size:
            largest[key] = settings
    for settings in largest.values():
        check_people(data, settings)


def _check_counts(table: CountTable, sweep: Sweep) -> None:
    told: dict[float | None, Any] = {}
    for settings in sweep.each:
        assert isinstance(settings, CountLearnSettings)
        settings.days.check(table)
        if settings.reach_m not in told:
            told[settings.reach_m] = check_identifiable(table, settings.reach_m)
        known = told[settings.reach_m]
        if settings.strength == "given" and settings.prior == 0 and not known.identified:
            raise InputError(known.refusal, code="flows-not-identified")


def sweep_steps(
    data: Trajectories | CountTable, sweep: Sweep
) -> Iterator[SweepProgress | SweepResult]:
    """Run the study at each value: progress on the way, the `SweepResult` at the end.

    The engine in use does the values side by side. A value whose study fails has a row that says
    why.

    Raises
    ------
    InputError
        As `check_sweep`, or if no study went well.
    EngineError
        If the engine fails.
    """
    began = time.perf_counter()
    check_sweep(data, sweep)
    labels, rows = sweep.labels, []
    yield SweepProgress(0, len(labels), labels[0])
    items = list(enumerate(zip(sweep.values, sweep.each, strict=True)))
    for row in checkpoints().each("value", partial(_row_of, data), items):
        rows.append(row)
        done = len(rows)
        yield SweepProgress(done, len(labels), labels[min(done, len(labels) - 1)])
    if all(row.fault for row in rows):
        raise InputError(rows[0].fault, code=rows[0].code)
    yield SweepResult(sweep, tuple(rows), time.perf_counter() - began)


def _row_of(
    data: Trajectories | CountTable, item: tuple[int, tuple[Value, AnySettings]]
) -> SweepRow:
    """What the study at one value finds."""
    number, (value, settings) = item
    began = time.thread_time()
    try:
        # Names of what is kept are those of one study: each has a folder of its own.
        with use_checkpoints(checkpoints().below(f"value/{number}")):
            if isinstance(settings, StudySettings):
                assert isinstance(data, Trajectories)
                row = _row_of_people(data, settings, value)
            else:
                assert isinstance(data, CountTable)
                row = _row_of_counts(data, settings, value)
    except EngineError:
        raise
    except InputError as fault:
        return SweepRow(value, fault=str(fault), code=fault.code)
    return replace(row, cpu_s=time.thread_time() - began)


def _row_of_people(data: Trajectories, settings: StudySettings, value: Value) -> SweepRow:
    result = last_of(study_steps(data, settings))
    assert isinstance(result, StudyResult)
    told = result.summary()
    nats = likelihoods_of_people(data, result)
    both_impossible = all(map(math.isinf, nats.values()))
    return SweepRow(
        value=value,
        learner=result.learner,
        n_states=float(result.n_states),
        movers=told["movers"],
        **_interval(told),
        share_moving=told["movers"] / max(result.n_sequences, 1),
        cpc=result.vs_single.cpc,
        total_ratio=result.vs_single.total_ratio,
        chances_apart=_chances_apart(result),
        cpc_counted=result.vs_counted.cpc,
        ratio_counted=result.vs_counted.total_ratio,
        delta_nll=math.nan if both_impossible else nats["single"] - nats["estimate"],
    )


def _interval(told: Mapping[str, Any]) -> dict[str, Any]:
    return {name: math.nan if told[name] is None else told[name] for name in INTERVAL}


def _chances_apart(result: StudyResult) -> float:
    """Share of the people whose next cell is another by the chances of groups and of M = 1."""
    apart = people = 0.0
    for at in result.by_time:
        flows = result.matrix(at.time, "single")
        there = at_origin(flows, origin_sums(flows))
        far = np.abs(entries(at.estimate.transmat) - entries(at.single.transmat))
        apart += float((there * far).sum()) / 2
        people += float(entries(flows).sum())
    return apart / people if people > 0 else math.nan


def _row_of_counts(data: CountTable, settings: CountLearnSettings, value: Value) -> SweepRow:
    result = last_of(count_study_steps(data, settings))
    assert isinstance(result, CountStudy)
    told = result.summary()
    held = {
        method: {name: math.nan if at[name] is None else at[name] for name in at}
        for method, at in told["held_out"].items()
    }
    still = held["persistence"]["mae"]
    people = float(result.rows(WHOLE_DAY)["count"].sum())
    return SweepRow(
        value=value,
        learner=result.learner,
        n_states=float(len(result.states.names)),
        movers=told["movers"],
        **_interval(told),
        share_moving=told["movers"] / people if people > 0 else math.nan,
        held_out_mae=held["learned"]["mae"],
        held_out_gain=held["learned"]["mae"] / still if still > 0 else math.nan,
        held_out_score=held["learned"]["score"],
    )


def megabytes_of_sweep(each: Sequence[float], n_workers: int) -> float:
    """Memory that a sweep takes, of what its studies take: the largest, as often as at once."""
    return max(each) * min(n_workers, len(each))


def lasting_of_sweep(each: Sequence[Lasting], n_workers: int) -> Lasting:
    """How long a sweep takes, of how long its studies do: all at once at best, else in turn."""
    at_once = max(min(n_workers, len(each)), 1)
    lows = [one.low_s for one in each]
    return Lasting(max(*lows, sum(lows) / at_once), sum(one.high_s for one in each))
