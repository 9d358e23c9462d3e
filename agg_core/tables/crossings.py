"""The table of crossings: what gates counted at places that people pass on their way."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
from scipy import sparse

from agg_core.base.errors import InputError

__all__ = ["CrossingTable"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class CrossingTable:
    """People who passed G gates, each one way, in the steps that begin at the n moments of counts.

    Attributes
    ----------
    gates, directions : (G,) name of each gate and of the way past it that was counted; a gate whose
        both ways were counted apart stands twice
    moves : (G, (c + 1)^2) how often whoever goes from one cell to another passes each, the origin
        times c + 1 plus the dest; the last of them is outside of all c cells
    counts : (n, G) people, not a number where nothing was counted
    set_aside : rows of the file that were left out, by cause
    error : standard deviation of the error of a count over the count, besides that people are
        counted one by one; None to learn it gate by gate
    """

    gates: tuple[str, ...]
    directions: tuple[str, ...]
    moves: sparse.csr_array
    counts: FloatArray
    set_aside: Mapping[str, int] = field(default_factory=dict)
    error: float | None = None

    def __post_init__(self) -> None:
        if self.error is not None and not 0 <= self.error <= 1:
            raise InputError(
                f"The error of gates was to be {self.error:g}; give a share of 0 to 1, such as "
                "0.05.",
                code="value-out-of-range",
            )

    @property
    def n_gates(self) -> int:
        """Gates G, each one way."""
        return len(self.gates)

    @property
    def n_cells(self) -> int:
        """Cells c."""
        return math.isqrt(self.moves.shape[1]) - 1

    @property
    def n_used(self) -> int:
        """Counts that there are."""
        return int(np.isfinite(self.counts).sum())

    def between(self, *, outside: bool) -> sparse.csr_array:
        """`moves` (G, d * d) between cells, and outside if that is one of the d states."""
        if outside:
            return self.moves
        n = self.n_cells
        kept = np.ones((n + 1, n + 1), dtype=bool)
        kept[-1] = kept[:, -1] = False
        return sparse.csr_array(self.moves[:, np.flatnonzero(kept)])

    def without(self, gate: int) -> CrossingTable:
        """The same without the counts of one gate, by its number."""
        counts = self.counts.copy()
        counts[:, gate] = np.nan
        return replace(self, counts=counts)
