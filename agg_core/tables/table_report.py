"""What happened to a table that is no track of anybody on its way in: trips, movements, places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agg_core.base.report import Guess, SetAside

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
            **self.figures,
        }

    @classmethod
    def from_dict(cls, report: Mapping[str, Any]) -> TableReport:
        """The report that `to_dict` wrote."""
        examples = report["set_aside_examples"]
        known = {"rows_read", "rows_kept", "set_aside", "set_aside_examples", "guesses"}
        return cls(
            rows_read=int(report["rows_read"]),
            rows_kept=int(report["rows_kept"]),
            set_aside={
                cause: SetAside(count, tuple(examples[cause]["lines"]), examples[cause]["example"])
                for cause, count in report["set_aside"].items()
            },
            guesses={
                name: Guess(
                    guess["value"], tuple(guess["alternatives"]), guess.get("note", ""),
                    guess.get("option", ""),
                )
                for name, guess in report["guesses"].items()
            },
            figures={name: value for name, value in report.items() if name not in known},
        )  # fmt: skip

    def to_text(self) -> str:
        """The report as lines for a terminal."""
        lines = [
            _row("Rows read", f"{self.rows_read:,}"),
            _row("Rows kept", f"{self.rows_kept:,}"),
            _row("Rows set aside", f"{sum(rows.count for rows in self.set_aside.values()):,}"),
        ]
        for cause, rows in self.set_aside.items():
            where = (
                f"(line {', '.join(map(str, rows.lines))}: {rows.example})" if rows.lines else ""
            )
            lines.append(_row(f"  {cause}", f"{rows.count:,}  {where}"))
        for name, value in self.figures.items():
            shown = f"{value:,}" if isinstance(value, int | float) else str(value)
            lines.append(_row(name.replace("_", " ").capitalize(), shown))
        if self.guesses:
            lines.append("Taken as")
        for name, guess in self.guesses.items():
            other = f" (or: {', '.join(guess.alternatives)})" if guess.alternatives else ""
            note = f" - {guess.note}" if guess.note else ""
            lines.append(_row(f"  {name}", f"{guess.value}{other}{note}"))
        return "\n".join(lines)


def _row(label: str, value: str) -> str:
    return f"{label:<24}{value}".rstrip() if len(label) < 24 else f"{label}  {value}".rstrip()
