"""Counts of thousands of cells, flows within a reach: ``python -m benchmarks local-counts``.

A simulated city of 500 m mesh cells, counted by the hour, in which a person moves up to a reach in
an hour, by chances that change through the day. Learned flows are held against who really moved.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from agg_core.counts.local import MovePattern
from agg_core.model.hmm import distance_decay_transmat
from agg_core.space.settings import MeshSettings
from agg_core.tables.count_report import CountReport
from agg_core.tables.counts import PUBLISHED, CountTable

__all__ = ["LargeCity", "large_city"]

FloatArray = npt.NDArray[np.float64]

FIRST = (53 * 160 + 60, 39 * 160 + 40)
"""Row and column of the first cell, among all of 500 m."""
EACH = 100
"""People per cell."""
REACH_M = 2_200.0
DECAY_M, TASTE = 800.0, 0.5
CENTRE = 0.18
"""How far from the middle most jobs are, as a part of the side."""


@dataclass(frozen=True)
class LargeCity:
    """Counts, and the moves (H, n + d) that were, summed over days, of a pattern."""

    table: CountTable
    pattern: MovePattern
    moves: FloatArray


def mesh_code(row: int, col: int) -> str:
    """The code of a mesh cell of 500 m by its row and column among all."""
    ends = [divmod(row, 160), divmod(col, 160)]
    (p, r), (q, c) = ends
    return f"{p:02d}{q:02d}{r // 20}{c // 20}{r % 20 // 2}{c % 20 // 2}{1 + c % 2 + 2 * (r % 2)}"


def large_city(rows: int, cols: int, days: int = 14, seed: int = 0) -> LargeCity:
    """Rows times columns of cells of 500 m, and `EACH` people in each on average."""
    rng = np.random.default_rng(seed)
    codes = tuple(mesh_code(FIRST[0] + r, FIRST[1] + c) for r in range(rows) for c in range(cols))
    settings = MeshSettings(codes=codes)
    grid = settings.make()
    pattern = MovePattern.of(distance_decay_transmat(grid, reach_m=REACH_M))
    places, d = grid.centroids_m, len(codes)
    side = float(np.ptp(places, axis=0).max())
    from_centre = np.hypot(*(places - places.mean(axis=0)).T) / side
    homes = np.exp(rng.normal(0, 0.6, d))
    jobs = np.exp(rng.normal(0, 0.8, d)) * (np.exp(-((from_centre / CENTRE) ** 2)) * 3 + 0.3)
    homes, jobs = homes / homes.mean(), jobs / jobs.mean()
    apart = np.hypot(*(places[pattern.origin] - places[pattern.dest]).T)
    taste = np.exp(-apart / DECAY_M + rng.normal(0, TASTE, pattern.n_moves))
    stay = rng.normal(0, 0.2, d)
    chances = np.zeros((24, pattern.n_moves + d))
    for hour in range(24):
        morning, evening = np.exp(-((hour - 8) ** 2) / 4), np.exp(-((hour - 18) ** 2) / 6)
        weight = (morning * jobs + evening * homes + 0.15)[pattern.dest] * taste
        moving = np.minimum((0.02 + 0.25 * max(morning, evening)) * np.exp(stay), 0.9)
        going = weight / pattern.by_row(weight)[pattern.origin]
        chances[hour, : pattern.n_moves] = moving[pattern.origin] * going
        chances[hour, pattern.n_moves :] = 1 - moving
    steps = 24 * days
    counts = np.empty((steps, d), dtype=np.int64)
    counts[0] = rng.multinomial(EACH * d, homes / homes.sum())
    moves = np.zeros_like(chances)
    most = int(np.diff(pattern.first).max())
    place = np.arange(pattern.n_moves) - pattern.first[pattern.origin]
    split = np.zeros((d, most + 1))
    for t in range(steps - 1):
        now = chances[t % 24]
        split[pattern.origin, place], split[:, -1] = now[: pattern.n_moves], now[pattern.n_moves :]
        went = rng.multinomial(counts[t], split)
        moved = np.r_[went[pattern.origin, place], went[:, -1]]
        moves[t % 24] += moved
        counts[t + 1] = pattern.by_dest(moved[: pattern.n_moves]) + moved[pattern.n_moves :]
    times = pd.date_range("2024-04-01", periods=steps, freq="h", tz="Asia/Tokyo").tz_convert("UTC")
    table = CountTable(
        times=times,
        sequence=np.zeros(steps, dtype=np.int64),
        slot=(np.arange(steps) % 24).astype(np.int64),
        slots=tuple(f"{hour:02d}:00" for hour in range(24)),
        cells=codes,
        counts=counts.astype(np.float64),
        status=np.full(counts.shape, PUBLISHED, dtype=np.uint8),
        suppressed_below=0.0,
        timezone="Asia/Tokyo",
        grid=settings,
        report=CountReport(steps, steps),
    )
    return LargeCity(table, pattern, moves)
