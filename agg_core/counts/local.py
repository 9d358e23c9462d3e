"""Many people and thousands of cells: flows within a reach, from blocks of neighbouring cells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.spatial import KDTree
from scipy.special import expit

from agg_core.base.checkpoints import Course
from agg_core.base.engine import LOCAL, use_engine
from agg_core.base.moves import moves_like
from agg_core.counts._local_kernels import add_slopes, fill_moves
from agg_core.counts.blocks import (
    Block,
    Pools,
    blocks_log_likelihood,
    blocks_of,
    pools_of,
    tiles,
)
from agg_core.counts.dense import LEAVERS, MEMORY, ODDS, Scaled
from agg_core.counts.pairs import CountPairs
from agg_core.counts.rows import EVEN, LEAST_PULL, Strength
from agg_core.counts.state import FlowState
from agg_core.learn.esteps.descent import Steps, lbfgs

__all__ = ["BLOCK", "LocalProblem", "MovePattern", "Nearby", "block_side_m", "local_steps"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

INNER_STEPS = 25
FEWEST_KEPT, BYTES_KEPT = 20, 1 << 27
"""Steps that the descent remembers at least, and memory that they may take besides, up to `MEMORY`
steps: each is two points, which are as long as there are moves."""

BLOCK = 36
"""Cells of a block. More hold more of what counts tell together and cost more: of 400 simulated
cells blocks of 25 and of 100 led to the same total as one block of all, within 0.3 %, and lost
0.02 and 0.01 of the common part of flows."""


@dataclass(frozen=True)
class MovePattern:
    """Moves within a reach: from each of d cells to others, and whether people may stay.

    ``first`` (d + 1,) is where the moves of each cell begin among n, ``dest`` (n,) where they lead,
    ``log_shape`` (n,) the logarithm of their chance to begin with, ``stay`` (d,) that of staying.
    Chances of all are kept as (n + d,): moves, then stays.
    """

    first: IntArray
    dest: IntArray
    log_shape: FloatArray
    stay: FloatArray

    @classmethod
    def of(cls, shape: sparse.csr_array) -> MovePattern:
        """Those of a table (d, d) of chances, of which each that is above 0 may be."""
        table = sparse.csr_array(shape)
        table.sort_indices()
        d = table.shape[0]
        origin = np.repeat(np.arange(d), np.diff(table.indptr))
        away = (origin != table.indices) & (table.data > 0)
        first = np.concatenate([[0], np.cumsum(np.bincount(origin[away], minlength=d))])
        return cls(
            first.astype(np.int64), table.indices[away].astype(np.int64),
            np.log(table.data[away]), np.asarray(table.diagonal(), dtype=np.float64),
        )  # fmt: skip

    @property
    def n_states(self) -> int:
        """Cells, and outside if there is one, d."""
        return len(self.stay)

    @property
    def n_moves(self) -> int:
        """Moves from a cell to another, n."""
        return len(self.dest)

    @cached_property
    def origin(self) -> IntArray:
        """Where each move begins, (n,)."""
        return np.repeat(np.arange(self.n_states), np.diff(self.first))

    @cached_property
    def leads(self) -> BoolArray:
        """Cells that people may leave, (d,)."""
        return np.asarray(np.diff(self.first) > 0)

    @cached_property
    def free(self) -> BoolArray:
        """Cells whose people may both stay and leave, (d,)."""
        return np.asarray((self.stay > 0) & self.leads)

    def blocks(self, number: IntArray) -> list[Block]:
        """Blocks by the ``number`` (d,) of each cell's block, of moves and stays; none below 0."""
        own = np.arange(self.n_states)
        return blocks_of(np.r_[self.origin, own], np.r_[self.dest, own], number)

    def by_row(self, values: FloatArray) -> FloatArray:
        """Sums (d,) of values of moves (n,) by where they begin."""
        return np.asarray(np.bincount(self.origin, values, self.n_states), dtype=np.float64)

    def by_dest(self, values: FloatArray) -> FloatArray:
        """Sums (d,) of values of moves (n,) by where they lead."""
        return np.asarray(np.bincount(self.dest, values, self.n_states), dtype=np.float64)

    @cached_property
    def _pattern(self) -> tuple[sparse.csr_array, IntArray]:
        """A table of all moves and stays, and which of the (n + d,) each of its entries is."""
        own, d = np.arange(self.n_states), self.n_states
        ends = (np.r_[self.origin, own], np.r_[self.dest, own])
        order = np.lexsort(ends[::-1])
        indptr = np.searchsorted(ends[0][order], np.arange(d + 1))
        ones = np.ones(len(order))
        return sparse.csr_array((ones, ends[1][order], indptr), shape=(d, d)), order

    def table(self, moves: FloatArray) -> sparse.csr_array:
        """Chances (n + d,) as a table (d, d)."""
        pattern, order = self._pattern
        return moves_like(pattern, moves[order])


@dataclass(frozen=True)
class Nearby:
    """What is learned of moves within a reach: the moves, and blocks of those into some cells.

    It takes the place of the shape (d, d) of all moves. Where blocks are not of all cells, what the
    counts of the others tell is not learned from.
    """

    pattern: MovePattern
    blocks: tuple[Block, ...]

    @classmethod
    def of(cls, shape: sparse.csr_array, places_m: FloatArray) -> Nearby:
        """All moves of a table (d, d) of chances, in blocks of about `BLOCK` cells by their places.

        Places (c, 2) are those of cells in metres; a state more is outside, a block of its own.
        """
        pattern = MovePattern.of(shape)
        number = tiles(places_m, block_side_m(places_m))
        more = number.max(initial=-1) + 1 + np.arange(pattern.n_states - len(number))
        return cls(pattern, tuple(pattern.blocks(np.concatenate([number, more]))))

    @cached_property
    def cells(self) -> IntArray:
        """The cells that are in blocks, in order."""
        return np.sort(np.concatenate([block.cells for block in self.blocks]))


def block_side_m(places_m: FloatArray) -> float:
    """Metres of the side of a square that about `BLOCK` cells lie in, (c, 2) being their places.

    Cells may lie anywhere: half of them have their nearest neighbour within the distance that
    counts here.
    """
    if len(places_m) < 2:
        return 1.0
    nearest = np.asarray(KDTree(places_m).query(places_m, k=2)[0])[:, 1]
    return float(np.sqrt(BLOCK) * max(np.median(nearest), 1e-3))


def local_steps(
    pairs: CountPairs,
    near: Nearby,
    strength: Strength,
    *,
    start: FloatArray | None = None,
    course: Course | None = None,
) -> Iterator[FlowState]:
    """The most likely tied transitions within a reach, by L-BFGS, without end.

    Chances of states are (H, n + d) or (1, n + d), moves and stays of ``near``'s pattern.
    ``start`` are logits of a fit that this one goes on from; what a ``course`` stood at is gone on
    from as if it had not stopped.
    """
    problem = LocalProblem.of(pairs, near, strength)
    begun = problem.begun(start)
    most = min(max(BYTES_KEPT // (2 * begun.nbytes), FEWEST_KEPT), MEMORY)
    done, reached, steps = 0, None, Steps(most)
    if course is not None and course.stood is not None:
        done, reached, kept = course.stood
        steps = Steps.of(kept)
    points = lbfgs(problem.objective, begun, steps, reached=reached)
    point = next(points)
    before = problem.moves(point.x)

    def stands() -> tuple[Any, ...]:
        return iteration, point, steps.kept

    for iteration in count(done + 1):
        for _ in range(INNER_STEPS):
            point = next(points)
        found = problem.moves(point.x)
        if course is not None:
            course.note(stands)
        yield FlowState(iteration, found, problem.apart(before, found), problem.unscaled(point.x))
        before = found


@dataclass(frozen=True)
class _Parts:
    """Logits of the layers, as in `agg_core.counts.dense`: of moves (n,) where it is of moves."""

    decay: float
    attraction: FloatArray
    leave: float
    rows: FloatArray
    leaving: FloatArray
    attraction_then: FloatArray
    leaving_then: FloatArray
    pace: FloatArray


@dataclass(frozen=True)
class LocalProblem(Scaled):
    """`agg_core.counts.dense.Problem` of moves within a reach, its likelihood that of blocks.

    Logits, their scales and what they cost are the same, with rows of moves that may be alone; of
    one block with all cells the likelihood is the same, too. ``blocks`` are those of the pattern
    and the counts there, pool by pool, of which ``slot`` is the time of day; ``people`` (H, d) and
    ``scale`` (d,) are as there.
    """

    pattern: MovePattern
    blocks: list[tuple[Block, Pools]]
    slot: IntArray
    people: FloatArray
    strength: Strength
    scale: FloatArray

    @classmethod
    def of(cls, pairs: CountPairs, near: Nearby, strength: Strength) -> LocalProblem:
        """The problem of pairs whose counts are exact, or are taken for that."""
        pools = pools_of(pairs, by_time=strength.by_time)
        people = np.zeros((len(pairs.slots) if strength.by_time else 1, pairs.n_states))
        people[pools.slot] = pools.y
        return cls(
            pattern=near.pattern,
            blocks=[(block, pools.part(block.origins, block.cells)) for block in near.blocks],
            slot=pools.slot,
            people=people,
            strength=strength,
            scale=np.sqrt(np.maximum(pairs.people.sum(axis=0), 1.0)),
        )

    @cached_property
    def widths(self) -> list[int]:
        """Ends of parts of a point: decay, attractions, leave, rows, leaving; then of times."""
        of = self.pattern
        return [int(n) for n in np.cumsum([1, of.n_states, 1, of.n_moves, of.free.sum()])]

    @property
    def start(self) -> FloatArray:
        """Logits to begin with: gravity by the shape alone, and nothing added to it."""
        stays = self.pattern.stay[self.pattern.free]
        stay = float(stays.mean()) if len(stays) else 0.5
        x = np.zeros(len(self.scales))
        x[0], x[self.widths[1]] = self.whole, self.whole * np.log((1 - stay) / stay)
        return x

    @cached_property
    def scales(self) -> FloatArray:
        """What each logit is multiplied by for the descent."""
        of, whole = self.pattern, np.full(1, self.whole)
        parts = [whole, self.scale, whole, self.scale[of.origin], self.scale[of.free]]
        if self.strength.by_time:
            parts.append(self.effect_scale.ravel())
        return np.concatenate(parts)

    def unscaled(self, x: FloatArray) -> FloatArray:
        """Logits of a point of the descent, which mean the same in every problem."""
        return x / self.scales

    def begun(self, logits: FloatArray | None) -> FloatArray:
        """The point of the descent for logits of another problem; `start` without."""
        if logits is None:
            return self.start
        width = 2 * self.pattern.n_states + 1
        shared, effects = logits[: self.widths[-1]], np.zeros((0, width))
        if self.strength.by_time:
            effects = logits[self.widths[-1] :].reshape(-1, width)
            times = self.n_slots // max(len(effects), 1)
            known = 0 < len(effects) <= self.n_slots
            effects = np.tile(effects, (times, 1)) if known else np.zeros(self.effect_scale.shape)
        return np.concatenate([shared, effects.ravel()]) * self.scales

    def parts(self, x: FloatArray) -> _Parts:
        """What logits say of each layer."""
        d, of = self.pattern.n_states, self.pattern
        decay, attraction, leave, rows, leaving, scaled = np.split(x, self.widths)
        apart = np.where(of.leads, np.inf, -np.inf)
        apart[of.free] = leaving / self.scale[of.free]
        effects = np.zeros((1, 2 * d + 1))
        if self.strength.by_time:
            effects = scaled.reshape(-1, 2 * d + 1) / self.effect_scale
        return _Parts(
            float(decay[0]) / self.whole, attraction / self.scale, float(leave[0]) / self.whole,
            rows / self.scale[of.origin], apart, effects[:, :d], effects[:, d:-1], effects[:, -1],
        )  # fmt: skip

    def moves(self, x: FloatArray) -> FloatArray:
        """Chances (H, n + d), or (1, n + d), of moves and stays of logits."""
        parts = self.parts(x)
        return self._filled(self._gravity(parts) + parts.rows, parts)[0]

    def _gravity(self, parts: _Parts) -> FloatArray:
        of = self.pattern
        return np.asarray(parts.decay * of.log_shape + parts.attraction[of.dest])

    def _filled(self, logits: FloatArray, parts: _Parts) -> tuple[FloatArray, FloatArray]:
        """Chances (H, n + d) of logits of moves all day (n,), and shares (H, d) who leave."""
        of = self.pattern
        share = expit(parts.leave + parts.leaving + parts.pace[:, None] + parts.leaving_then)
        then = parts.attraction_then
        draw = np.exp(then - then.max(axis=1, keepdims=True))
        weight = np.exp(logits - self._tops(logits)[of.origin])
        moves = np.empty((len(share), of.n_moves + of.n_states))
        fill = partial(_fill, of, weight, draw, share, moves)
        with use_engine(LOCAL) as engine:
            engine.map(fill, _shared(len(share), engine.n_workers))
        return moves, share

    def _tops(self, logits: FloatArray) -> FloatArray:
        """The largest of each row, (d,); 0 where there is none."""
        of = self.pattern
        tops = np.zeros(of.n_states)
        if of.n_moves:
            tops[of.leads] = np.maximum.reduceat(logits, of.first[:-1][of.leads])
        return tops

    def _softmax(self, logits: FloatArray) -> FloatArray:
        """Chances (n,) of those who leave, by row."""
        of = self.pattern
        weights = np.exp(logits - self._tops(logits)[of.origin])
        return np.asarray(weights / of.by_row(weights)[of.origin])

    def objective(self, x: FloatArray) -> tuple[float, FloatArray]:
        """Minus the log-likelihood and log prior of logits, and its slope."""
        of, parts = self.pattern, self.parts(x)
        d = of.n_states
        gravity = self._gravity(parts)
        moves, share = self._filled(gravity + parts.rows, parts)
        every = len(self.slot) == len(moves)
        likely, slope = blocks_log_likelihood(self.blocks, moves if every else moves[self.slot])
        slopes = slope
        if not every:
            slopes = np.zeros_like(moves)
            slopes[self.slot] = slope
        add = partial(_add, of, moves, slopes, share)
        with use_engine(LOCAL) as engine:
            found = engine.map(add, _shared(len(share), engine.n_workers))
        by_row = -np.sum([part[0] for part in found], axis=0)
        by_dest, by_leaving = (-np.concatenate([part[k] for part in found]) for k in (1, 2))
        by_gravity = by_row.copy()
        prior = self._prior(gravity, parts, by_gravity, by_row)
        value = prior - likely
        by_own = by_leaving.sum(axis=0)
        own = np.where(of.free, parts.leaving, 0.0)
        pull = max(self.strength.prior, LEAST_PULL) * ODDS
        value += 0.5 * pull * float((own**2).sum())
        gradient = [
            [(by_gravity * of.log_shape).sum() / self.whole],
            of.by_dest(by_gravity) / self.scale,
            [float(by_leaving[:, of.free].sum()) / self.whole],
            by_row / self.scale[of.origin],
            ((by_own + pull * own) / self.scale)[of.free],
        ]
        if self.strength.by_time:
            effects = np.column_stack([parts.attraction_then, parts.leaving_then, parts.pace])
            weight = np.r_[np.full(2 * d, self.held), EVEN]
            value += 0.5 * float((weight * effects**2).sum())
            of_effects = np.column_stack([by_dest, by_leaving, by_leaving.sum(axis=1)])
            gradient.append(((of_effects + weight * effects) / self.effect_scale).ravel())
        # What all rows share is held so weakly that only what no count tells is decided by it.
        ends = np.r_[parts.decay - 1, parts.attraction]
        value += 0.5 * EVEN * float((ends**2).sum())
        flat = np.concatenate([np.asarray(part) for part in gradient])
        flat[: d + 1] += EVEN * ends / np.r_[self.whole, self.scale]
        return value, flat

    def _prior(
        self, logits: FloatArray, parts: _Parts, by_gravity: FloatArray, by_row: FloatArray
    ) -> float:
        """What the day's rows cost; its slopes are added to those in logits (n,)."""
        of, added = self.pattern, parts.rows
        pull = LEAVERS * max(self.strength.prior, LEAST_PULL)
        gravity, rows = self._softmax(logits), self._softmax(logits + added)
        mean, top = of.by_row(gravity * added), self._tops(added)
        weights = of.by_row(gravity * np.exp(added - top[of.origin]))
        far = np.where(of.leads, np.log(np.where(weights > 0, weights, 1.0)) + top - mean, 0.0)
        changed = pull * (rows - gravity)
        by_row += changed
        by_gravity += changed - pull * gravity * (added - mean[of.origin])
        return pull * float(far.sum())

    def apart(self, before: FloatArray, after: FloatArray) -> float:
        """L1 distance of rows of transitions, a mean over the people who are in them."""
        of = self.pattern
        total = 0.0
        for was, now, people in zip(before, after, self.people, strict=True):
            far = np.abs(now - was)
            total += float((of.by_row(far[: of.n_moves]) + far[of.n_moves :]) @ people)
        return total / max(float(self.people.sum()), 1e-300)


def _shared(n: int, workers: int) -> list[IntArray]:
    """Numbers below n in as many runs as there are workers."""
    return [part for part in np.array_split(np.arange(n), workers) if len(part)]


def _fill(
    of: MovePattern, weight: FloatArray, draw: FloatArray, share: FloatArray, moves: FloatArray,
    hours: IntArray,
) -> None:  # fmt: skip
    fill_moves(of.first, of.dest, weight, draw, share, hours, moves)


def _add(
    of: MovePattern, moves: FloatArray, slopes: FloatArray, share: FloatArray, hours: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Slopes in logits: of moves (n,), and of destinations and leaving at some times of day."""
    mine = slice(int(hours[0]), int(hours[-1]) + 1)
    by_row = np.zeros(of.n_moves)
    by_dest, by_leaving = np.zeros((2, len(hours), of.n_states))
    add_slopes(
        of.first, of.dest, moves[mine], slopes[mine], share[mine], np.arange(len(hours)), by_row,
        by_dest, by_leaving,
    )  # fmt: skip
    return by_row, by_dest, by_leaving
