"""Sectors: own areas, such as wards, whose flows are sums of those between cells.

A cell that lies in several sectors is split between them by area: whoever goes from it or to it
does so in each of them in proportion, wherever the other end is. Who stays in a cell stays in the
sector. How many people are split in that way is told, since within a cell nobody knows better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import sparse

from agg_core.base.errors import InputError
from agg_core.evidence.sums import CellFlows, Sums
from agg_core.space.areas import AreaGrid
from agg_core.space.grid import BaseGrid
from agg_core.space.shares import meeting

__all__ = ["ELSEWHERE", "Sectors", "merged_cells", "sectors_of"]

FloatArray = npt.NDArray[np.float64]

ELSEWHERE = "elsewhere"
"""The sector of what lies in none of the areas."""

WHOLE = 1e-3
"""Share of a cell below which what an area has of it is a border that was drawn twice."""


@dataclass(frozen=True)
class Sectors:
    """Sectors by name, and the share that each has of every cell.

    Attributes
    ----------
    names : (K,) the last is `ELSEWHERE` where areas do not cover all cells
    shares : (d, K) sparse, rows sum to 1
    """

    names: tuple[str, ...]
    shares: sparse.csr_array

    @cached_property
    def split(self) -> npt.NDArray[np.bool_]:
        """Whether a cell (d,) is split between sectors."""
        return np.asarray(np.diff(self.shares.indptr) > 1)

    @property
    def n_split(self) -> int:
        """Number of cells that are split."""
        return int(self.split.sum())

    def flows(self, flows: CellFlows) -> Sums:
        """Flows from each sector to each, row by row, (K * K,); stays among them."""
        return flows.summed(self.weights(flows))

    def trip_ends(self, flows: CellFlows) -> tuple[Sums, Sums]:
        """People who leave each sector for another, and who come to it from others, (K,) each."""
        n, weights = len(self.names), self.weights(flows)
        number = np.arange(n * n)
        away = number // n != number % n
        ends = []
        for end in (number // n, number % n):
            picked = sparse.csr_array((away.astype(float), (end, number)), shape=(n, n * n))
            ends.append(flows.summed(sparse.csr_array(picked @ weights)))
        return ends[0], ends[1]

    def share_split(self, flows: CellFlows) -> float:
        """Share of moves with an end in a cell that is split; 0 where nobody moves."""
        moved = flows.count * flows.moves
        of_split = self.split[flows.origin] | self.split[flows.dest]
        total = moved.sum()
        return float(moved[of_split].sum() / total) if total > 0 else 0.0

    def weights(self, flows: CellFlows) -> sparse.csr_array:
        """What each pair (P,) counts for in each flow between sectors, (K * K, P), row by row."""
        n, shares = len(self.names), self.shares
        per_cell = np.diff(shares.indptr)
        moves = np.flatnonzero(flows.moves)
        origin, dest = flows.origin[moves], flows.dest[moves]
        each = per_cell[origin] * per_cell[dest]
        pair = np.repeat(np.arange(len(moves)), each)
        number = np.arange(len(pair)) - np.repeat(np.cumsum(each) - each, each)
        from_at = shares.indptr[origin][pair] + number // per_cell[dest][pair]
        to_at = shares.indptr[dest][pair] + number % per_cell[dest][pair]
        stays = np.flatnonzero(~flows.moves)
        of_stay = per_cell[flows.origin[stays]]
        at = np.repeat(shares.indptr[flows.origin[stays]], of_stay)
        at = at + np.arange(len(at)) - np.repeat(np.cumsum(of_stay) - of_stay, of_stay)
        rows = np.concatenate(
            [shares.indices[from_at] * n + shares.indices[to_at], shares.indices[at] * (n + 1)]
        )
        columns = np.concatenate([moves[pair], np.repeat(stays, of_stay)])
        values = np.concatenate([shares.data[from_at] * shares.data[to_at], shares.data[at]])
        return sparse.csr_array((values, (rows, columns)), shape=(n * n, len(flows.count)))


def sectors_of(areas: AreaGrid, grid: BaseGrid) -> Sectors:
    """Lay areas over cells, by the share of its area that each cell has in each.

    Where areas overlap, the first of them holds what they share.

    Raises
    ------
    InputError
        If no area meets a cell.
    """
    import shapely  # noqa: PLC0415

    both = meeting(areas, grid)
    shapes, cells, area, cell = both
    size = shapely.area(cells)
    shared = both.shared_m2 / size[cell]
    left = np.ones(grid.n_cells)
    for number in np.unique(area) if areas.overlaps else ():
        # What earlier areas have of these cells is not there twice.
        here = np.flatnonzero(area == number)
        before = shapes[: int(number)]
        earlier = shapely.union_all(before) if len(before) else None
        alone = shapely.intersection(shapes[number], cells[cell[here]])
        alone = alone if earlier is None else shapely.difference(alone, earlier)
        shared[here] = shapely.area(alone) / size[cell[here]]
    some = shared > WHOLE
    if not some.any():
        raise InputError(
            "None of the areas meets a cell of the flows; choose areas of the same place.",
            code="areas-elsewhere",
        )
    area, cell, kept = area[some], cell[some], np.minimum(shared[some], 1.0)
    np.subtract.at(left, cell, kept)
    beyond = np.flatnonzero(left > WHOLE)
    names = [*areas.labels, *[ELSEWHERE] * bool(len(beyond))]
    rows = np.concatenate([cell, beyond])
    columns = np.concatenate([area, np.full(len(beyond), len(areas.labels))])
    values = np.concatenate([kept, left[beyond]])
    shares = sparse.csr_array((values, (rows, columns)), shape=(grid.n_cells, len(names)))
    shares.sum_duplicates()
    total = np.asarray(shares.sum(axis=1)).ravel()
    shares.data /= np.repeat(total, np.diff(shares.indptr))
    return Sectors(tuple(names), shares)


def merged_cells(groups: Sequence[tuple[str, Sequence[int]]], n_cells: int) -> Sectors:
    """Sectors of whole cells: a name and the numbers of its cells each; the rest is elsewhere.

    Raises
    ------
    InputError
        If a cell does not exist or is in two sectors.
    """
    of = np.full(n_cells, -1)
    for number, (name, cells) in enumerate(groups):
        for cell in cells:
            if not 0 <= cell < n_cells:
                raise InputError(
                    f"The sector {name} has a cell {cell}; cells go from 0 to {n_cells - 1}.",
                    code="unknown-cell",
                )
            if of[cell] >= 0:
                raise InputError(
                    f"Cell {cell} is in the sectors {groups[of[cell]][0]} and {name}; give it to "
                    "one of them.",
                    code="cell-in-two-sectors",
                )
            of[cell] = number
    names = [name for name, _ in groups]
    if (of < 0).any():
        of[of < 0] = len(names)
        names.append(ELSEWHERE)
    shares = sparse.csr_array((np.ones(n_cells), (np.arange(n_cells), of)))
    return Sectors(tuple(names), sparse.csr_array(shares, shape=(n_cells, len(names))))
