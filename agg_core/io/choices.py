"""What a person may say about their file; everything they leave open is found out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Self

from agg_core.base.errors import InputError
from agg_core.base.options import Checked, option_field, options_of
from agg_core.base.report import printable
from agg_core.io.guess.times import TIME_FORMATS
from agg_core.io.guess.units import PLACE_UNITS

__all__ = ["FIRST_DAY", "LAST_DAY", "OPENING", "Choices", "Stated", "check_box"]

_SPOKEN_VALUES: Mapping[str, Mapping[str, Any]] = {
    "swap_axes": {"swapped": True, "as named": False},
    "header": {"first row": True, "no header": False},
    "flip_y": {"from the north": True, "from the south": False},
}
"""What alternatives in words are as values of their choice."""

FIRST_DAY: Any = option_field(None, "First day", "Leave out what is before: 2024-01-31.")
LAST_DAY: Any = option_field(None, "Last day", "Leave out what is after: 2024-01-31.")

OPENING = ("header", "separator", "encoding", "sheet")
"""Choices of how the table of a file is found, before any of its columns is."""

Columns = tuple[tuple[str, str | int], ...]


@dataclass(frozen=True)
class Stated(Checked):
    """What is said of any file: its columns, the rows to keep, how it is opened, and more.

    ``columns`` holds pairs of role and name, or position from 0, of its column; ``where`` pairs of
    a column and the value that rows to keep have in it.
    """

    columns: Columns = ()
    where: tuple[tuple[str, str], ...] = ()
    tz: str | None = option_field(
        None, "Time zone", "Zone of times without one, and of the clock to show: Asia/Tokyo."
    )
    time_format: str | None = option_field(
        None, "Time format", "How times are written, where that is open.", choices=TIME_FORMATS
    )
    header: bool | None = option_field(None, "Header row", "Whether the first row names columns.")
    separator: str | None = option_field(
        None, "Separator", "What sets columns apart: comma, tab, semicolon, pipe or a character."
    )
    encoding: str | None = option_field(None, "Encoding", "Of text: utf-8, cp932, latin-1.")
    sheet: str | None = option_field(None, "Sheet", "Sheet of a workbook that holds the table.")

    @classmethod
    def of(
        cls,
        columns: Mapping[str, str | int] | None = None,
        where: Mapping[str, str] | None = None,
        **stated: Any,
    ) -> Self:
        """The choices from mappings and keywords.

        Raises
        ------
        InputError
            If there is no such choice, or it is out of range.
        """
        known = {f.name for f in fields(cls)}
        for name in stated:
            if name not in known:
                raise InputError(
                    f"No choice of reading is called {printable(name)!r}; "
                    f"there are {', '.join(sorted(known))}.",
                    code="unknown-option",
                )
        pairs = tuple((str(column), str(value)) for column, value in (where or {}).items())
        return cls(columns=tuple((columns or {}).items()), where=pairs, **stated)

    def changed(self, option: str, value: str) -> Self:
        """These choices with another one made, as a guess of the report names it.

        ``option`` is the name of a choice, or "column ROLE"; ``value`` one of the alternatives.

        Raises
        ------
        InputError
            If there is no such choice, or the value does not fit it.
        """
        kind, _, role = option.partition(" ")
        if kind == "column":
            others = tuple(pair for pair in self.columns if pair[0] != role)
            return replace(self, columns=(*others, (role, value)))
        if kind not in {f.name for f in fields(self)}:
            raise InputError(
                f"No choice of reading is called {printable(option)!r}.", code="unknown-option"
            )
        return replace(self, **{kind: self.meant(kind, value)})

    @property
    def opening(self) -> dict[str, Any]:
        """What is said of how the table is opened, by the names of `OPENING`."""
        return {name: getattr(self, name) for name in OPENING}

    def meant(self, choice: str, value: str) -> Any:
        """An alternative in words, or a number as text, as the value of its choice.

        Raises
        ------
        InputError
            If the choice is a number and the value is none.
        """
        option = options_of(self).get(choice)
        if option is None or option.least is None or isinstance(getattr(self, choice), tuple):
            return _SPOKEN_VALUES.get(choice, {}).get(value, value)
        try:
            return float(value)
        except ValueError as error:
            raise InputError(
                f"{choice} must be a number, not {printable(value)!r}.", code="not-a-number"
            ) from error

    def to_dict(self) -> dict[str, Any]:
        """In plain JSON types."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The choices that `to_dict` wrote."""
        return cls(**{name: _as_tuples(value) for name, value in values.items()})


def check_box(box: tuple[float, ...], what: str, *, across: bool = False) -> None:
    """Refuse an extent that is none; an empty one is not stated. ``what`` is what it is called.

    Where it may go ``across`` 180 degrees of longitude, west may be more than east (170, -170), if
    it is narrower than half of the globe: what is wider has its sides exchanged.

    Raises
    ------
    InputError
        With what it must be.
    """
    if not box:
        return
    crosses = across and len(box) == 4 and 180 < box[0] - box[2] <= 360
    if not (len(box) == 4 and (box[0] < box[2] or crosses) and -90 <= box[1] < box[3] <= 90):
        raise InputError(
            f"{what} must be west, south, east, north in degrees, west below east and south below "
            "north.",
            code="malformed-extent",
        )


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if isinstance(value, list | tuple) else value


@dataclass(frozen=True)
class Choices(Stated):
    """How to read a file of trajectories. None, no and nothing mean: find out, or leave as it is.

    The roles of ``columns`` are those of `columns.ROLES`.
    """

    crs: str | None = option_field(
        None, "Coordinates", "Reference system of places that are no degrees: EPSG:6677."
    )
    place_unit: str | None = option_field(
        None, "Numbers of places", "What they count, where their size leaves that open.",
        choices=PLACE_UNITS,
    )  # fmt: skip
    places_key: str | None = option_field(
        None, "Key of the places",
        "Column whose values name places of a table beside: tower_id, or cell=tower_id where both "
        "call it differently.",
    )  # fmt: skip
    swap_axes: bool = option_field(
        False, "Swap axes", "Take longitude for latitude and the other way round."
    )
    max_speed: float | None = option_field(
        None, "Fastest", "Set aside fixes that nobody can reach at this speed.", unit="km/h",
        least=1, most=100_000, step=10.0,
    )  # fmt: skip
    max_accuracy: float | None = option_field(
        None, "Least accurate", "Set aside fixes whose accuracy is worse than this.", unit="m",
        least=1, most=1_000_000, step=10.0,
    )  # fmt: skip
    duplicates: str = option_field(
        "last", "Of fixes at one time", "Which of a person's fixes at one time is kept.",
        choices=("last", "first"), choice_labels=("keep the last", "keep the first"),
    )  # fmt: skip
    time_outliers: str = option_field(
        "set aside", "Fixes years from all others", "Wrong clocks make an empty axis of years.",
        choices=("set aside", "keep"),
    )  # fmt: skip
    ids: str | None = option_field(
        None, "Ids in several files", "Whose the same id in another file is.",
        choices=("shared", "per file", "per folder"),
        choice_labels=("the same person's", "another person's", "another's in another folder"),
    )  # fmt: skip
    layout: str | None = option_field(
        None, "Layout", "The public data set that the file is laid out as; none to look at names."
    )
    flip_y: bool = option_field(
        False, "Turn upside down", "Rows of a numbered grid count from the north."
    )

    first_day: str | None = FIRST_DAY
    last_day: str | None = LAST_DAY
    within: tuple[float, ...] = option_field(
        (), "Extent to read", "Leave out fixes that lie outside of west, south, east, north.",
        unit="°", least=-180, most=540,
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        check_box(self.within, "The extent to read", across=True)

    @property
    def by_hand(self) -> bool:
        """Whether anything was stated."""
        return self != Choices()
