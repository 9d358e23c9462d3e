"""What happened to a file of counts on its way in: rows, guesses, and what its doctor says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from agg_core.base.report import Guess, SetAside

__all__ = ["CountReport"]


@dataclass(frozen=True)
class CountReport:
    """The account of one import of counts.

    Every row read is either used or counted in ``set_aside`` (by cause). ``layout`` says what the
    file was taken for; ``remarks`` are sentences of the doctor by what they are about: totals,
    gaps, cells never published and the like.
    """

    rows_read: int
    rows_used: int
    layout: str = ""
    set_aside: Mapping[str, SetAside] = field(default_factory=dict)
    guesses: Mapping[str, Guess] = field(default_factory=dict)
    remarks: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The report in plain JSON types."""
        return {
            "rows_read": self.rows_read,
            "rows_used": self.rows_used,
            "layout": self.layout,
            "set_aside": {cause: asdict(rows) for cause, rows in self.set_aside.items()},
            "guesses": {name: asdict(guess) for name, guess in self.guesses.items()},
            "remarks": dict(self.remarks),
        }

    @classmethod
    def from_dict(cls, report: Mapping[str, Any]) -> CountReport:
        """The report that `to_dict` wrote."""
        return cls(
            rows_read=int(report["rows_read"]),
            rows_used=int(report["rows_used"]),
            layout=str(report["layout"]),
            set_aside={
                cause: SetAside(int(rows["count"]), tuple(rows["lines"]), rows["example"])
                for cause, rows in report["set_aside"].items()
            },
            guesses={
                name: Guess(
                    guess["value"], tuple(guess["alternatives"]), guess["note"], guess["option"]
                )
                for name, guess in report["guesses"].items()
            },
            remarks={str(about): str(text) for about, text in report["remarks"].items()},
        )

    def to_text(self) -> str:
        """The report as lines for a terminal."""
        lines = [
            _row("Taken for", self.layout),
            _row("Rows read", f"{self.rows_read:,}"),
            _row("Rows used", f"{self.rows_used:,}"),
        ]
        for cause, rows in self.set_aside.items():
            example = f" ({rows.example})" if rows.example else ""
            lines.append(_row(f"  {cause}", f"{rows.count:,}{example}"))
        for name, guess in self.guesses.items():
            other = f" (or: {', '.join(guess.alternatives)})" if guess.alternatives else ""
            note = f" - {guess.note}" if guess.note else ""
            lines.append(_row(f"  {name}", f"{guess.value}{other}{note}"))
        return "\n".join([*lines, *self.remarks.values()])


def _row(label: str, value: str) -> str:
    return f"{label:<24}{value}".rstrip() if len(label) < 24 else f"{label}  {value}".rstrip()
