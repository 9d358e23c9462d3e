"""What tables of places, and of stations, hold: rows, places, extent."""

from __future__ import annotations

import numpy as np

from agg_core.io.account import Account
from agg_core.io.choices import Choices, Stated
from agg_core.io.formats.registry import Source, open_source
from agg_core.io.guess.columns import ROLES, ColumnFinder
from agg_core.io.layouts import NO_LAYOUT
from agg_core.io.texts import to_float
from agg_core.space.degrees import are_known
from agg_core.tables.table_report import TableReport

__all__ = ["table_report"]


def table_report(source: Source, choices: Stated | None = None) -> TableReport:
    """The account of a table of which nothing but its rows and places is looked at.

    Rows without a place are set aside where the table has places.

    Raises
    ------
    InputError
        If the file cannot be opened.
    """
    stated = choices or Choices()
    how = Choices(**stated.opening, layout=NO_LAYOUT)
    opened = open_source(source, how, of_people=False)
    found = ColumnFinder(opened, ROLES)
    found.look_for("lon", "lat")
    at = [found.positions[role] for role in ("lon", "lat") if role in found.positions]
    account, n_read, n_kept = Account(), 0, 0
    boxes: list[tuple[float, float, float, float]] = []
    for rows in opened.batches(at if len(at) == 2 else [0]):
        account.follow(n_read, rows.line_numbers)
        account.add_counted(rows.set_aside)
        if not rows.columns or not rows.n_rows:
            continue
        good = np.ones(rows.n_rows, dtype=bool)
        if len(at) == 2:
            lon, lat = (to_float(rows.columns[position]) for position in at)
            good = are_known(np.column_stack([lon, lat]))
            account.add("no place", np.flatnonzero(~good) + n_read, lambda: "")
            if good.any():
                boxes.append((
                    float(lon[good].min()), float(lat[good].min()), float(lon[good].max()),
                    float(lat[good].max()),
                ))  # fmt: skip
        n_read += rows.n_rows
        n_kept += int(good.sum())
    aside = account.result()
    figures: dict[str, object] = {}
    if boxes:
        box = np.array(boxes)
        figures["bbox"] = [*box[:, :2].min(axis=0).tolist(), *box[:, 2:].max(axis=0).tolist()]
    total = n_kept + sum(rows.count for rows in aside.values())
    return TableReport(total, n_kept, aside, {**found.guesses, **opened.guesses}, figures)
