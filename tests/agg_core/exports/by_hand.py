"""A result whose flows and counts were written by hand, on the 3 x 3 grid of `tiny`."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd

from agg_core.study.settings import WindowSettings
from tests.agg_core import tiny

MORNING, NIGHT = "08:00", "23:30"
OUT = tiny.OUTSIDE

FLOWS = {
    (MORNING, "estimate"): {
        (0, 1): 2.5, (1, 0): 0.5, (0, 0): 4.0, (0, OUT): 1.5, (OUT, 1): 0.25, (2, 5): 0.0,
    },
    (MORNING, "single"): {(0, 1): 2.0, (3, 4): 1.0, (0, 0): 5.0},
    (MORNING, "counted"): {(0, 1): 2.0, (8, 7): 3.0},
    (NIGHT, "estimate"): {(4, 0): 7.0, (3, 3): 12.0},
    (NIGHT, "single"): {(4, 0): 6.0},
    (NIGHT, "counted"): {(4, 0): 6.0},
}  # fmt: skip

OBSERVED = {
    MORNING: np.arange(30.0).reshape(3, 10),
    NIGHT: np.arange(30.0).reshape(3, 10) + 100,
}


@cache
def result():
    """Two times of day, an outside, three steps of an hour; the fits are those of a real study."""
    chosen = tiny.settings(window=WindowSettings(60, 3, ("05:00", "08:00")))
    _, learned = tiny.run(tiny.people(outside=True), chosen)
    anchors = tuple(
        replace(a, anchor=name, observed=OBSERVED[name])
        for a, name in zip(learned.anchors, (MORNING, NIGHT), strict=True)
    )
    assert learned.n_states == 10
    return replace(learned, anchors=anchors, flows=_table())


@cache
def of_positions():
    """The same without counts of blocks."""
    whole = result()
    return replace(whole, anchors=tuple(replace(a, observed=None) for a in whole.anchors))


@cache
def whole_day():
    """A real study without anchors and without an outside."""
    return tiny.run(tiny.people(), tiny.settings(iterations=1))[1]


def _table():
    rows = [
        {"anchor": anchor, "source": source, "origin": o, "dest": d, "count": n}
        for (anchor, source), flows in FLOWS.items()
        for (o, d), n in flows.items()
    ]
    places = [(139.05 + 0.1 * (i % 3), 35.05 + 0.1 * (i // 3)) for i in range(9)] + [(np.nan,) * 2]
    for row in rows:
        row["origin_lon"], row["origin_lat"] = places[row["origin"]]
        row["dest_lon"], row["dest_lat"] = places[row["dest"]]
    return pd.DataFrame(rows)
