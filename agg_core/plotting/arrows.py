"""Which flows become arrows, how wide they are and what outline they have."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from agg_core.base.errors import InputError
from agg_core.tables.flows import require_columns

__all__ = [
    "FlowSelection",
    "arrow_rings",
    "arrow_widths",
    "select_flows",
]

FloatArray = npt.NDArray[np.float64]

TAIL_WIDTH = 0.3
HEAD_WIDTH = 2.2
HEAD_LENGTH = 4.4
HEAD_SHARE = 0.5


def arrow_rings(
    origin_xy: npt.ArrayLike,
    dest_xy: npt.ArrayLike,
    half_width: npt.ArrayLike,
    *,
    inset_share: float = 0.15,
    max_inset: float = math.inf,
    gap: float = 0.15,
) -> FloatArray:
    """Closed outlines (n, 8, 2) of tapered arrows from (n, 2) to (n, 2), all in metres.

    With u the direction, n its left normal and h the half width, an arrow from a to b has the
    ring a - .3hn, c - hn, c - 2.2hn, b, c + 2.2hn, c + hn, a + .3hn, where c = b - u·head. The
    head is 4.4 h long, at most half of the arrow, so that a ring never crosses itself. The ends
    a and b lie `inset_share` of the distance (at most `max_inset` metres) inside the two places.
    The whole arrow lies `gap` h to the right of the line between them, so that the arrow of the
    way back runs beside it on the other side.

    Raises
    ------
    InputError
        If the shapes differ, a width is not positive, or an arrow starts where it ends.
    """
    start, end, h = (np.asarray(part, dtype=float) for part in (origin_xy, dest_xy, half_width))
    if start.ndim != 2 or start.shape[1:] != (2,) or end.shape != start.shape:
        raise InputError(
            "Arrows need as many origins (n, 2) as destinations (n, 2).", code="wrong-shape"
        )
    if h.shape != start.shape[:1] or not (h > 0).all():
        raise InputError("Each arrow needs one half width above 0 metres.", code="malformed-widths")
    distance = np.hypot(*(end - start).T)
    if not (distance > 0).all():
        raise InputError(
            "An arrow cannot start where it ends; leave the people who stay out.",
            code="arrow-without-length",
        )
    along = (end - start) / distance[:, None]
    left = np.column_stack([-along[:, 1], along[:, 0]])
    side = -(HEAD_WIDTH + gap) * h[:, None] * left
    inset = np.minimum(inset_share * distance, max_inset)[:, None] * along
    a, b = start + inset + side, end - inset + side
    length = np.hypot(*(b - a).T)
    c = b - np.minimum(HEAD_LENGTH * h, HEAD_SHARE * length)[:, None] * along
    hn = h[:, None] * left
    ring = [
        a - TAIL_WIDTH * hn,
        c - hn,
        c - HEAD_WIDTH * hn,
        b,
        c + HEAD_WIDTH * hn,
        c + hn,
        a + TAIL_WIDTH * hn,
        a - TAIL_WIDTH * hn,
    ]
    return np.stack(ring, axis=1)


def arrow_widths(
    counts: npt.ArrayLike, vmax: float, min_half_width: float, max_half_width: float
) -> FloatArray:
    """Half widths (n,) proportional to counts, `max_half_width` at `vmax` people and beyond.

    Widths never fall below `min_half_width`, so that a small flow is still seen. Maps that are
    compared share `vmax`, and with it the scale.
    """
    if not vmax > 0:
        raise InputError(
            f"The top of the flow scale must be above 0 people; it is {vmax}.",
            code="scale-not-positive",
        )
    share = np.asarray(counts, dtype=float) / vmax
    return np.clip(share * max_half_width, min_half_width, max_half_width)


@dataclass(frozen=True)
class FlowSelection:
    """The flows that a map draws, and what it leaves out.

    Attributes
    ----------
    frame : columns origin, dest, count (and any others given); the largest flow first
    n_above : flows between two cells of the grid that exceed the threshold
    n_shown : those of them that are drawn
    share_shown : people drawn / people who move, 0 where nobody moves
    total_moves : people who change their state per step, those from or to outside included
    n_outside : flows from or to the state outside that exceed the threshold, never drawn
    outside_count : people in all flows from or to the state outside
    """

    frame: pd.DataFrame
    n_above: int
    n_shown: int
    share_shown: float
    total_moves: float
    n_outside: int
    outside_count: float


def select_flows(
    flows: pd.DataFrame,
    threshold: float,
    top_n: int | None = None,
    *,
    n_cells: int | None = None,
) -> FlowSelection:
    """Keep the flows above `threshold` people, of those the `top_n` largest.

    `flows` has columns origin, dest, count (people per step). People who stay (origin equal to
    dest) are no flow. Flows with an end at state `n_cells`, the outside of the grid, are counted
    apart. Equal counts are ordered by origin, then dest.

    Raises
    ------
    InputError
        If a column is missing, a count is negative or not a number, or a state is unknown.
    """
    require_columns(flows)
    if top_n is not None and top_n < 0:
        raise InputError(
            f"The number of arrows must be 0 or more; it is {top_n}.", code="value-out-of-range"
        )
    count = flows["count"].to_numpy(dtype=float)
    if not (np.isfinite(count) & (count >= 0)).all():
        raise InputError(
            "Flow counts must be finite numbers of people, 0 or more.", code="not-counts"
        )
    origin, dest = flows["origin"].to_numpy(), flows["dest"].to_numpy()
    outside = np.zeros(len(flows), dtype=bool)
    if n_cells is not None:
        if len(flows) and not (
            0 <= min(origin.min(), dest.min()) <= max(origin.max(), dest.max()) <= n_cells
        ):
            raise InputError(
                f"Flows must join states 0 to {n_cells} of this grid; choose the grid of the run.",
                code="grid-differs",
            )
        outside = (origin == n_cells) | (dest == n_cells)
    moves = origin != dest
    above = moves & (count > threshold)
    kept = flows[above & ~outside].sort_values(
        ["count", "origin", "dest"], ascending=[False, True, True]
    )
    shown = kept.head(len(kept) if top_n is None else top_n).reset_index(drop=True)
    total = float(count[moves].sum())
    return FlowSelection(
        frame=shown,
        n_above=len(kept),
        n_shown=len(shown),
        share_shown=float(shown["count"].sum()) / total if total > 0 else 0.0,
        total_moves=total,
        n_outside=int((above & outside).sum()),
        outside_count=float(count[moves & outside].sum()),
    )
