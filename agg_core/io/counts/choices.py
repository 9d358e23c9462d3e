"""What a person may say about their file of counts; everything they leave open is found out."""

from __future__ import annotations

from dataclasses import dataclass

from agg_core.base.options import option_field, options_of
from agg_core.io.choices import FIRST_DAY, LAST_DAY, Choices, Stated, check_box

__all__ = ["COARSER", "CORNERS", "COUNT_LAYOUTS", "SOUTH_WEST", "CountChoices"]

COUNT_LAYOUTS = ("docomo", "mlit", "meta", "gbfs", "long", "wide", "transposed")
"""How a file of counts may be laid out."""

COARSER = ("as they are", *(f"{n} level{'s' * (n > 1)} coarser" for n in range(1, 6)))
"""By how many levels cells are merged to larger ones."""

SOUTH_WEST = "from the south-west"
CORNERS = (SOUTH_WEST, "from the north-west")
"""Where cells of a grid begin to be numbered, row by row."""


@dataclass(frozen=True)
class CountChoices(Stated):
    """How to read counts. None, "auto" and nothing mean: find out, or leave as it is.

    The roles of ``columns`` are those of `counts.columns.ROLES`; ``where`` may keep, say, one
    gender of a table that tells them apart.
    """

    layout: str | None = option_field(
        None, "Layout", "What the table is laid out as; none to find out.", choices=COUNT_LAYOUTS
    )
    absent: str = option_field(
        "auto", "A cell without a row", "What it means that a cell is not in the file at a moment.",
        choices=("auto", "suppressed", "zero", "missing"),
    )  # fmt: skip
    dash: str = option_field(
        "missing", "A dash for a count", "What the table means by a dash.",
        choices=("suppressed", "zero", "missing"),
    )  # fmt: skip
    suppressed_below: float | None = option_field(
        None, "Suppressed below", "Counts below this are suppressed by whoever publishes them.",
        unit="people", least=0, most=1_000_000, step=1,
    )  # fmt: skip
    duplicates: str = option_field(
        "auto", "Several counts of one cell at one time",
        "Which is taken; none where they are few: the last. They are never summed unasked.",
        choices=("auto", "last", "first", "sum", "largest"),
    )  # fmt: skip
    placeless: str = option_field(
        "auto", "Cells without a place", "Of a table most of whose cells have one.",
        choices=("auto", "leave out", "keep"),
    )  # fmt: skip
    step_minutes: float | None = option_field(
        None, "Step", "Keep one moment per step: the last in it.", unit="minutes",
        least=0.1, most=100_000, step=5,
    )  # fmt: skip
    first_slot: str | None = option_field(
        None, "First slot", "Local time of slot number 0, where slots are numbered: 09:00."
    )
    slot_minutes: float | None = option_field(
        None, "Length of a slot", "Where slots of a day are numbered.", unit="minutes",
        least=0.1, most=1440, step=5,
    )  # fmt: skip
    coarser: str = option_field(
        COARSER[0], "Merge cells", "To larger cells of the mesh, H3 or web map, or of a numbered "
        "grid by blocks of 2 x 2: fewer cells with more people. Counts are added.",
        choices=COARSER,
    )  # fmt: skip
    bbox: tuple[float, ...] = option_field(
        (), "Extent to keep", "Cells whose middle lies within west, south, east, north stay.",
        unit="°", least=-180, most=540,
    )  # fmt: skip
    grid_box: tuple[float, ...] = option_field(
        (), "Extent of numbered cells", "West, south, east, north of the whole grid whose cells "
        "have numbers, or a row and a column.", unit="°", least=-180, most=180,
    )  # fmt: skip
    grid_rows: int | None = option_field(
        None, "Grid of numbered cells", "How many there are from south to north.",
        unit="rows", least=1, most=100_000, step=1,
    )  # fmt: skip
    grid_cols: int | None = option_field(
        None, "Grid of numbered cells", "How many there are from west to east.",
        unit="columns", least=1, most=100_000, step=1,
    )  # fmt: skip
    grid_corner: str = option_field(
        SOUTH_WEST, "Cells are numbered", "The corner in which numbers begin; row by row.",
        choices=CORNERS,
    )  # fmt: skip
    grid_first: str = option_field(
        "auto", "First number", "Of numbered cells, or of their rows and columns.",
        choices=("auto", "0", "1"),
    )  # fmt: skip
    first_day: str | None = FIRST_DAY
    last_day: str | None = LAST_DAY

    def __post_init__(self) -> None:
        super().__post_init__()
        check_box(self.bbox, "The extent", across=True)
        check_box(self.grid_box, "The extent of numbered cells")
        for name in ("grid_rows", "grid_cols"):
            number = getattr(self, name)
            if number is not None:
                object.__setattr__(self, name, int(number))

    def of_file(self) -> Choices:
        """What of it any table needs to be opened."""
        return Choices(**{name: getattr(self, name) for name in options_of(Stated)}, layout="none")
