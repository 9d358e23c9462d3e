"""Tables of measurements in pages of docs/, each between the markers of its name."""

from __future__ import annotations

import re
from pathlib import Path

from agg_core import __version__
from agg_core.base.errors import InputError
from agg_core.learn.table import PRIOR

__all__ = ["check_markers", "write_table"]


def check_markers(page: Path, name: str) -> str:
    """The text of a page that has a place for a table.

    Raises
    ------
    InputError
        If there is no such page, or the markers are not there, once each and in order.
    """
    try:
        text = page.read_text(encoding="utf-8")
    except OSError as fault:
        raise InputError(f"{page} cannot be read; name a page that is there.") from fault
    markers = re.findall(f"<!-- /?{re.escape(name)} -->", text)
    if len(markers) != 2 or not _place(name).search(text):
        raise InputError(
            f"{page} has no place for {name}; write <!-- {name} --> and <!-- /{name} --> into it, "
            "a line each."
        )
    return text


def write_table(page: Path, name: str, command: str, table: str) -> None:
    """Put a table into a page, in place of what stood between its markers.

    Raises
    ------
    InputError
        As `check_markers`.
    """
    made = f"Version {__version__}, weight of the prior {PRIOR:g}:"
    block = f"{made} `{command}`\n\n```\n{table.strip()}\n```"
    text = check_markers(page, name)
    page.write_text(
        _place(name).sub(lambda found: f"{found[1]}\n{block}\n{found[2]}", text), encoding="utf-8"
    )


def _place(name: str) -> re.Pattern[str]:
    marker = re.escape(name)
    return re.compile(
        rf"^(<!-- {marker} -->)$.*?^(<!-- /{marker} -->)$", flags=re.DOTALL | re.MULTILINE
    )
