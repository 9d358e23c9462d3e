"""Simulated worlds: people who move by learned transitions, counted as the real ones were."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt

from agg_core.base.checkpoints import checkpoints
from agg_core.base.relay import last_of
from agg_core.counts.beside import moved_again
from agg_core.counts.choosing import learn_flows
from agg_core.counts.erring import ErringPairs
from agg_core.counts.pair_tables import PairTables
from agg_core.counts.pairs import CountPairs
from agg_core.counts.panel import Panel, allowed
from agg_core.counts.rows import Strength
from agg_core.counts.smoothing import expected_people
from agg_core.counts.state import FlowState

__all__ = ["MOST_FACTOR", "WORLDS", "movement_factor", "simulated_world", "with_movement"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

WORLDS = 2
"""Simulated worlds that tell how far the learned movement is from the true one."""

MOST_FACTOR = 2.0
ALMOST_ALL = 0.999


def simulated_world(
    pairs: CountPairs,
    people: FloatArray,
    transmats: FloatArray,
    rng: np.random.Generator,
    kept: PairTables | None = None,
) -> tuple[FloatArray, CountPairs]:
    """Moves (H, d, d) of people who move by transitions, and what would be counted of them.

    As many people as ``people`` (P, d) says move within each pair by ``transmats`` (H, d, d) or
    (1, d, d). Where counts err, it is only with the first pair of a run that they begin; they move
    on from there, and every count of them errs as those of ``pairs``. Where there are gates, they
    count who passes them, with their error. As many people of each cell as are of the panel of
    ``pairs`` are of that of the world. Moves within each pair are ``kept``, if there is room for
    them.
    """
    gates = pairs.crossings
    passed = np.zeros((pairs.n_pairs, 0 if gates is None else gates.n_gates))
    moved = np.zeros((len(pairs.slots), pairs.n_states, pairs.n_states))
    before, after = np.empty_like(pairs.before), np.empty_like(pairs.after)
    which = pairs.which(transmats)
    whole = np.rint(np.maximum(people, 0.0)).astype(np.int64)
    panel = _panel_there(pairs, whole)
    if panel is not None and (not panel.among or isinstance(pairs, ErringPairs)):
        panel = _moved_alone(panel, transmats, which, rng)
    if not isinstance(pairs, ErringPairs):
        dest = None if panel is None else panel.dest.copy()
        for p, slot in enumerate(pairs.slot):
            moves = rng.multinomial(whole[p], transmats[which[p]])
            moved[slot] += moves
            if kept is not None:
                kept.add(p, moves)
            if gates is not None:
                passed[p] = gates.passed(moves)
            after[p] = moves.sum(axis=0)
            if panel is not None and panel.among and dest is not None:
                mine = slice(*np.searchsorted(panel.pair, [p, p + 1]))
                dest[mine] = moved_again(panel.origin[mine], moves, rng)
        if panel is not None and dest is not None:
            panel = replace(panel, dest=dest)
        counted = None if gates is None else gates.counted(passed, rng)
        before = whole.astype(np.float64)
        there = replace(pairs, before=before, after=after, panel=panel, crossings=counted)
        return moved, there
    for run in pairs.runs():
        there = whole[run.pairs[0]]
        counts = [_counted(there, pairs, run.spread[0], rng)]
        for p, spread in zip(run.pairs, run.spread[1:], strict=True):
            moves = rng.multinomial(there, transmats[which[p]])
            moved[pairs.slot[p]] += moves
            if kept is not None:
                kept.add(int(p), moves)
            if gates is not None:
                passed[p] = gates.passed(moves)
            there = moves.sum(axis=0)
            counts.append(_counted(there, pairs, spread, rng))
        before[run.pairs], after[run.pairs] = counts[:-1], counts[1:]
    counted = None if gates is None else gates.counted(passed, rng)
    return moved, replace(pairs, before=before, after=after, panel=panel, crossings=counted)


def _panel_there(pairs: CountPairs, people: IntArray) -> Panel | None:
    """Those of the panel who can be among so many people (P, d) where each pair begins."""
    panel = pairs.panel
    if panel is None or not panel.among or isinstance(pairs, ErringPairs):
        return panel
    # Where they go is yet to be drawn: nobody is too many there.
    return panel.some(allowed(panel, people.astype(np.float64), np.full(people.shape, np.inf)))


def _moved_alone(
    panel: Panel, transmats: FloatArray, which: IntArray, rng: np.random.Generator
) -> Panel:
    """A panel whose people move by the transitions, whoever was counted."""
    running = np.cumsum(transmats, axis=2)[which[panel.pair], panel.origin]
    drawn = rng.random(panel.n_moves) * running[:, -1]
    return replace(panel, dest=(running < drawn[:, None]).sum(axis=1).astype(np.int64))


def _counted(
    people: IntArray, pairs: ErringPairs, spread: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """What would be counted of people (d,); of those whom nobody counts, their true number."""
    error = pairs.error
    wrong = people * (1 + error.relative * rng.standard_normal(len(people)))
    if error.step:
        wrong = np.rint(wrong / error.step) * error.step
    return np.where(np.isinf(spread), people, np.maximum(wrong, 0.0))


def movement_factor(
    pairs: CountPairs,
    shape: FloatArray,
    transmats: FloatArray,
    learner: str,
    strength: Strength,
    *,
    start: FlowState | None = None,
    random_state: int | np.random.Generator | None = None,
) -> float:
    """People who move over people who are learned to move, where transitions are known.

    In worlds that are simulated with ``transmats`` the same learner is held against who moved
    there: what it adds by taking chance and errors for moves, or leaves out by tying cells
    together, it does alike with the real counts (indirect inference; Gourieroux, Monfort & Renault
    1993).
    """
    people = expected_people(pairs, transmats)
    world = partial(
        _log_factor, pairs, shape, people, transmats, learner=learner, strength=strength,
        start=start,
    )  # fmt: skip
    chances = np.random.default_rng(random_state).spawn(WORLDS)
    logs = list(checkpoints().each("worlds of movement", world, chances))
    limit = np.log(MOST_FACTOR)
    return float(np.exp(np.clip(np.mean(logs), -limit, limit)))


def _log_factor(
    pairs: CountPairs,
    shape: FloatArray,
    people: FloatArray,
    transmats: FloatArray,
    rng: np.random.Generator,
    *,
    learner: str,
    strength: Strength,
    start: FlowState | None,
) -> float:
    """The logarithm of `movement_factor` in one world."""
    moved, world = simulated_world(pairs, people, transmats, rng)
    last = last_of(learn_flows(world, shape, learner, strength, start=start, random_state=rng))
    there = expected_people(world, last.transmats)
    stays = np.diagonal(last.transmats, axis1=1, axis2=2)[world.which(last.transmats)]
    learned = float((there * (1 - stays)).sum())
    true = float(moved.sum() - np.trace(moved, axis1=1, axis2=2).sum())
    return float(np.log(max(true, 1.0) / max(learned, 1.0)))


def with_movement(transmats: FloatArray, factor: float) -> FloatArray:
    """Transitions (..., d, d) by which so many times as many people move, to the same places."""
    own = np.arange(transmats.shape[-1])
    leave = 1 - transmats[..., own, own]
    more = np.where(leave > 0, np.minimum(leave * factor, np.maximum(leave, ALMOST_ALL)), 0.0)
    rows = transmats * np.divide(more, leave, out=np.ones_like(leave), where=leave > 0)[..., None]
    rows[..., own, own] = 1 - more
    return np.asarray(rows)
