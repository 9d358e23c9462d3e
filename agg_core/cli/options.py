"""Options that several commands share. None stands for an option that was not given."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from typing import Any

from agg_core.base.errors import InputError
from agg_core.base.options import Option, options_of
from agg_core.io import DATE_ORDERS, ROLES, Choices, as_column
from agg_core.made.samples import file_or_sample

__all__ = ["add_file_options", "add_option", "choices_of", "given", "typed"]


def add_file_options(
    parser: argparse.ArgumentParser, choices: Iterable[str] | None = None, *, columns: bool = True
) -> None:
    """Add the options of reading; all of `Choices` unless ``choices`` names some."""
    parser.add_argument(
        "file", metavar="FILE", type=typed(file_or_sample),
        help="file or folder: CSV, Excel, Parquet, GPX, KML, GeoJSON, JSON, GeoPackage, zip, ...; "
        "or the word sample",
    )  # fmt: skip
    if columns:
        parser.add_argument(
            "--column", action="append", metavar="ROLE=NAME",
            help=f"column of a role ({', '.join(ROLES)}), by name or by number from 0",
        )  # fmt: skip
    parser.add_argument(
        "--where", action="append", metavar="COLUMN=VALUE", help="keep these rows only"
    )
    parser.add_argument(
        "--date-order", choices=list(DATE_ORDERS), help="what comes first in dates such as 1/2/2024"
    )
    known = options_of(Choices)
    for name in known if choices is None else choices:
        _add_choice(parser, name, known[name])
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _add_choice(parser: argparse.ArgumentParser, name: str, option: Option) -> None:
    """A choice of reading as an option: --max-speed KM/H."""
    flag, text, default = (
        "--" + name.replace("_", "-"),
        _escaped(option.help),
        getattr(Choices, name),
    )
    if default is False:
        parser.add_argument(flag, action="store_true", default=None, help=text)
    elif name == "header":
        parser.add_argument(flag, action=argparse.BooleanOptionalAction, help=text)
    elif option.choices:
        parser.add_argument(flag, choices=option.choices, help=text)
    else:
        kind, unit = (float, option.unit.upper()) if option.unit else (str, "TEXT")
        parser.add_argument(flag, type=kind, metavar=unit, help=text)


def add_option(
    parser: argparse.ArgumentParser, name: str, kind: Callable[[str], Any], option: Option
) -> None:
    """Add a field of a settings class as an option: --group-size PEOPLE."""
    parser.add_argument(
        "--" + name.replace("_", "-"), type=kind, choices=option.choices or None,
        metavar=None if option.choices else (option.unit or "NUMBER").split()[0].upper(),
        help=_escaped(option.help),
    )  # fmt: skip


def _escaped(text: str) -> str:
    return text.replace("%", "%%")


def typed(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """``parse`` for argparse, which swallows the messages of a ValueError."""

    def convert(text: str) -> Any:
        try:
            return parse(text)
        except InputError as fault:
            raise argparse.ArgumentTypeError(str(fault)) from None

    return convert


def given(chosen: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    """The options of these names that were given."""
    found = {name: getattr(chosen, name, None) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def choices_of(chosen: argparse.Namespace) -> Choices:
    """How the file is to be read.

    Raises
    ------
    InputError
        If an option is misspelt or out of range, or two say the same.
    """
    columns = {
        role: as_column(name) for role, name in _pairs("--column", getattr(chosen, "column", None))
    }
    stated = given(chosen, options_of(Choices))
    if chosen.date_order and "time_format" in stated:
        raise InputError("--date-order and --time-format say the same; give one of them.")
    if chosen.date_order:
        stated["time_format"] = DATE_ORDERS[chosen.date_order]
    return Choices.of(columns, dict(_pairs("--where", chosen.where)), **stated)


def _pairs(option: str, texts: Iterable[str] | None) -> Iterable[tuple[str, str]]:
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not (equals and name and value):
            raise InputError(f"{option} takes NAME=VALUE, not {text!r}.")
        yield name, value
