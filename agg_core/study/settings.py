"""Settings of a study, said once: forms, command line and checks are made from these fields."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any, Self

from agg_core.base.errors import InputError
from agg_core.base.options import Checked, Option, option_field, options_of
from agg_core.space import AreaGrid, HexGrid, MeshGrid, RectangleGrid
from agg_core.space.grid import Bounds, Grid
from agg_core.space.hexagons import FINEST_RESOLUTION
from agg_core.space.mesh import MESH_SIZES

__all__ = [
    "CALIBRATED",
    "GRID_KINDS",
    "AnyGridSettings",
    "AreaSettings",
    "Checked",
    "CountLearnSettings",
    "GridSettings",
    "HexSettings",
    "LearnSettings",
    "MeshSettings",
    "Option",
    "StudySettings",
    "WindowSettings",
    "grid_kind",
    "grid_words",
    "option_field",
    "options_of",
    "parse_anchor",
    "parse_bbox",
    "parse_grid_size",
    "parse_minutes",
]


@dataclass(frozen=True)
class GridSettings(Checked):
    """The extent in degrees and the blocks it is divided into; ``names`` where these have any."""

    west: float = option_field(139.28, "West", "Western border.", unit="°", least=-180, most=180)
    south: float = option_field(35.36, "South", "Southern border.", unit="°", least=-90, most=90)
    east: float = option_field(140.24, "East", "Eastern border.", unit="°", least=-180, most=180)
    north: float = option_field(36.06, "North", "Northern border.", unit="°", least=-90, most=90)
    rows: int = option_field(14, "Rows", "Blocks from south to north.", least=1, most=100, step=1)
    cols: int = option_field(16, "Columns", "Blocks from west to east.", least=1, most=100, step=1)
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.names and len(self.names) != self.rows * self.cols:
            raise InputError("Blocks that have names need as many as there are blocks.")
        self.make()

    def make(self) -> RectangleGrid:
        """The grid itself."""
        grid = Grid.from_bbox(self.west, self.south, self.east, self.north, self.rows, self.cols)
        return replace(grid, names=self.names) if self.names else grid

    @property
    def bounds(self) -> Bounds:
        """West, south, east, north in degrees."""
        return self.west, self.south, self.east, self.north


@dataclass(frozen=True)
class MeshSettings(Checked):
    """Japan's grid squares of a level over an extent in degrees, or those of given codes."""

    west: float = option_field(139.28, "West", "Western border.", unit="°", least=-180, most=180)
    south: float = option_field(35.36, "South", "Southern border.", unit="°", least=-90, most=90)
    east: float = option_field(140.24, "East", "Eastern border.", unit="°", least=-180, most=180)
    north: float = option_field(36.06, "North", "Northern border.", unit="°", least=-90, most=90)
    level: int = option_field(
        2, "Level", "Size of the cells of the JIS X 0410 mesh; their codes have 4, 6, 8, 9, 10 "
        "and 11 digits.",
        choices=tuple(MESH_SIZES),
        choice_labels=tuple(f"{level}: {size}" for level, size in MESH_SIZES.items()),
    )  # fmt: skip
    codes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        self.make()

    def make(self) -> MeshGrid:
        """The grid itself."""
        return _mesh(self)

    @property
    def bounds(self) -> Bounds:
        """West, south, east, north in degrees."""
        return self.west, self.south, self.east, self.north


@dataclass(frozen=True)
class HexSettings(Checked):
    """H3 cells of a resolution over an extent in degrees, or given ones."""

    west: float = option_field(139.28, "West", "Western border.", unit="°", least=-180, most=180)
    south: float = option_field(35.36, "South", "Southern border.", unit="°", least=-90, most=90)
    east: float = option_field(140.24, "East", "Eastern border.", unit="°", least=-180, most=180)
    north: float = option_field(36.06, "North", "Northern border.", unit="°", least=-90, most=90)
    resolution: int = option_field(
        6, "Resolution", "Size of the H3 cells: each step finer has about seven times as many.",
        least=0, most=FINEST_RESOLUTION, step=1,
    )  # fmt: skip
    cells: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        self.make()

    def make(self) -> HexGrid:
        """The grid itself."""
        return _hexagons(self)

    @property
    def bounds(self) -> Bounds:
        """West, south, east, north in degrees."""
        return self.west, self.south, self.east, self.north


@dataclass(frozen=True)
class AreaSettings:
    """A person's own areas: their names and shapes, and where they come from.

    ``packed`` holds the shapes to the last bit (`agg_core.space.areas.pack`); ``file`` and
    ``column`` are for the reader.
    """

    names: tuple[str, ...]
    packed: str = field(repr=False)
    file: str = ""
    column: str = ""

    def __post_init__(self) -> None:
        self.make()

    @classmethod
    def of(cls, grid: AreaGrid, file: str = "") -> AreaSettings:
        """The settings of areas that were made from a file."""
        column = "" if grid.report is None else grid.report.named.value
        return cls(grid.names, grid.packed, file, column)

    def make(self) -> AreaGrid:
        """The grid itself."""
        return _areas(self)

    @property
    def bounds(self) -> Bounds:
        """West, south, east, north in degrees."""
        return self.make().bounds


AnyGridSettings = GridSettings | MeshSettings | HexSettings | AreaSettings
"""Settings of a grid of any kind."""

GRID_KINDS: dict[str, type[AnyGridSettings]] = {
    "rectangle": GridSettings,
    "mesh": MeshSettings,
    "h3": HexSettings,
    "areas": AreaSettings,
}
"""Kinds of grid by their name in a settings file, where that of the first is left out."""


# Cells that are no rectangle take long enough to make that a page should not wait twice.
@lru_cache(maxsize=8)
def _mesh(settings: MeshSettings) -> MeshGrid:
    return Grid.from_mesh(
        settings.level if not settings.codes else None, settings.bounds, codes=settings.codes
    )


@lru_cache(maxsize=8)
def _hexagons(settings: HexSettings) -> HexGrid:
    return Grid.from_h3(
        settings.resolution if not settings.cells else None, settings.bounds, cells=settings.cells
    )


@lru_cache(maxsize=8)
def _areas(settings: AreaSettings) -> AreaGrid:
    grid = AreaGrid(settings.names, settings.packed)
    if not settings.names or len(grid.polygons) != len(settings.names):
        raise InputError("A grid of areas needs one at least; choose a file with polygons.")
    return grid


@dataclass(frozen=True)
class WindowSettings(Checked):
    """How time is cut: steps, windows of T steps, and when they begin."""

    step_minutes: int = option_field(
        30, "Time step", "A person is in one block per step: the last one seen.",
        unit="minutes", least=1, most=1440, step=5,
    )  # fmt: skip
    length: int = option_field(
        3, "Steps per window, T", "Length of the sequences that the model is learned from.",
        least=2, most=48, step=1,
    )  # fmt: skip
    anchors: tuple[str, ...] = option_field(
        (), "Windows begin at", "Local times; none cuts the whole day into windows of T steps."
    )
    max_gap_minutes: int | None = option_field(
        None, "Longest gap", "Fixes further apart start a new track. Left out: twice the step.",
        unit="minutes", least=1, most=10_080, step=5,
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        # A time given twice is one time.
        object.__setattr__(self, "anchors", tuple(dict.fromkeys(self.anchors)))

    @property
    def step(self) -> str:
        """The step as pandas spells it."""
        return f"{self.step_minutes}min"

    @property
    def max_gap(self) -> str | None:
        """The longest gap as pandas spells it."""
        return None if self.max_gap_minutes is None else f"{self.max_gap_minutes}min"


FROM_POSITIONS = ("auto", "sampling", "cavity", "cfb")
"""Learners that take positions of people."""

CALIBRATED = ("cfb", "cavity")
"""Learners whose E-step can be calibrated by simulation."""


@dataclass(frozen=True)
class LearnSettings(Checked):
    """Noise, aggregation and the learner."""

    group_size: int = option_field(
        20, "Group size, M", "People per group of whom only the counts are kept. 1 hides nothing.",
        unit="people", least=1, most=1_000_000, step=1,
    )  # fmt: skip
    observed: str = option_field(
        "blocks", "Observations",
        "Blocks: how many people of a group are in each block. Positions: where the people of a "
        "group are, in metres with noise, but not who is where.",
        choices=("blocks", "positions"),
        choice_labels=("Counts of people per block", "Positions of people (Gaussian)"),
    )  # fmt: skip
    misclassify: float = option_field(
        0.05, "Chance of a neighbour block",
        "How likely a person is counted in a block that touches their own, from 0, never, to 1, "
        "always. Positions are not counted in blocks.",
        least=0.0, most=1.0, step=0.01,
    )  # fmt: skip
    sigma_m: float = option_field(
        0.0, "Position noise", "Standard deviation of Gaussian noise on each position.",
        unit="metres", least=0.0, most=100_000.0, step=50.0,
    )  # fmt: skip
    inference: str = option_field(
        "auto",
        "Learner",
        "How flows are learned from counts. The best for the data is sampling of who is who where "
        "cells hold few people, Gaussian pairs where they hold many. CFB is the paper's learner, "
        "which invents movement in groups. Single people are learned from exactly, by any.",
        choices=(
            "auto", "sampling", "cavity", "gaussian_pairs", "cfb", "moments", "nlbp", "bethe_rda",
            "prox",
        ),
        choice_labels=(
            "Best for the data",
            "Sampling of who is who",
            "Cavity CFB",
            "Gaussian pairs",
            "Collective forward-backward (the paper's)",
            "Conditional least squares",
            "NLBP, Poisson noise",
            "Bethe-RDA, Poisson noise",
            "Prox, Poisson noise",
        ),
    )  # fmt: skip
    calibrate: int = option_field(
        0, "Simulated replicates",
        "Groups simulated in each iteration, as many times as this, to find and take away the "
        "error of the learner itself. For CFB and cavity CFB; 0: none.",
        least=0, most=50, step=1,
    )  # fmt: skip
    prior: float = option_field(
        2.0, "Weight of the prior",
        "People per block that move as distance foretells, with the share of stays and the fall "
        "with distance that all blocks together show: blocks with few people borrow from the "
        "others. For sampling, cavity CFB and Gaussian pairs; the other learners are as published.",
        unit="people", least=0.0, most=10_000.0, step=0.5,
    )  # fmt: skip
    start: str = option_field(
        "distance",
        "Start",
        "Where learning from groups begins: most people stay and the others go near, or the "
        "least squares fit of each group's next counts on its present ones, which needs many "
        "groups per block.",
        choices=("distance", "moments"),
        choice_labels=("Distance decay", "Conditional least squares"),
    )
    iterations: int = option_field(
        60, "Iterations", "Most EM iterations; a fit that stands still ends earlier.",
        least=1, most=5_000, step=10,
    )  # fmt: skip
    threshold: float = option_field(
        35.0, "Arrow threshold", "Flows above this are arrows, on the map and in the comparison.",
        unit="people per step", least=0.0, most=1e9, step=5.0,
    )  # fmt: skip
    seed: int = option_field(
        0, "Seed", "Draws the noise and the groups; the same seed gives the same figures.",
        least=0, most=2**31 - 1, step=1,
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.observed == "positions" and (
            self.inference not in FROM_POSITIONS or self.start != "distance"
        ):
            raise InputError(
                "Positions can be learned from by sampling, cavity CFB and CFB and from the "
                "distance decay start only; choose these, or observe blocks."
            )


@dataclass(frozen=True)
class CountLearnSettings(Checked):
    """How flows are learned where there are only counts."""

    time: str = option_field(
        "auto", "Times of day",
        "Whether people move by the same chances all day, or by others at each time of day, which "
        "takes many people or many days to tell.",
        choices=("auto", "one", "by_time"),
        choice_labels=("Best for the data", "The same all day", "Each time of day its own"),
    )  # fmt: skip
    strength: str = option_field(
        "auto", "Strength of the prior",
        "How much flows lean on distance and attraction. The best for the data is found by "
        "foretelling the counts of days kept aside; no prior at all is tried too.",
        choices=("auto", "given"),
        choice_labels=("Best for the data", "As given"),
    )  # fmt: skip
    prior: float = option_field(
        20.0, "Weight of the prior",
        "People per cell who move as distance and attraction foretell; 0 for none.",
        unit="people", least=0.0, most=100_000.0, step=5.0,
    )  # fmt: skip
    trust: float = option_field(
        1.0, "Trust in the counts",
        "1: counts are exact. Counts that were scaled up from a sample change by chance, which "
        "looks like people who move; below 1, part of each change is taken for that. Learning "
        "takes four times as long then.",
        least=0.05, most=1.0, step=0.05,
    )  # fmt: skip
    replicates: int = option_field(
        12, "Simulated worlds",
        "Worlds simulated from what was learned, and learned from again: they give each flow an "
        "interval. 0: none.",
        least=0, most=200, step=4,
    )  # fmt: skip
    threshold: float = option_field(
        5.0, "Arrow threshold", "Flows above this are arrows on the map.",
        unit="people per step", least=0.0, most=1e9, step=1.0,
    )  # fmt: skip
    seed: int = option_field(
        0, "Seed", "Draws who goes where; the same seed gives the same figures.",
        least=0, most=2**31 - 1, step=1,
    )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Back from JSON, checked again."""
        return cls(**values)


@dataclass(frozen=True)
class StudySettings:
    """Everything that a study depends on, besides the data."""

    grid: AnyGridSettings = field(default_factory=GridSettings)
    window: WindowSettings = field(default_factory=WindowSettings)
    learn: LearnSettings = field(default_factory=LearnSettings)

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """For JSON: all that makes the study again, areas too."""
        parts = {part.name: getattr(self, part.name) for part in fields(self)}
        plain = {
            name: {f.name: _plain(getattr(part, f.name)) for f in fields(part)}
            for name, part in parts.items()
        }
        kind = grid_kind(self.grid)
        if kind != "rectangle":
            plain["grid"] = {"kind": kind, **plain["grid"]}
        elif not plain["grid"]["names"]:
            del plain["grid"]["names"]
        return plain

    @classmethod
    def from_dict(cls, values: dict[str, dict[str, Any]]) -> Self:
        """Back from JSON, checked again."""
        window = dict(values["window"])
        window["anchors"] = tuple(window["anchors"])
        return cls(
            _grid_from_dict(values["grid"]),
            WindowSettings(**window),
            LearnSettings(**values["learn"]),
        )


def grid_kind(settings: AnyGridSettings) -> str:
    """Name of the kind of grid, a key of `GRID_KINDS`."""
    return next(name for name, kind in GRID_KINDS.items() if isinstance(settings, kind))


def grid_words(settings: AnyGridSettings) -> str:
    """What the cells are, in a few words."""
    if isinstance(settings, MeshSettings):
        size = MESH_SIZES[settings.make().level]
        chosen = f", {len(settings.codes):,} chosen" if settings.codes else ""
        return f"JIS mesh of {size}{chosen}"
    if isinstance(settings, HexSettings):
        chosen = f", {len(settings.cells):,} chosen" if settings.cells else ""
        return f"H3 of resolution {settings.make().resolution}{chosen}"
    if isinstance(settings, AreaSettings):
        source = f" of {settings.file}" if settings.file else ""
        named = f", named by {settings.column}" if settings.column else ""
        return f"{len(settings.names):,} areas{source}{named} ({settings.make().digest[:8]})"
    return f"{settings.rows} x {settings.cols} blocks"


def _grid_from_dict(values: dict[str, Any]) -> AnyGridSettings:
    given: dict[str, Any] = {
        name: tuple(v) if isinstance(v, list) else v for name, v in values.items()
    }
    kind = given.pop("kind", "rectangle")
    if kind not in GRID_KINDS:
        raise InputError(
            f"The settings name a kind of grid that is not known ({str(kind)[:20]}); they were "
            "made by a newer version."
        )
    return GRID_KINDS[kind](**given)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def parse_bbox(text: str) -> tuple[float, float, float, float]:
    """``W,S,E,N`` in degrees."""
    try:
        west, south, east, north = (float(part) for part in text.split(","))
    except ValueError:
        raise InputError(
            f"Give the extent as WEST,SOUTH,EAST,NORTH in degrees, not {text!r}."
        ) from None
    return west, south, east, north


def parse_grid_size(text: str) -> tuple[int, int]:
    """``ROWSxCOLS``."""
    found = re.fullmatch(r"\s*(\d{1,6})\s*[xX×]\s*(\d{1,6})\s*", text)
    if not found:
        raise InputError(f"Give the grid as ROWSxCOLS, for example 14x16, not {text!r}.")
    return int(found[1]), int(found[2])


def parse_minutes(text: str) -> int:
    """``20min``, ``1h``, ``0.5h`` or a bare number of minutes."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(min|m|h)?\s*", text)
    minutes = float(found[1]) * (60 if found[2] == "h" else 1) if found else 0.0
    if minutes < 1 or abs(minutes - round(minutes)) > 1e-9:
        raise InputError(f"Give a whole number of minutes, for example 30min or 1h, not {text!r}.")
    return round(minutes)


def parse_anchor(text: str) -> str:
    """A time of day ``H:MM`` or ``HH:MM``, as HH:MM."""
    found = re.fullmatch(r"\s*(\d{1,2}):(\d{2})\s*", text)
    if not found or int(found[1]) > 23 or int(found[2]) > 59:
        raise InputError(f"Give a time of day as HH:MM between 00:00 and 23:59, not {text!r}.")
    return f"{int(found[1]):02d}:{found[2]}"
