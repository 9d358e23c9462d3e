"""The product's side: a file through the reader in batches, fixes to counts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from agg_core.io.choices import Choices
from agg_core.io.fixes import Fixes, FixReader
from agg_core.io.formats.registry import open_source
from agg_core.io.streaming import count_cells
from benchmarks.big_files.task import STEP_MINUTES, Counts, the_grid

__all__ = ["count", "fix_batches"]


def count(path: Path, bounds: tuple[float, float, float, float]) -> Counts:
    """Counts of a file or folder whose clock is UTC."""
    table = count_cells(fix_batches(path), the_grid(bounds), f"{STEP_MINUTES}min", "UTC")
    minutes = table["time"].to_numpy().astype("datetime64[m]").astype(np.int64)
    return Counts(minutes // STEP_MINUTES, table["cell"].to_numpy(), table["count"].to_numpy())


def fix_batches(path: Path) -> Iterator[Fixes]:
    """What the product reads, with all its checks of columns, times and places."""
    choices = Choices.of(tz="UTC")
    return FixReader(open_source(path, choices), choices).batches()
