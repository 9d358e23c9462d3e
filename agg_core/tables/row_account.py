"""The account of the rows of a table: how many were kept, why others were not, what was guessed.

What reports of every kind of table say of it, as JSON and as lines for a terminal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from agg_core.base.report import Guess, SetAside

__all__ = ["OfRows", "account_lines", "account_of", "account_to_dict", "guess_lines", "line"]


class OfRows(Protocol):
    """What a report says of rows: each that was read is kept, or counted by its cause."""

    @property
    def rows_read(self) -> int:
        """Rows that were read."""

    @property
    def rows_kept(self) -> int:
        """Rows that were kept."""

    @property
    def set_aside(self) -> Mapping[str, SetAside]:
        """Rows that were not, by cause."""

    @property
    def guesses(self) -> Mapping[str, Guess]:
        """What was guessed, by what it is about."""


def account_to_dict(report: OfRows) -> dict[str, Any]:
    """What a report says of rows, in plain JSON types."""
    return {
        "rows_read": report.rows_read,
        "rows_kept": report.rows_kept,
        "set_aside": {cause: rows.count for cause, rows in report.set_aside.items()},
        "set_aside_examples": {
            cause: {"lines": list(rows.lines), "example": rows.example}
            for cause, rows in report.set_aside.items()
        },
        "guesses": {
            name: {"value": guess.value, "alternatives": list(guess.alternatives)}
            | ({"note": guess.note} if guess.note else {})
            | ({"option": guess.option} if guess.option else {})
            for name, guess in report.guesses.items()
        },
    }


def account_of(told: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a report that `account_to_dict` wrote, by name."""
    examples = told["set_aside_examples"]
    return {
        "rows_read": int(told["rows_read"]),
        "rows_kept": int(told["rows_kept"]),
        "set_aside": {
            cause: SetAside(
                int(count), tuple(examples[cause]["lines"]), examples[cause]["example"]
            )
            for cause, count in told["set_aside"].items()
        },
        "guesses": {
            name: Guess(
                guess["value"], tuple(guess["alternatives"]), guess.get("note", ""),
                guess.get("option", ""),
            )
            for name, guess in told["guesses"].items()
        },
    }  # fmt: skip


def account_lines(report: OfRows) -> list[str]:
    """Lines of how many rows were kept, and why others were not."""
    lines = [
        line("Rows read", f"{report.rows_read:,}"),
        line("Rows kept", f"{report.rows_kept:,}"),
        line("Rows set aside", f"{sum(rows.count for rows in report.set_aside.values()):,}"),
    ]
    for cause, rows in report.set_aside.items():
        lines.append(line(f"  {cause}", f"{rows.count:,}  {_where(rows)}"))
    return lines


def guess_lines(report: OfRows) -> list[str]:
    """Lines of what was guessed, what else it could be, and the option that says so."""
    lines = ["Taken as"] if report.guesses else []
    for name, guess in report.guesses.items():
        note = f" - {guess.note}" if guess.note else ""
        lines.append(line(f"  {name}", f"{guess.value}{_otherwise(guess)}{note}"))
    return lines


def line(label: str, value: str) -> str:
    """A label and its value, in columns."""
    return f"{label:<24}{value}".rstrip() if len(label) < 24 else f"{label}  {value}".rstrip()


def _otherwise(guess: Guess) -> str:
    """What else it could be, and the option of the command line that says so."""
    if not (guess.alternatives or (guess.note and guess.option)):
        return ""
    role = guess.option.removeprefix("column ")
    flag = f"--column {role}=" if role != guess.option else "--" + guess.option.replace("_", "-")
    flag = flag.replace("--header", "--no-header")
    parts = [f"or: {', '.join(guess.alternatives)}"] if guess.alternatives else []
    return f" ({'; '.join([*parts, flag] if guess.option else parts)})"


def _where(rows: SetAside) -> str:
    if not rows.lines:
        return ""
    more = ", …" if rows.count > len(rows.lines) else ""
    example = f": {rows.example}" if rows.example else ""
    return f"(line {', '.join(map(str, rows.lines))}{more}{example})"
