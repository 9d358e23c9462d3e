"""What happened to a file on its way in: rows kept, rows set aside and why, and every guess."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from agg_core.base.report import Guess, SetAside

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
            "rows_read": self.rows_read,
            "rows_kept": self.rows_kept,
            "set_aside": {cause: rows.count for cause, rows in self.set_aside.items()},
            "set_aside_examples": {
                cause: {"lines": list(rows.lines), "example": rows.example}
                for cause, rows in self.set_aside.items()
            },
            "guesses": {
                name: {"value": guess.value, "alternatives": list(guess.alternatives)}
                | ({"note": guess.note} if guess.note else {})
                | ({"option": guess.option} if guess.option else {})
                for name, guess in self.guesses.items()
            },
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
        examples = report["set_aside_examples"]
        return cls(
            rows_read=int(report["rows_read"]),
            rows_kept=int(report["rows_kept"]),
            individuals=int(report["individuals"]),
            fixes_per_individual=(int(least), float(median), int(most)),
            first_utc=pd.Timestamp(report["first_utc"]),
            last_utc=pd.Timestamp(report["last_utc"]),
            bbox=(float(west), float(south), float(east), float(north)),
            timezone=str(report["timezone"]),
            set_aside={
                cause: SetAside(
                    int(count), tuple(examples[cause]["lines"]), examples[cause]["example"]
                )
                for cause, count in report["set_aside"].items()
            },
            guesses={
                name: Guess(
                    guess["value"],
                    tuple(guess["alternatives"]),
                    guess.get("note", ""),
                    guess.get("option", ""),
                )
                for name, guess in report["guesses"].items()
            },
        )

    def to_text(self) -> str:
        """The report as lines for a terminal."""
        least, median, most = self.fixes_per_individual
        west, south, east, north = self.bbox
        lines = [
            _row("Rows read", f"{self.rows_read:,}"),
            _row("Rows kept", f"{self.rows_kept:,}"),
            _row("Rows set aside", f"{sum(r.count for r in self.set_aside.values()):,}"),
        ]
        for cause, rows in self.set_aside.items():
            lines.append(_row(f"  {cause}", f"{rows.count:,}  {_where(rows)}"))
        lines += [
            _row("Individuals", f"{self.individuals:,}"),
            _row("Fixes per individual", f"{least:,} to {most:,}, median {median:,g}"),
            _row("First fix", f"{self.first_utc:%Y-%m-%d %H:%M:%S} UTC"),
            _row("Last fix", f"{self.last_utc:%Y-%m-%d %H:%M:%S} UTC"),
            _row("West, south", f"{west:.6f}, {south:.6f}"),
            _row("East, north", f"{east:.6f}, {north:.6f}"),
            _row("Clock", self.timezone),
        ]
        if self.guesses:
            lines.append("Taken as")
        for name, guess in self.guesses.items():
            other = _otherwise(guess)
            note = f" - {guess.note}" if guess.note else ""
            lines.append(_row(f"  {name}", f"{guess.value}{other}{note}"))
        return "\n".join(lines)


def _otherwise(guess: Guess) -> str:
    """What else it could be, and the option of the command line that says so."""
    if not (guess.alternatives or (guess.note and guess.option)):
        return ""
    role = guess.option.removeprefix("column ")
    flag = f"--column {role}=" if role != guess.option else "--" + guess.option.replace("_", "-")
    flag = flag.replace("--header", "--no-header")
    parts = [f"or: {', '.join(guess.alternatives)}"] if guess.alternatives else []
    return f" ({'; '.join([*parts, flag] if guess.option else parts)})"


def _row(label: str, value: str) -> str:
    return f"{label:<24}{value}".rstrip() if len(label) < 24 else f"{label}  {value}".rstrip()


def _where(rows: SetAside) -> str:
    if not rows.lines:
        return ""
    more = ", …" if rows.count > len(rows.lines) else ""
    example = f": {rows.example}" if rows.example else ""
    return f"(line {', '.join(map(str, rows.lines))}{more}{example})"
