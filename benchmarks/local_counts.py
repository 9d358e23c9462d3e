"""Counts of thousands of cells, flows within a reach: ``python -m benchmarks local-counts``.

A simulated city of 500 m mesh cells, counted by the hour, in which a person moves up to a reach in
an hour, by chances that change through the day. Learned flows are held against who really moved.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from agg_core.base.memory import peak_bytes
from agg_core.counts.choosing import DENSE, learn_flows
from agg_core.counts.local import MovePattern, Nearby
from agg_core.counts.local_flows import of_people
from agg_core.counts.pairs import pairs_of
from agg_core.counts.rows import Strength
from agg_core.model.hmm import distance_decay_transmat
from agg_core.space.settings import MeshSettings
from agg_core.study.counts import USUAL, CountStudy, count_study_steps
from agg_core.study.result import ESTIMATE
from agg_core.study.settings import CountLearnSettings
from agg_core.tables.count_report import CountReport
from agg_core.tables.counts import PUBLISHED, CountTable

__all__ = ["LargeCity", "large_city", "main"]

FloatArray = npt.NDArray[np.float64]

FIRST = (53 * 160 + 60, 39 * 160 + 40)
"""Row and column of the first cell, among all of 500 m."""
EACH = 100
"""People per cell."""
REACH_M = 2_200.0
DECAY_M, TASTE = 800.0, 0.5
CENTRE = 0.18
"""How far from the middle most jobs are, as a part of the side."""


STRENGTH = Strength(500.0, hours=10.0)
"""What both learners are given where they are held against each other."""


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


def figures(city: LargeCity, flows: FloatArray) -> dict[str, float]:
    """Common part and total of moves (H, n) that are summed over days, and hour by hour."""
    true = city.moves[:, : city.pattern.n_moves]
    day, true_day = flows.sum(axis=0), true.sum(axis=0)
    return {
        "cpc": 2 * float(np.minimum(day, true_day).sum() / (day.sum() + true_day.sum())),
        "cpc_by_slot": 2 * float(np.minimum(flows, true).sum() / (flows.sum() + true.sum())),
        "total_ratio": float(day.sum() / true_day.sum()),
    }


def flows_of(city: LargeCity, study: CountStudy, source: str) -> FloatArray:
    """Moves (H, n) of a study, summed over days."""
    of = city.pattern
    steps = np.array([study.steps_summed(slot) for slot in study.slots])
    flows = np.zeros((len(study.slots), of.n_moves))
    keys = of.origin * of.n_states + of.dest
    for number, slot in enumerate(study.slots):
        rows = study.rows(slot, source)
        away = rows["origin"] != rows["dest"]
        ends = (rows.loc[away, name].to_numpy(np.int64) for name in ("origin", "dest"))
        origin, dest = ends
        at = np.searchsorted(keys, origin * of.n_states + dest)
        flows[number, at] = rows.loc[away, "count"] * steps[number]
    return flows


def whole_way(city: LargeCity, reach_m: float) -> Iterator[dict[str, object]]:
    """All that the app does, strengths chosen, by the way of its stages."""
    began, worked, stage = time.perf_counter(), time.process_time(), ""
    settings = CountLearnSettings(reach_m=reach_m)
    for step in count_study_steps(city.table, settings):
        if isinstance(step, CountStudy):
            took, cpu = time.perf_counter() - began, time.process_time() - worked
            for source in (ESTIMATE, USUAL):
                yield {
                    "method": f"app, {step.source_name(source)}", "seconds": took, "cpu_s": cpu,
                    "peak_gb": peak_bytes() / 1e9, **figures(city, flows_of(city, step, source)),
                }  # fmt: skip
        elif step.stage != stage:
            stage = step.stage
            print(
                f"  {time.perf_counter() - began:.0f} s, {peak_bytes() / 1e9:.1f} GB: {stage}",
                flush=True,
            )


def beside_dense(city: LargeCity, reach_m: float, rounds: int) -> Iterator[dict[str, object]]:
    """Blocks, and the dense learner, which is one block of all cells, with the same strengths.

    The dense one goes on from where the blocks end: a round of it takes minutes.
    """
    grid, pairs = city.table.grid.make(), pairs_of(city.table)
    shape = distance_decay_transmat(grid, reach_m=reach_m)
    near = Nearby.of(shape, grid.centroids_m)
    one = Nearby(near.pattern, tuple(near.pattern.blocks(np.zeros(grid.n_cells, dtype=np.int64))))
    start = None
    for method, of, most in (("blocks", near, None), ("one block", one, rounds)):
        began, worked = time.perf_counter(), time.process_time()
        for state in learn_flows(pairs, of, DENSE, STRENGTH, n_iter=most, start=start):
            start = state
        flows = of_people(near.pattern, pairs.people, state.transmats)[:, : near.pattern.n_moves]
        yield {
            "method": method, "seconds": time.perf_counter() - began,
            "cpu_s": time.process_time() - worked, "peak_gb": peak_bytes() / 1e9,
            **figures(city, flows),
        }  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    """Print a row per way to come from counts to flows."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks local-counts", description=__doc__)
    parser.add_argument("--side", type=int, default=100, help="cells along each side")
    parser.add_argument("--days", type=int, default=14)
    parser.add_argument("--reach", type=float, default=REACH_M, help="metres")
    parser.add_argument("--dense", type=int, metavar="ROUNDS",
                        help="instead of the app, blocks and so many rounds of one block of all "
                        "cells (32 cells along each side take some minutes a round)")  # fmt: skip
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args(arguments)
    city = large_city(chosen.side, chosen.side, chosen.days, chosen.seed)
    print(f"{city.pattern.n_states:,} cells, {city.pattern.n_moves:,} moves between them")
    rows = []
    found = (
        whole_way(city, chosen.reach)
        if chosen.dense is None
        else beside_dense(city, chosen.reach, chosen.dense)
    )
    for row in found:
        rows.append(row)
    print(pd.DataFrame(rows).to_string(index=False, float_format=lambda v: f"{v:.4g}"))
    return 0
