"""What happened to a file on its way in: rows kept, rows set aside and why, and every guess."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from agg_core.base.report import Guess, SetAside
from agg_core.tables.row_account import (
    account_lines,
    account_of,
    account_to_dict,
    guess_lines,
    line,
)

__all__ = ["ImportReport"]


@dataclass(frozen=True)
class ImportReport:
    """The account of one import.

    Every row read is either kept or counted in ``set_aside`` (by cause). ``fixes_per_individual``
    is least, median, most; ``bbox`` is west, south, east, north in degrees; ``timezone`` is the
    zone whose clock the data are shown in.
    """

    rows_read: int
    rows_kept: int
    individuals: int
    fixes_per_individual: tuple[int, float, int]
    first_utc: pd.Timestamp
    last_utc: pd.Timestamp
    bbox: tuple[float, float, float, float]
    timezone: str
    set_aside: Mapping[str, SetAside] = field(default_factory=dict)
    guesses: Mapping[str, Guess] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The report in plain JSON types."""
        return {
            **account_to_dict(self),
            "individuals": self.individuals,
            "fixes_per_individual": list(self.fixes_per_individual),
            "first_utc": self.first_utc.isoformat(),
            "last_utc": self.last_utc.isoformat(),
            "bbox": list(self.bbox),
            "timezone": self.timezone,
        }

    @classmethod
    def from_dict(cls, report: Mapping[str, Any]) -> ImportReport:
        """The report that `to_dict` wrote."""
        least, median, most = report["fixes_per_individual"]
        west, south, east, north = report["bbox"]
        return cls(
            **account_of(report),
            individuals=int(report["individuals"]),
            fixes_per_individual=(int(least), float(median), int(most)),
            first_utc=pd.Timestamp(report["first_utc"]),
            last_utc=pd.Timestamp(report["last_utc"]),
            bbox=(float(west), float(south), float(east), float(north)),
            timezone=str(report["timezone"]),
        )

    def to_text(self) -> str:
        """The report as lines for a terminal."""
        least, median, most = self.fixes_per_individual
        west, south, east, north = self.bbox
        lines = account_lines(self)
        lines += [
            line("Individuals", f"{self.individuals:,}"),
            line("Fixes per individual", f"{least:,} to {most:,}, median {median:,g}"),
            line("First fix", f"{self.first_utc:%Y-%m-%d %H:%M:%S} UTC"),
            line("Last fix", f"{self.last_utc:%Y-%m-%d %H:%M:%S} UTC"),
            line("West, south", f"{west:.6f}, {south:.6f}"),
            line("East, north", f"{east:.6f}, {north:.6f}"),
            line("Clock", self.timezone),
        ]
        return "\n".join([*lines, *guess_lines(self)])
