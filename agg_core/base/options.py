"""One setting, said once: its default, its words and its range; forms, command line and checks."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from agg_core.base.errors import InputError

__all__ = ["Checked", "Option", "option_field", "options_of"]


@dataclass(frozen=True)
class Option:
    """What a person needs to know of one setting, and the range that makes sense.

    People see and type it divided by ``per``: 1000 where they see km and the setting is metres;
    ``least``, ``most`` and ``step`` are those of the setting itself. ``empty`` is what an empty
    field stands for.
    """

    label: str
    help: str
    unit: str = ""
    least: float | None = None
    most: float | None = None
    step: float | None = None
    choices: tuple[Any, ...] = ()
    choice_labels: tuple[str, ...] = ()
    per: float = 1.0
    empty: str = "auto"

    def shown(self, value: float) -> float:
        """A value of the setting as people see it."""
        return value / self.per

    def kept(self, shown: float) -> float:
        """The value of the setting that people type so."""
        # Of 2.2 km are 2200 metres and not the rounding of both beside it.
        return shown if self.per == 1 else round(shown * self.per, 6)


def option_field(default: Any, label: str, help: str, **about: Any) -> Any:
    """A field of a settings class with its default and its `Option`."""
    return field(default=default, metadata={"option": Option(label, help, **about)})


def options_of(settings: type | object) -> dict[str, Option]:
    """Options of a settings class by field name, in order."""
    kind = settings if isinstance(settings, type) else type(settings)
    return {f.name: f.metadata["option"] for f in fields(kind) if "option" in f.metadata}


class Checked:
    """Settings whose values are checked against their options when they are made.

    Of a tuple every entry is checked.

    Raises
    ------
    InputError
        If a value is out of the range of its option, or none of its choices.
    """

    def __post_init__(self) -> None:
        for name, option in options_of(self).items():
            value = getattr(self, name)
            for entry in value if isinstance(value, tuple) else (value,):
                if entry is not None:
                    _check(entry, option)


def _check(value: Any, option: Option) -> None:
    if option.choices and value not in option.choices:
        raise InputError(
            f"{option.label} must be one of {', '.join(map(str, option.choices))}; it was {value}.",
            code="not-a-choice",
        )
    too_low = option.least is not None and not value >= option.least
    too_high = option.most is not None and not value <= option.most
    if too_low or too_high:
        least = "any" if option.least is None else f"{option.shown(option.least):g}"
        most = "any" if option.most is None else f"{option.shown(option.most):,.12g}"
        told = value if option.per == 1 else option.shown(value)
        raise InputError(
            f"{option.label} must lie between {least} and {most}{_of(option.unit)}; "
            f"it was {told:,}.",
            code="value-out-of-range",
        )


def _of(unit: str) -> str:
    return f" {unit}" if unit else ""
