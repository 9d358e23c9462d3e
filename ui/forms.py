"""Settings to widgets and back: labels, help, units and ranges are those of the settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from itertools import product
from typing import Any, TypeVar

import streamlit as st

from agg_core.base.errors import InputError
from agg_core.base.options import Option, options_of
from agg_core.lab.experiments import LabSettings
from agg_core.lab.teaching import TeachingSettings
from agg_core.space.settings import GridSettings, HexSettings, MeshSettings
from agg_core.study.settings import (
    CountLearnSettings,
    GateLearnSettings,
    LearnSettings,
    WindowSettings,
    parse_clock,
)
from ui.shell import tell_fault

__all__ = ["edit", "fill"]

Settings = TypeVar(
    "Settings",
    GridSettings,
    MeshSettings,
    HexSettings,
    WindowSettings,
    LearnSettings,
    CountLearnSettings,
    GateLearnSettings,
    LabSettings,
    TeachingSettings,
)

CLOCK = tuple(f"{hour:02d}:{minute:02d}" for hour in range(24) for minute in (0, 30))


def edit(settings: Settings, key: str, names: Sequence[str], columns: int = 2) -> Settings:
    """Show the named settings as widgets; returns what they say.

    Values that do not go together are told under the widgets, and the settings stay as they were.
    """
    options = options_of(settings)
    may_be_empty = {field.name for field in fields(settings) if field.default is None}
    values = {}
    for row in range(0, len(names), columns):
        places = st.columns(columns, vertical_alignment="bottom")
        for place, name in zip(places, names[row : row + columns], strict=False):
            with place:
                values[name] = _widget(
                    options[name], getattr(settings, name), f"{key}.{name}",
                    may_be_empty=name in may_be_empty,
                )  # fmt: skip
    try:
        return replace(settings, **values)
    except InputError as fault:
        tell_fault(str(fault))
        return settings


def fill(settings: Settings, keys: Sequence[str], names: Sequence[str]) -> None:
    """Let widgets of `edit`, shown by some of these keys, show other settings: in a callback only.

    A browser keeps what stands in a widget, so that it does not follow when settings alone change.
    """
    options = options_of(settings)
    for key, name in product(keys, names):
        if f"{key}.{name}" in st.session_state:
            shown = _as_shown(options[name], getattr(settings, name))
            st.session_state[f"{key}.{name}"] = shown


def _as_shown(option: Option, value: Any) -> Any:
    """What a widget has for a value."""
    if isinstance(value, tuple):
        return list(value)
    if option.choices or value is None or isinstance(value, str):
        return value
    return _number(option)(option.shown(value))


def _number(option: Option) -> type[int] | type[float]:
    """A setting without a step is a coordinate: free to the last decimal."""
    return int if isinstance(option.step, int) else float


def _widget(option: Option, value: Any, key: str, *, may_be_empty: bool) -> Any:
    label = f"{option.label} ({option.unit})" if option.unit else option.label
    if isinstance(value, tuple):
        return _several(option, label, value, key)
    if option.choices:
        labels = dict(zip(option.choices, option.choice_labels or option.choices, strict=True))
        return st.selectbox(
            label, option.choices, index=option.choices.index(value), help=option.help, key=key,
            format_func=labels.__getitem__,
        )  # fmt: skip
    kind = _number(option)
    bounds: dict[str, Any] = {
        name: None if bound is None else kind(option.shown(bound))
        for name, bound in (
            ("min_value", option.least),
            ("max_value", option.most),
            ("value", value),
            ("step", option.step),
        )
    }
    arguments: dict[str, Any] = {
        **bounds,
        "format": "%.4f" if option.step is None else ("%g" if kind is float else None),
        "placeholder": option.empty if may_be_empty else None,
    }
    if may_be_empty:
        # A field that begins with a number cannot be emptied: this one is filled beforehand.
        if key not in st.session_state:
            st.session_state[key] = bounds["value"]
        arguments["value"] = None
    typed = st.number_input(label, help=option.help, key=key, **arguments)
    return None if typed is None else option.kept(typed)


def _several(option: Option, label: str, value: tuple[Any, ...], key: str) -> tuple[Any, ...]:
    if option.choices:
        labels = dict(zip(option.choices, option.choice_labels or option.choices, strict=True))
        chosen = st.multiselect(
            label, option.choices, default=list(value), help=option.help, key=key,
            format_func=labels.__getitem__,
        )  # fmt: skip
        return tuple(chosen)
    return (_times if option.least is None else _numbers)(option, label, value, key)


def _numbers(option: Option, label: str, value: tuple[int, ...], key: str) -> tuple[int, ...]:
    """Whole numbers, typed with commas between them."""
    text = st.text_input(
        label, ", ".join(map(str, value)), key=key,
        help=f"{option.help} One or more whole numbers with commas between them.",
    )  # fmt: skip
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        tell_fault(f"{option.label}: give whole numbers with commas between them, not {text!r}.")
        return value


def _times(option: Option, label: str, value: tuple[str, ...], key: str) -> tuple[str, ...]:
    chosen = st.multiselect(
        label,
        sorted({*CLOCK, *value}),
        default=list(value),
        help=option.help,
        key=key,
        accept_new_options=True,
        placeholder="whole day; or choose times",
    )
    try:
        return tuple(sorted({parse_clock(text) for text in chosen}))
    except InputError as fault:
        tell_fault(str(fault))
        return value
