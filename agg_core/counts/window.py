"""A window of some cells among thousands, on which strengths are tried and movement is checked."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from agg_core.base.checkpoints import checkpoints
from agg_core.base.relay import last_of
from agg_core.counts.choosing import DENSE, learn_flows
from agg_core.counts.local import MovePattern, Nearby
from agg_core.counts.pairs import CountPairs
from agg_core.counts.rows import Strength
from agg_core.counts.worlds import MOST_FACTOR, WORLDS

__all__ = ["Window", "local_movement_factor", "window_of"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

CELLS = 400
"""Cells of a window; of so many a fit takes seconds."""


@dataclass(frozen=True)
class Window:
    """Some cells, and all that people may come from into them.

    ``states`` (s,) are both among all, ``pairs`` their counts, ``near`` moves between them of which
    blocks are of the cells of the window alone; ``core`` (c,) are those of its cells, by their
    numbers in ``states``, that people go from to cells of the window alone.
    """

    states: IntArray
    pairs: CountPairs
    near: Nearby
    core: IntArray


def window_of(
    pairs: CountPairs, near: Nearby, places_m: FloatArray, n_cells: int = CELLS
) -> Window:
    """The ``n_cells`` cells about where most people are, by places (c, 2); all if there are few.

    The state without a place, outside, is one that people come from.
    """
    pattern, d = near.pattern, near.pattern.n_states
    if len(places_m) <= 3 * n_cells // 2:
        return Window(np.arange(d), pairs, near, np.arange(len(places_m)))
    people = pairs.before.sum(axis=0)
    about = people + pattern.by_row(people[pattern.dest])
    middle = places_m[np.argmax(about[: len(places_m)])]
    mine = np.zeros(d, dtype=bool)
    mine[np.argsort(((places_m - middle) ** 2).sum(axis=1), kind="stable")[:n_cells]] = True
    there = mine.copy()
    there[pattern.origin[mine[pattern.dest]]] = True
    states = np.flatnonzero(there)
    # Who comes from outside may go anywhere.
    away = ~mine[pattern.dest] & (pattern.dest < len(places_m))
    core = mine & (pattern.by_row(away.astype(np.float64)) == 0)
    kept = _within(pattern, there)
    numbers = np.full(d, -1)
    for number, block in enumerate(near.blocks):
        numbers[block.cells] = number
    blocks = kept.blocks(np.where(mine, numbers, -1)[states])
    counts = replace(
        pairs, before=pairs.before[:, states], after=pairs.after[:, states],
        open_before=pairs.open_before[:, states], open_after=pairs.open_after[:, states],
    )  # fmt: skip
    place = np.flatnonzero(core[states])
    return Window(states, counts, Nearby(kept, tuple(blocks)), place)


def _within(pattern: MovePattern, there: BoolArray) -> MovePattern:
    """The moves between some states."""
    number = np.cumsum(there) - 1
    kept = there[pattern.origin] & there[pattern.dest]
    n = int(there.sum())
    first = np.concatenate([[0], np.cumsum(np.bincount(number[pattern.origin[kept]], minlength=n))])
    return MovePattern(
        first.astype(np.int64), number[pattern.dest[kept]].astype(np.int64),
        pattern.log_shape[kept], pattern.stay[there],
    )  # fmt: skip


def local_movement_factor(
    window: Window,
    pattern: MovePattern,
    moves: FloatArray,
    strength: Strength,
    *,
    n_iter: int | None = None,
    random_state: int | np.random.Generator | None = None,
) -> float:
    """`agg_core.counts.worlds.movement_factor` in a window, of chances (H, n + d) of all moves.

    People of the states of the window move by the chances there, also out of it; movement is that
    of its core, whose cells counts tell all about. A fit there has ``n_iter`` iterations at most,
    as many as that of all cells had: with fewer, movement comes out otherwise.
    """
    rows = _Rows.of(pattern, moves, window.states)
    worlds = np.random.default_rng(random_state).spawn(WORLDS)
    factor = _Factor(window, rows, strength, n_iter)
    logs = list(checkpoints().each("worlds of movement", factor, worlds))
    limit = np.log(MOST_FACTOR)
    return float(np.exp(np.clip(np.mean(logs), -limit, limit)))


@dataclass(frozen=True)
class _Rows:
    """Chances (H, s, m + 1) of up to m moves from each of s states, stays last.

    ``dest`` (s, m) are where they lead by numbers among the states, -1 beyond.
    """

    chances: FloatArray
    dest: IntArray

    @classmethod
    def of(cls, pattern: MovePattern, moves: FloatArray, states: IntArray) -> _Rows:
        first, last = pattern.first[states], pattern.first[states + 1]
        most = int((last - first).max(initial=0))
        at = first[:, None] + np.arange(most)
        some = at < last[:, None]
        at = np.where(some, at, 0)
        number = np.full(pattern.n_states, -1)
        number[states] = np.arange(len(states))
        dest = np.full(at.shape, -1)
        chances = np.zeros((len(moves), len(states), most + 1))
        if pattern.n_moves:
            dest = np.where(some, number[pattern.dest[at]], -1)
            chances[..., :-1] = np.where(some, moves[:, at], 0.0)
        chances[..., -1] = moves[:, pattern.n_moves + states]
        chances /= chances.sum(axis=-1, keepdims=True)
        return cls(chances, dest)


@dataclass(frozen=True)
class _Factor:
    """The logarithm of the factor in one world."""

    window: Window
    rows: _Rows
    strength: Strength
    n_iter: int | None

    def __call__(self, rng: np.random.Generator) -> float:
        pairs, core = self.window.pairs, self.window.core
        people = np.rint(np.maximum(pairs.before, 0.0)).astype(np.int64)
        after = np.zeros(pairs.after.shape)
        into, true = self.rows.dest, 0.0
        for p, which in enumerate(pairs.which(self.rows.chances)):
            went = rng.multinomial(people[p], self.rows.chances[which])
            true += float(went[core, :-1].sum())
            known = into >= 0
            after[p] = np.bincount(into[known], went[:, :-1][known], len(people[p])) + went[:, -1]
        world = replace(pairs, before=people.astype(np.float64), after=after)
        last = last_of(
            learn_flows(world, self.window.near, DENSE, self.strength, n_iter=self.n_iter)
        )
        stays = last.transmats[:, self.window.near.pattern.n_moves :]
        leave = 1 - stays[pairs.which(stays)][:, core]
        learned = float((world.before[:, core] * leave).sum())
        return float(np.log(max(true, 1.0) / max(learned, 1.0)))
