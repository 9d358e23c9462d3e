"""Tables of trips between areas: what they hold, without asking for the names of any cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from agg_core.base.errors import InputError
from agg_core.base.report import Guess, printable
from agg_core.io.account import Account, Sieve
from agg_core.io.choices import Choices, Stated
from agg_core.io.counts.columns import ROLES as COUNT_ROLES
from agg_core.io.counts.values import Counted, coded, paired, read_counts_of
from agg_core.io.fixes import conditions_of, equals
from agg_core.io.flow_tables import ROLES as FLOW_ROLES
from agg_core.io.formats.registry import Source, open_source
from agg_core.io.guess.columns import ROLES as PERSON_ROLES
from agg_core.io.guess.columns import ColumnFinder, number_of
from agg_core.io.guess.ends import end_columns, is_square, words_of
from agg_core.io.guess.times import looks_like_clock
from agg_core.io.layouts import ENDS, NO_LAYOUT
from agg_core.io.source import RawRows, RawSource, show_names
from agg_core.io.texts import shown_value
from agg_core.tables.counts import PUBLISHED, SUPPRESSED
from agg_core.tables.table_report import TableReport

__all__ = ["Movements", "read_movements"]

LAST_CLOCK = 2400
"""The largest number that is an hour, a slot or HHMM and no moment."""
_MEASURES = ("trips", "viajes", "count", "flow", "volume", "people", "persons", "commuters", "pax")


PLACED = ("origin_lon", "origin_lat", "dest_lon", "dest_lat")
_PLACES_OF = {
    f"{end}_{axis}": ENDS[axis][number]
    for number, end in enumerate(("origin", "dest")) for axis in ("lon", "lat")
}  # fmt: skip


@dataclass(frozen=True)
class Movements:
    """A table of trips between areas: columns origin, dest, count and, where there is one, time.

    ``time`` is text, as the file writes it; ``report`` is the account of its rows.
    """

    table: pd.DataFrame
    report: TableReport


def read_movements(source: Source, choices: Stated | None = None) -> Movements:
    """Read a table of trips between areas; rows of one origin, dest and time are summed.

    Columns are found by name, or stated: origin, dest, count, time. Where none is a count every
    row is one trip.

    Raises
    ------
    InputError
        If the file cannot be read, or no columns of both ends are found.
    """
    stated = choices or Choices()
    how = Choices(**stated.opening, layout=NO_LAYOUT)
    opened = open_source(source, how, of_people=False)
    if opened.has_header and is_square(opened.names, opened.sample):
        return _square(opened)
    at, guesses = _columns(opened, dict(stated.columns))
    conditions = conditions_of(opened, stated.where)
    account, parts, n_read = Account(), [], 0
    for rows in opened.batches([*at.values(), *conditions]):
        account.follow(n_read, rows.line_numbers)
        account.add_counted(rows.set_aside)
        if not rows.columns:
            continue

        def example(row: int, rows: RawRows = rows) -> str:
            return ", ".join(
                f"{role}={shown_value(rows.columns[i], row)}" for role, i in at.items()
            )

        sieve = Sieve(rows.n_rows, account, example, n_read)
        n_read += rows.n_rows
        for position, (column, value) in conditions.items():
            sieve.take(f"not {column}={value}", ~equals(rows.columns[position], value))
        texts = {
            role: coded(rows.columns[i])
            for role, i in at.items()
            if role != "count" and role not in PLACED
        }
        for end in ("origin", "dest"):
            if end not in texts:  # it is called by its place
                lat, lon = (coded(rows.columns[at[f"{end}_{axis}"]]) for axis in ("lat", "lon"))
                texts[end] = paired(lat, lon)
        for end in ("origin", "dest"):
            sieve.take(f"no {end}", texts[end].where(lambda text: not text))
        count = np.ones(rows.n_rows)
        if "count" in at:
            counted = read_counts_of(coded(rows.columns[at["count"]]), "missing")
            _take_uncounted(sieve, counted)
            count = counted.numbers
        part = {
            role: np.array(text.texts, dtype=object)[text.codes][sieve.kept]
            for role, text in texts.items()
        }
        if "clock" in part:  # the hour, beside a column of dates
            part["time"] = np.array(
                [f"{date} {hour}" for date, hour in
                 zip(part["time"], part.pop("clock"), strict=True)],
                dtype=object,
            )  # fmt: skip
        parts.append(pd.DataFrame({**part, "count": count[sieve.kept]}).assign(rows=1))
    every = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    account.need_rows(len(every))
    return _summed(every, account, opened, guesses)


def _take_uncounted(sieve: Sieve, counted: Counted) -> None:
    """Rows that hold no number go out."""
    sieve.take_all(counted.causes)
    sieve.take("suppressed count", counted.status == SUPPRESSED)
    sieve.take("missing count", counted.status != PUBLISHED)


def _summed(
    every: pd.DataFrame, account: Account, source: RawSource, guesses: Mapping[str, Guess]
) -> Movements:
    by = [name for name in ("time", "origin", "dest") if name in every]
    table = every.groupby(by, sort=True, as_index=False)[["count", "rows"]].sum()
    aside = account.result()
    kept = int(table["rows"].sum())
    read = kept + sum(rows.count for rows in aside.values())
    areas = set(table["origin"]) | set(table["dest"])
    figures: dict[str, object] = {
        "trips": float(table["count"].sum()), "areas": len(areas),
        "pairs": len(table[["origin", "dest"]].drop_duplicates()),
        "times": int(table["time"].nunique()) if "time" in table else 0,
    }  # fmt: skip
    report = TableReport(read, kept, aside, {**guesses, **source.guesses}, figures)
    return Movements(table.drop(columns="rows"), report)


def _columns(
    source: RawSource, stated: Mapping[str, str | int]
) -> tuple[dict[str, int], dict[str, Guess]]:
    """Positions of origin, dest, and of count and time where there are any."""
    times = (*FLOW_ROLES["time"], *PERSON_ROLES["time"], *ENDS["time"][0])
    roles = {
        "origin": FLOW_ROLES["origin"], "dest": FLOW_ROLES["dest"], "count": FLOW_ROLES["count"],
        "time": tuple(dict.fromkeys(times)),
        "clock": (*COUNT_ROLES["clock"], "periodo", "period", "hourperiod", "franja"),
        "date": tuple(dict.fromkeys((*PERSON_ROLES["date"], *FLOW_ROLES["date"]))),
    }  # fmt: skip
    found = ColumnFinder(source, roles, stated)
    pair = end_columns(source.names, source.sample) if source.has_header else None
    if pair is not None and not {"origin", "dest"} & found.stated.keys():
        for role, position in zip(("origin", "dest"), pair, strict=True):
            found.take(role, position)
    found.look_for(*roles)
    placed = ColumnFinder(source, _PLACES_OF, {})
    placed.look_for(*PLACED)
    has_names = {"origin", "dest"} <= found.positions.keys()
    if not has_names and set(PLACED) <= placed.positions.keys():
        found.drop("origin", "dest")
        for role, position in placed.positions.items():
            found.take(role, position)
    elif not has_names:
        raise InputError(
            "A table of trips between areas has a column of origins and one of destinations; this "
            f"one has: {show_names(source)}; say which they are.",
            "--column origin=NAME --column dest=NAME",
            code="column-not-found",
        )
    _dated(found)
    if "clock" in found.positions and "time" not in found.positions:
        found.rename("clock", "time")
    if "count" not in found.positions:
        numeric = [at for at in found.rest() if (values := found.values(at)) and all(
            number_of(value) is not None for value in values)]  # fmt: skip
        named = [at for at in numeric if set(_MEASURES) & set(words_of(source.names[at]))]
        if named or numeric:
            first, *others = named or numeric
            found.take("count", first, *others)
    return found.positions, found.guesses


def _dated(found: ColumnFinder) -> None:
    """A column of hours, or none, beside one of dates: the moment is in both."""
    at = found.positions
    if "date" not in at:
        return
    if "time" in at and "time" not in found.stated:
        if not all(map(_is_of_day, found.values("time"))):
            found.drop("date")  # a moment says its day
            return
        found.drop("clock")
        found.rename("time", "clock")
    if "time" in at:
        found.drop("date")
    else:
        found.rename("date", "time")


def _is_of_day(text: str) -> bool:
    number = number_of(text)
    return looks_like_clock(text) or (number is not None and 0 <= number <= LAST_CLOCK)


def _square(source: RawSource) -> Movements:
    """A matrix: a row for each origin, a column for each destination; its cells are the rows."""
    positions = list(range(len(source.names)))
    account, parts, n_read = Account(), [], 0
    for rows in source.batches(positions):
        account.follow(n_read, rows.line_numbers)
        account.add_counted(rows.set_aside)
        if not rows.columns or not rows.n_rows:
            continue
        origins = coded(rows.columns[0])
        names = np.array(origins.texts, dtype=object)[origins.codes]
        nameless = origins.where(lambda text: not text)
        for at in positions[1:]:
            dest = source.names[at]

            def example(row: int, at: int = at, dest: str = dest, rows: RawRows = rows) -> str:
                return f"dest={printable(dest)}, count={shown_value(rows.columns[at], row)}"

            counted = read_counts_of(coded(rows.columns[at]), "missing")
            sieve = Sieve(rows.n_rows, account, example, n_read)
            sieve.take("no origin", nameless)
            if not dest:
                sieve.take("no dest", np.ones(rows.n_rows, dtype=bool))
            _take_uncounted(sieve, counted)
            kept = sieve.kept
            parts.append(
                pd.DataFrame({"origin": names[kept], "dest": dest, "count": counted.numbers[kept]})
            )
        n_read += rows.n_rows
    account.need_rows(sum(map(len, parts)))
    every = pd.concat(parts, ignore_index=True).assign(rows=1)
    found = _summed(every, account, source, {"layout": Guess("a matrix of origins and dests")})
    return Movements(found.table, found.report)
