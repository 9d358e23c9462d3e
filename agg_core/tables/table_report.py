"""What happened to a table that is no track of anybody on its way in: trips, movements, places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agg_core.base.report import Guess, SetAside
from agg_core.tables.row_account import (
    account_lines,
    account_of,
    account_to_dict,
    guess_lines,
    line,
)

__all__ = ["TableReport"]


@dataclass(frozen=True)
class TableReport:
    """The account of one table: every row read is kept or counted in ``set_aside`` (by cause).

    ``figures`` are what is told of the rows kept, by what they are.
    """

    rows_read: int
    rows_kept: int
    set_aside: Mapping[str, SetAside] = field(default_factory=dict)
    guesses: Mapping[str, Guess] = field(default_factory=dict)
    figures: Mapping[str, object] = field(default_factory=dict)

    def to_dict(self) -> dict[str, object]:
        """The report in plain JSON types."""
        return {**account_to_dict(self), **self.figures}

    @classmethod
    def from_dict(cls, report: Mapping[str, Any]) -> TableReport:
        """The report that `to_dict` wrote."""
        own = account_of(report)
        figures = {
            name: value for name, value in report.items()
            if name not in own and name != "set_aside_examples"
        }  # fmt: skip
        return cls(**own, figures=figures)

    def to_text(self) -> str:
        """The report as lines for a terminal."""
        lines = account_lines(self)
        for name, value in self.figures.items():
            shown = f"{value:,}" if isinstance(value, int | float) else str(value)
            lines.append(line(name.replace("_", " ").capitalize(), shown))
        return "\n".join([*lines, *guess_lines(self)])
