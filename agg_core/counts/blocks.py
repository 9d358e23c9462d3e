"""Blocks of neighbouring cells: the likelihood of counts of many cells, a block at a time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from agg_core.base.engine import LOCAL, use_engine
from agg_core.counts._pair_kernels import covariances, residual_slopes
from agg_core.counts.inverse import inverse_and_log_det
from agg_core.counts.pairs import CountPairs
from agg_core.learn.esteps.gaussian_pairs import DITHER

__all__ = [
    "Block",
    "Pools",
    "blocks_log_likelihood",
    "blocks_of",
    "pair_log_likelihood",
    "pools_log_likelihood",
    "pools_of",
    "tiles",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


AT_ONCE = 1 << 18
"""Bytes of the tables of chances of pools that are worked on at a time: more do not stay in the
cache of a core."""


@dataclass(frozen=True)
class Pools:
    """The pairs of each of G pools: how many n (G,), and their counts.

    ``before`` (G, P, O) are people where they may come from, ``after`` (G, P, B) where they are
    next; pools of fewer than P pairs are filled with such of nobody. ``y`` (G, O) are sums of
    ``before``; ``slot`` (G,) is the time of day of each pool.
    """

    n: FloatArray
    y: FloatArray
    before: FloatArray
    after: FloatArray
    slot: IntArray

    @property
    def portions(self) -> list[slice]:
        """Numbers of pools whose tables are worked on together (see `AT_ONCE`)."""
        size = 8 * self.before.shape[-1] * self.after.shape[-1]
        each = max(1, AT_ONCE // size)
        return [slice(first, first + each) for first in range(0, len(self.n), each)]

    def some(self, pools: slice) -> Pools:
        """Some of the pools."""
        return Pools(
            self.n[pools], self.y[pools], self.before[pools], self.after[pools], self.slot[pools]
        )

    def part(self, origins: IntArray, cells: IntArray) -> Pools:
        """The same of some cells: those that people come from, and where they are next."""
        return Pools(
            self.n, self.y[:, origins], np.ascontiguousarray(self.before[..., origins]),
            np.ascontiguousarray(self.after[..., cells]), self.slot,
        )  # fmt: skip


def pools_of(pairs: CountPairs, *, by_time: bool) -> Pools:
    """All pairs as one pool, or those of each time of day."""
    pool = pairs.slot if by_time else np.zeros_like(pairs.slot)
    slots, number, n = np.unique(pool, return_inverse=True, return_counts=True)
    shape = (len(slots), int(n.max()), pairs.n_states)
    before, after = np.zeros(shape), np.zeros(shape)
    order = np.argsort(number, kind="stable")
    at = np.arange(len(order)) - np.repeat(np.cumsum(n) - n, n)
    before[number[order], at], after[number[order], at] = pairs.before[order], pairs.after[order]
    return Pools(n.astype(np.float64), before.sum(axis=1), before, after, slots.astype(np.int64))


def pair_log_likelihood(pools: Pools, transmat: FloatArray) -> tuple[float, FloatArray]:
    """The log-likelihood of `agg_core.counts.dense.pooled_log_likelihood`, by residuals of pairs.

    ``transmat`` (G, O, B) leads from the cells that people come from to those where they are next,
    which may be some of all. With residuals R (P, B) of the pairs of a pool S is R' R, which costs
    less than sums of squares where there are fewer pairs than cells.
    """
    V = covariances(pools.y, pools.n, transmat, DITHER)
    W, log_det = inverse_and_log_det(V)
    value, slope = residual_slopes(pools.y, pools.n, pools.before, pools.after, transmat, W, DITHER)
    return -0.5 * float(value + pools.n @ log_det), slope


def pools_log_likelihood(pools: Pools, transmats: FloatArray) -> tuple[float, FloatArray]:
    """`pair_log_likelihood`, some pools after the others, so that they stay in the cache."""
    value, slopes = 0.0, np.empty_like(transmats)
    for some in pools.portions:
        part, slopes[some] = pair_log_likelihood(pools.some(some), transmats[some])
        value += part
    return value, slopes


@dataclass(frozen=True)
class Block:
    """Some cells, and those that people may come from into them.

    ``entries`` are numbers of the moves into them among all, ``at`` where each of these stands in
    a table (O, B) that is written out row by row.
    """

    cells: IntArray
    origins: IntArray
    entries: IntArray
    at: IntArray

    def table(self, moves: FloatArray) -> FloatArray:
        """Tables (H, O, B) of the chances of all moves (H, n)."""
        found = np.zeros((len(moves), len(self.origins) * len(self.cells)))
        found[:, self.at] = moves[:, self.entries]
        return found.reshape(len(moves), len(self.origins), len(self.cells))


def blocks_of(origin: IntArray, dest: IntArray, number: IntArray) -> list[Block]:
    """Blocks of cells, by the ``number`` (d,) of each one's block, of moves (n,).

    Cells of numbers below 0 are in no block.
    """
    of_block = number[dest]
    entries = np.argsort(of_block, kind="stable")[np.sum(of_block < 0) :]
    bounds = np.cumsum(np.bincount(of_block[entries]))[:-1]
    found = []
    for mine in np.split(entries, bounds):
        cells, column = np.unique(dest[mine], return_inverse=True)
        origins, row = np.unique(origin[mine], return_inverse=True)
        found.append(Block(cells, origins, mine, row * len(cells) + column))
    return [block for block in found if len(block.cells)]


def tiles(places_m: FloatArray, side_m: float) -> IntArray:
    """The number of the square of a side, in metres, that each place (d, 2) lies in."""
    squares = np.floor((places_m - places_m.min(axis=0)) / side_m).astype(np.int64)
    return np.unique(squares, axis=0, return_inverse=True)[1].ravel().astype(np.int64)


def blocks_log_likelihood(
    blocks: list[tuple[Block, Pools]], moves: FloatArray
) -> tuple[float, FloatArray]:
    """Sums of `pair_log_likelihood` of blocks, and the slopes (G, n) in chances of moves (G, n).

    It is the likelihood of each block's counts given all counts before, as if blocks did not hang
    together: a composite one (Varin, Reid & Firth 2011), whose slope is zero at the truth on
    average as that of each block is. Blocks share no move, as each is into one cell.
    """
    slopes = np.zeros_like(moves)
    with use_engine(LOCAL) as engine:
        values = engine.map(partial(_one, moves, slopes), blocks)
    return float(sum(values)), slopes


def _one(moves: FloatArray, slopes: FloatArray, part: tuple[Block, Pools]) -> float:
    block, pools = part
    total = 0.0
    for some in pools.portions:
        table = block.table(moves[some])
        value, slope = pair_log_likelihood(pools.some(some), table)
        total += value
        # Threads of this process write each to entries of their own.
        slopes[some, block.entries] = slope.reshape(len(table), -1)[:, block.at]
    return total
