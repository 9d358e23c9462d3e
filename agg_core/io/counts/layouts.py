"""Published tables of counts whose columns nobody should have to describe: told by their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agg_core.base.report import Guess, printable
from agg_core.io.guess.columns import ColumnChoice

__all__ = ["OPTIONS", "PUBLISHED_LAYOUTS", "CountColumns", "PublishedLayout"]

Names = Sequence[str]

OPTIONS = (
    *("residence", "age", "gender", "sex", "居住地", "年代", "年齢", "性別", "国籍"),
    "nationality",
)
"""Columns that break counts down."""


@dataclass(frozen=True)
class CountColumns(ColumnChoice):
    """How a table is laid out and the position of each role's column.

    ``options`` break counts down (age, gender); rows that differ in ``parts`` are added; ``wide``
    are the columns of cells of a table with a row per time. ``clock`` says how the column of that
    role is written: "hhmm", "hours", "slots" or "clock".
    """

    layout: str = ""
    title: str = ""
    options: tuple[int, ...] = ()
    parts: tuple[int, ...] = ()
    wide: tuple[int, ...] = ()
    clock: str = ""


@dataclass(frozen=True)
class PublishedLayout:
    """A published table: the plain names of its columns, and its zone.

    Each of ``roles`` has a column of one of these names; ``together`` are there all or none. With
    ``broken_down`` a table is told by a column that breaks counts down. Where ``by_name`` the names
    only tell the table, and each column is found as in any other.
    """

    title: str
    timezone: str
    roles: Mapping[str, Names]
    together: Mapping[str, str] = field(default_factory=dict)
    parts: Names = ()
    clock: str = ""
    broken_down: bool = False
    by_name: bool = False

    def fits(self, plain: Names) -> bool:
        """Whether a table with columns of these plain names is one of it."""
        return all(set(names) & set(plain) for names in self.roles.values()) and (
            not self.broken_down or bool(set(plain) & set(OPTIONS))
        )

    def columns(self, key: str, names: Names, plain: Names) -> CountColumns:
        """The columns of a table that fits, called ``names``."""
        if self.by_name:
            return CountColumns({}, {}, self.timezone, key, self.title)
        spelt = {role: [n for n in known if n in plain] for role, known in self.roles.items()}
        at = {role: plain.index(found[0]) for role, found in spelt.items()}
        if set(self.together.values()) <= set(plain):
            at |= {role: plain.index(name) for role, name in self.together.items()}
        count, *others = (printable(names[plain.index(name)]) for name in spelt["count"])
        guesses = {"count": Guess(count, tuple(others), option="column count")} if others else {}
        options = tuple(i for i, name in enumerate(plain) if self.broken_down and name in OPTIONS)
        parts = tuple(i for i, name in enumerate(plain) if name in self.parts)
        return CountColumns(
            at, guesses, self.timezone, key, self.title, options, parts, clock=self.clock
        )


PUBLISHED_LAYOUTS: Mapping[str, PublishedLayout] = {
    "docomo": PublishedLayout(
        "Mobile Spatial Statistics", "Asia/Tokyo",
        {"date": ("date", "日付"), "clock": ("time", "時間帯"), "cell": ("area", "エリア"),
         "count": ("population", "人口")},
        clock="hhmm", broken_down=True,
    ),
    "mlit": PublishedLayout(
        "MLIT people-flow open data", "Asia/Tokyo",
        {"cell": ("mesh1kmid",), "period": ("timezone",), "count": ("population",),
         "year": ("year",), "month": ("month",), "dayflag": ("dayflag",)},
        parts=("prefcode", "citycode"),
    ),
    "meta": PublishedLayout(
        "Meta population maps", "UTC",
        {"cell": ("quadkey",), "time": ("datetime",), "count": ("ncrisis", "nbaseline")},
        together={"lon": "lon", "lat": "lat"},
    ),
    "gbfs": PublishedLayout(
        "GBFS station status", "UTC",
        {"cell": ("stationid",), "count": ("numbikesavailable", "numvehiclesavailable")},
        by_name=True,
    ),
}  # fmt: skip
"""Layouts in the order in which they are tried."""
