"""Options that several commands share. None stands for an option that was not given."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, fields
from pathlib import Path
from typing import Any, TypeVar

from agg_core.base.engine import ENGINE_HELP, check_engine
from agg_core.base.errors import InputError
from agg_core.base.options import Option
from agg_core.base.report import printable
from agg_core.io import DATE_ORDERS, ROLES, Choices, as_column
from agg_core.io.choices import Stated
from agg_core.io.formats.registry import Source
from agg_core.made.samples import file_or_sample
from agg_core.space.settings import parse_bbox
from agg_core.study.settings import parse_clock

__all__ = [
    "Container",
    "add_engine_option",
    "add_field",
    "add_file_options",
    "add_source_options",
    "choices_of",
    "given",
    "moment",
    "option_fields",
    "source_of",
    "spelt",
    "typed",
]

AnyStated = TypeVar("AnyStated", bound=Stated)
Container = argparse._ActionsContainer
"""A parser, or a group of its options."""

TYPES: Mapping[str, Callable[[str], Any]] = {"int": int, "float": float, "str": str}
UNITS = {"str": "TEXT"}
SPELT = {"reach_m": "reach"}
"""Names of options that are typed in another unit than the field has."""


def add_file_options(
    parser: argparse.ArgumentParser,
    choices: Iterable[str] | None = None,
    *,
    roles: Iterable[str] = tuple(ROLES),
    slots: bool = True,
) -> None:
    """Add the options of reading people; all of `Choices` unless ``choices`` names some."""
    add_source_options(parser, roles, slots=slots)
    known = option_fields(Choices)
    for name in known if choices is None else choices:
        add_field(parser, known[name])


def add_source_options(
    parser: argparse.ArgumentParser, roles: Iterable[str], *, slots: bool = True
) -> None:
    """Add the file, its columns if they have ``roles``, its rows, and whether to print JSON.

    Times of trips are two, which no table of ``slots`` is joined to.
    """
    parser.add_argument(
        "file", metavar="FILE", type=typed(file_or_sample),
        help="file or folder: CSV, Excel, Parquet, GPX, KML, GeoJSON, JSON, GeoPackage, zip, ...; "
        "or the word sample",
    )  # fmt: skip
    if roles:
        parser.add_argument(
            "--column", action="append", metavar="ROLE=NAME",
            help=f"column of a role ({', '.join(roles)}), by name or by number from 0",
        )  # fmt: skip
    parser.add_argument(
        "--where", action="append", metavar="COLUMN=VALUE", help="keep these rows only"
    )
    parser.add_argument(
        "--date-order", choices=list(DATE_ORDERS), help="what comes first in dates such as 1/2/2024"
    )
    parser.add_argument(
        "--places", metavar="FILE",
        help="the table that says where the places lie that the file names by a key: towers, "
        "stations",
    )  # fmt: skip
    if slots:
        parser.add_argument(
            "--slots", metavar="FILE",
            help="the table that says when slots of time begin that the file numbers: slot, start",
        )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def source_of(chosen: argparse.Namespace) -> Source:
    """The file, with the tables of places and of slots of time where they are given.

    Raises
    ------
    InputError
        If one of these is no file.
    """
    beside = [getattr(chosen, name, None) for name in ("places", "slots")]
    files = [str(path) for path in beside if path is not None]
    if not files:
        file: Source = chosen.file
        return file
    for path in files:
        if not Path(path).is_file():
            raise InputError(
                f"There is no file {printable(path)}; give the table that goes with the first.",
                f"--{'places' if path == str(beside[0]) else 'slots'} FILE",
                code="no-such-file",
            )
    return {path: path for path in (str(chosen.file), *files)}


def add_engine_option(container: Container) -> None:
    """Add who does the work: --engine dask."""
    container.add_argument("--engine", type=typed(check_engine), metavar="ENGINE", help=ENGINE_HELP)


def option_fields(settings: type) -> dict[str, Field[Any]]:
    """Fields of a settings class that are options, by name."""
    return {f.name: f for f in fields(settings) if "option" in f.metadata}


def add_field(container: Container, field: Field[Any], option: Option | None = None) -> None:
    """Add a field as an option: --group-size PEOPLE; a tuple of numbers is an extent.

    ``option`` says what there is to know of it, if its own does not.
    """
    about: Option = option or field.metadata["option"]
    flag, text = spelt(field.name), about.help.replace("%", "%%")
    kind = str(field.type).split(" |")[0]
    if kind.startswith("tuple[float"):
        container.add_argument(flag, type=typed(parse_bbox), metavar="W,S,E,N", help=text)
    elif kind == "bool" and field.default is None:
        container.add_argument(flag, action=argparse.BooleanOptionalAction, help=text)
    elif kind == "bool":
        container.add_argument(flag, action="store_true", default=None, help=text)
    elif about.choices:
        container.add_argument(flag, type=TYPES[kind], choices=about.choices, help=text)
    else:
        unit = about.unit.split()[0].upper() if about.unit else UNITS.get(kind, "NUMBER")
        take = TYPES[kind] if about.per == 1 else _in_unit(about)
        container.add_argument(flag, type=take, metavar=unit, help=text, dest=field.name)


def _in_unit(option: Option) -> Callable[[str], float]:
    """A number as it is typed, in the unit of the setting."""

    def number(text: str) -> float:
        return option.kept(float(text))

    return number


def spelt(name: str) -> str:
    """A field as its option is typed."""
    return "--" + SPELT.get(name, name).replace("_", "-")


def typed(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """``parse`` for argparse, which swallows the messages of a ValueError."""

    def convert(text: str) -> Any:
        try:
            return parse(text)
        except InputError as fault:
            raise argparse.ArgumentTypeError(str(fault)) from None

    return convert


def moment(text: str) -> str:
    """A time of day as HH:MM, or the name of a moment that is none."""
    try:
        return parse_clock(text)
    except InputError:
        return text


def given(chosen: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    """The options of these names that were given."""
    found = {name: getattr(chosen, name, None) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def choices_of(
    chosen: argparse.Namespace, kind: type[AnyStated], other_names: Mapping[str, str] | None = None
) -> AnyStated:
    """How the file is to be read; ``other_names`` are options by field, where they differ.

    Raises
    ------
    InputError
        If an option is misspelt or out of range, or two say the same.
    """
    columns = {
        role: as_column(name) for role, name in _pairs("--column", getattr(chosen, "column", None))
    }
    options = {name: (other_names or {}).get(name, name) for name in option_fields(kind)}
    found = given(chosen, options.values())
    stated = {name: found[option] for name, option in options.items() if option in found}
    if chosen.date_order and "time_format" in stated:
        raise InputError(
            "--date-order and --time-format say the same; give one of them.",
            code="options-conflict",
        )
    if chosen.date_order:
        stated["time_format"] = DATE_ORDERS[chosen.date_order]
    return kind.of(columns, dict(_pairs("--where", chosen.where)), **stated)


def _pairs(option: str, texts: Iterable[str] | None) -> Iterable[tuple[str, str]]:
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not (equals and name and value):
            raise InputError(f"{option} takes NAME=VALUE, not {text!r}.", code="not-name-value")
        yield name, value
