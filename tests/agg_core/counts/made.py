"""Small tables and pairs of counts, made by hand or by people who move by known chances."""

import numpy as np
import pandas as pd

from agg_core.counts.pairs import CountPairs
from agg_core.space.settings import MeshSettings
from agg_core.tables.count_report import CountReport
from agg_core.tables.counts import MISSING, PUBLISHED, SUPPRESSED, CountTable


def table(counts, *, steps=24, start="2024-04-01", below=0.0, runs=None, grid=None, zone="UTC"):
    """A table of moments an hour apart, ``steps`` of them a day: inf is suppressed, NaN missing."""
    counts = np.asarray(counts, dtype=float)
    status = np.where(np.isinf(counts), SUPPRESSED, np.where(np.isnan(counts), MISSING, PUBLISHED))
    n = len(counts)
    day, hour = np.divmod(np.arange(n), steps)
    local = pd.Timestamp(start, tz=zone) + pd.to_timedelta(24 * day + hour, unit="h")
    return CountTable(
        times=pd.DatetimeIndex(local).tz_convert("UTC").as_unit("us"),
        sequence=np.zeros(n, dtype=np.int64) if runs is None else np.asarray(runs),
        slot=hour.astype(np.int64),
        slots=tuple(f"{hour:02d}:00" for hour in range(steps)),
        cells=tuple(f"c{i}" for i in range(counts.shape[1])) if grid is None else grid.codes,
        counts=np.where(status == PUBLISHED, counts, np.nan),
        status=status.astype(np.uint8),
        suppressed_below=float(below),
        timezone=zone,
        grid=grid,
        report=CountReport(n, n),
    )


def city_table(city, *, below=0.0, as_zero=False, grid=True, runs=None):
    """The counts of a simulated city, those under a number suppressed, or taken as zero."""
    hidden = city.counts < below
    counts = np.where(hidden, 0.0 if as_zero else np.inf, city.counts)
    return table(
        counts, below=0.0 if as_zero or not hidden.any() else below, zone="Asia/Tokyo",
        grid=MeshSettings(codes=city.codes) if grid else None, runs=runs,
    )  # fmt: skip


def pairs(before, after, *, slot=None, day=None, n_slots=1, hidden=None, outside=False):
    """Pairs of counts as they are given; each a day of its own unless told."""
    before, after = np.asarray(before, dtype=float), np.asarray(after, dtype=float)
    n = len(before)
    shown = np.zeros(before.shape, dtype=bool)
    return CountPairs(
        before=before,
        after=after,
        slot=np.zeros(n, dtype=np.int64) if slot is None else np.asarray(slot),
        day=np.arange(n) if day is None else np.asarray(day),
        slots=tuple(f"{hour:02d}:00" for hour in range(n_slots)),
        has_outside=outside,
        open_before=shown,
        open_after=shown if hidden is None else np.asarray(hidden, dtype=bool),
    )


def moving_pairs(rng, transmats, n_days, people):
    """A pair per time of day and day: ``people`` spread unevenly, who move by (H, d, d)."""
    n_slots, d, _ = transmats.shape
    slot = np.tile(np.arange(n_slots), n_days)
    before = np.stack([rng.multinomial(people, rng.dirichlet(np.ones(d))) for _ in slot])
    after = [
        rng.multinomial(y, transmats[h]).sum(axis=0) for y, h in zip(before, slot, strict=True)
    ]
    day = np.repeat(np.arange(n_days), n_slots)
    return pairs(before, after, slot=slot, day=day, n_slots=n_slots)


def chained_table(rng, stay, *, n_cells, n_days, n_hours, n_people):
    """Counts of people who move by one chain, and their moves at each hour, a sum over the days."""
    chain = stay * np.eye(n_cells) + (1 - stay) * rng.dirichlet(np.ones(n_cells), n_cells)
    counts, moves = [], np.zeros((n_hours - 1, n_cells, n_cells))
    for _ in range(n_days):
        counts.append(rng.multinomial(n_people, rng.dirichlet(np.ones(n_cells))))
        for hour in range(n_hours - 1):
            moved = rng.multinomial(counts[-1], chain)
            moves[hour] += moved
            counts.append(moved.sum(axis=0))
    runs = np.repeat(np.arange(n_days), n_hours)
    return table(np.array(counts), steps=n_hours, runs=runs), moves


def row_error(found, truth):
    """Mean L1 distance of rows of transitions, 0 to 2."""
    return float(np.abs(found - truth).sum(axis=-1).mean())


def common_part(found, truth):
    """Common part of commuters, 0 to 1: of moves, not of stays."""
    away = ~np.eye(found.shape[-1], dtype=bool)
    found, truth = found[..., away], truth[..., away]
    return 2 * np.minimum(found, truth).sum() / (found.sum() + truth.sum())
