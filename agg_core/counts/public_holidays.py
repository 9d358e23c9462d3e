"""Public holidays of a country, or of a part of one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import cache

import numpy as np
import numpy.typing as npt

from agg_core.base.errors import InputError
from agg_core.base.report import printable

__all__ = ["check_place", "country_names", "is_holiday", "part_names"]

NEAR_NAMES = 6


@cache
def country_names() -> Mapping[str, str]:
    """Names of countries that holidays are known of, by their code of two letters."""
    from holidays.registry import COUNTRIES  # noqa: PLC0415

    # The package names classes and no countries: UnitedStates, of which an alias has the code.
    named = {codes[1]: _in_words(codes[0]) for codes in COUNTRIES.values()}
    return dict(sorted(named.items(), key=lambda each: each[1]))


def _in_words(name: str) -> str:
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    for small in ("And", "Of", "The"):
        words = words.replace(f" {small} ", f" {small.lower()} ")
    return words


@cache
def part_names(country: str) -> Mapping[str, str]:
    """Names of the parts of a country that have holidays of their own, by their code.

    Where no name is known it is the code.
    """
    from holidays import country_holidays, list_supported_countries  # noqa: PLC0415

    codes = list_supported_countries(include_aliases=False).get(country, [])
    if not codes:
        return {}
    aliases = getattr(country_holidays(country), "subdivisions_aliases", {})
    names = {code: code for code in codes}
    for name, code in aliases.items():
        # Of several names the longest is none that is cut short.
        if code in names and (names[code] == code or len(name) > len(names[code])):
            names[code] = name
    return names


def check_place(place: str) -> str:
    """A country, or a part of one, as its code is written: JP, DE-BW, US-NJ.

    Raises
    ------
    InputError
        If holidays of it are not known, with the names that are near.
    """
    text = place.strip().upper().replace("_", "-")
    country, _, part = text.partition("-")
    countries = country_names()
    if country not in countries:
        raise InputError(
            f"There are no holidays of {printable(place)!r}; give a country by two letters, and a "
            f"part of it after a hyphen, such as JP or DE-BW{_near(text, countries)}.",
            code="unknown-country",
        )
    parts = part_names(country)
    # Codes of parts may be of small letters.
    known = {code.upper(): code for code in parts}
    if part and part not in known:
        there = f"; parts are {', '.join(sorted(parts))}" if parts else "; it has no parts"
        raise InputError(
            f"{countries[country]} has no part {printable(part)!r} with holidays of its own"
            f"{_near(part, parts) or there}.",
            code="unknown-country-part",
        )
    return f"{country}-{known[part]}" if part else country


def _near(asked: str, names: Mapping[str, str]) -> str:
    """Names that are spelt like what was asked for, or begin with it, as an end of a sentence."""
    text = asked.casefold()
    spelt = {spelling.casefold(): code for code, name in names.items() for spelling in (code, name)}
    near = [spelling for spelling in spelt if len(text) > 2 and spelling.startswith(text)]
    near += get_close_matches(text, spelt, NEAR_NAMES)
    codes = list(dict.fromkeys(spelt[spelling] for spelling in near))[:NEAR_NAMES]
    return f"; near are {', '.join(f'{code} ({names[code]})' for code in codes)}" if codes else ""


def is_holiday(place: str, dates: Iterable[str]) -> npt.NDArray[np.bool_]:
    """Whether dates (n,), as YYYY-MM-DD, are public holidays of a place (see `check_place`).

    Raises
    ------
    InputError
        If holidays of the place are not known.
    """
    from holidays import country_holidays  # noqa: PLC0415

    country, _, part = check_place(place).partition("-")
    days = list(dates)
    years = sorted({int(day[:4]) for day in days})
    known = country_holidays(country, subdiv=part or None, years=years)
    of_place = {day.isoformat() for day in known}
    return np.array([day in of_place for day in days], dtype=np.bool_)
