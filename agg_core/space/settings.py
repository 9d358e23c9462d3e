"""Settings of a grid of any kind: what forms and options are made from, and what is saved."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any

from agg_core.base.errors import InputError
from agg_core.base.options import Checked, option_field
from agg_core.space import AreaGrid, HexGrid, MeshGrid, RectangleGrid
from agg_core.space.build import Grid
from agg_core.space.grid import Bounds
from agg_core.space.hexagons import FINEST_RESOLUTION
from agg_core.space.mesh import MESH_SIZES

__all__ = [
    "GRID_KINDS",
    "AnyGridSettings",
    "AreaSettings",
    "GridSettings",
    "HexSettings",
    "MeshSettings",
    "grid_from_dict",
    "grid_kind",
    "grid_to_dict",
    "grid_words",
    "parse_bbox",
    "parse_grid_size",
]


@dataclass(frozen=True)
class GridSettings(Checked):
    """The extent in degrees and the cells it is divided into; ``names`` where these have any."""

    west: float = option_field(139.28, "West", "Western border.", unit="°", least=-180, most=180)
    south: float = option_field(35.36, "South", "Southern border.", unit="°", least=-90, most=90)
    east: float = option_field(
        140.24, "East", "Eastern border; over 180 degrees it goes on: 190.", unit="°", least=-180,
        most=540,
    )  # fmt: skip
    north: float = option_field(36.06, "North", "Northern border.", unit="°", least=-90, most=90)
    rows: int = option_field(14, "Rows", "Cells from south to north.", least=1, most=100, step=1)
    cols: int = option_field(16, "Columns", "Cells from west to east.", least=1, most=100, step=1)
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.names and len(self.names) != self.rows * self.cols:
            raise InputError(
                "Cells that have names need as many as there are cells.", code="lengths-differ"
            )
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
    east: float = option_field(
        140.24, "East", "Eastern border; over 180 degrees it goes on: 190.", unit="°", least=-180,
        most=540,
    )  # fmt: skip
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
        raise InputError(
            "A grid of areas needs one at least; choose a file with polygons.", code="no-areas"
        )
    return grid


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
    return f"{settings.rows} x {settings.cols} cells"


def grid_to_dict(settings: AnyGridSettings) -> dict[str, Any]:
    """For JSON: all that makes the grid again, areas too."""
    values = {f.name: getattr(settings, f.name) for f in fields(settings)}
    plain = {name: list(v) if isinstance(v, tuple) else v for name, v in values.items()}
    kind = grid_kind(settings)
    if kind != "rectangle":
        return {"kind": kind, **plain}
    if not plain["names"]:
        del plain["names"]
    return plain


def grid_from_dict(values: Mapping[str, Any]) -> AnyGridSettings:
    """Back from JSON, checked again.

    Raises
    ------
    InputError
        If the kind of grid is not known, or its settings do not make one.
    """
    given: dict[str, Any] = {
        name: tuple(v) if isinstance(v, list) else v for name, v in values.items()
    }
    kind = given.pop("kind", "rectangle")
    if kind not in GRID_KINDS:
        raise InputError(
            f"The settings name a kind of grid that is not known ({str(kind)[:20]}); they were "
            "made by a newer version.",
            code="unknown-grid-kind",
        )
    return GRID_KINDS[kind](**given)


def parse_bbox(text: str) -> tuple[float, float, float, float]:
    """``W,S,E,N`` in degrees."""
    try:
        west, south, east, north = (float(part) for part in text.split(","))
    except ValueError:
        raise InputError(
            f"Give the extent as WEST,SOUTH,EAST,NORTH in degrees, not {text!r}.",
            code="malformed-extent",
        ) from None
    return west, south, east, north


def parse_grid_size(text: str) -> tuple[int, int]:
    """``ROWSxCOLS``."""
    found = re.fullmatch(r"\s*(\d{1,6})\s*[xX×]\s*(\d{1,6})\s*", text)
    if not found:
        raise InputError(
            f"Give the grid as ROWSxCOLS, for example 14x16, not {text!r}.",
            code="malformed-grid-size",
        )
    return int(found[1]), int(found[2])
