"""How much memory learning from counts takes, told before it begins: sizes, by measured bytes.

Bytes were measured as peaks of whole studies, of 25 to 100 cells and up to a dozen simulated worlds
(``python -m benchmarks memory``), and hold within a factor of about 1.5.
"""

from __future__ import annotations

from agg_core.counts.pair_tables import MOST_ENTRIES
from agg_core.study.lasting import CountSizes
from agg_core.study.settings import CountLearnSettings

__all__ = ["BASE_BYTES", "count_megabytes", "gate_megabytes"]

BASE_BYTES = 270e6
"""The program itself with its libraries and compiled kernels."""

FLOW_BYTES, WORLD_BYTES = 80, 62
"""A flow of a single pair of moments, and one of these in each simulated world, which are held
against it day by day."""

TIMED_BYTES = 150
"""A flow of a time of day: totals, their errors in worlds, chances of moves and slopes."""

DESCENT_BYTES = 700
"""A chance of a move, while steps of a descent are remembered."""

SMOOTHED_BYTES = 96
"""A flow of a pair where counts err: covariances that the smoother keeps."""

DRAWS, CHAINS, MOST_DRAWS_BYTES = 640, 4, 1 << 28
"""Draws of a flow and their bytes, where people are drawn, and the most that are kept."""

COUNT_BYTES = 64
"""A count of a cell, before and after."""


GATE_BYTES, GATE_DRAW_BYTES = 120, 3
"""A flow of a pair in a step of a single day at gates, and in each draw of patterns."""


def gate_megabytes(n_days: int, n_steps: int, n_stations: int, n_draws: int) -> float:
    """Peak memory of learning from entries and exits in MB, within a factor of about 1.5."""
    flows = float(n_days * n_steps * n_stations**2)
    return (BASE_BYTES + flows * (GATE_BYTES + GATE_DRAW_BYTES * n_draws)) / 1e6


def count_megabytes(sizes: CountSizes, learn: CountLearnSettings) -> float:
    """Peak memory of learning from counts in MB, within a factor of about 1.5.

    It grows with the moves of all pairs of moments, up to as many as are kept, and these with the
    simulated worlds; of moves within a reach only those count.
    """
    moves = float(sizes.states**2)
    if sizes.moves is not None:
        moves = sizes.states * (1 + sizes.moves)
    slots = sizes.slots * sizes.types
    kept = min(sizes.pairs * moves, MOST_ENTRIES)
    held = (
        kept * (FLOW_BYTES + WORLD_BYTES * learn.worlds) + sizes.pairs * sizes.states * COUNT_BYTES
    )
    held += moves * (slots * TIMED_BYTES + DESCENT_BYTES)
    if sizes.errs:
        held += sizes.pairs * moves * SMOOTHED_BYTES
    elif sizes.drawn:
        held += min(DRAWS * CHAINS * slots * moves, MOST_DRAWS_BYTES)
        held += min(DRAWS * sizes.people, MOST_DRAWS_BYTES)
    return (BASE_BYTES + held) / 1e6
