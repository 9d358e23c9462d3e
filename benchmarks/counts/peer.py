"""Flows by flowstock, a package of others that learns from the same counts (Akagi et al. 2018).

It is of a time before today's scipy, and takes one unbroken series; what is put in its way here
gives it the pairs of counts that all others learn from, and keeps its files and words away. What
it finds, and how, is left to it.
"""

from __future__ import annotations

import contextlib
import io
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from agg_core.counts.pairs import CountPairs
from agg_core.space.grid import BaseGrid

__all__ = ["MOST_NUMBERS", "can_learn", "peer_flows"]

FloatArray = npt.NDArray[np.float64]

MOST_NUMBERS = 2_500_000
"""It holds a flow of each pair of counts for each pair of cells, some forty times."""

EPS = 1e-4
"""Relative change of its likelihood at which it ends."""


def can_learn(pairs: CountPairs, grid: BaseGrid | None) -> bool:
    """Whether it is installed, cells have places and all people are in them, and memory does."""
    small = pairs.n_pairs * pairs.n_states**2 <= MOST_NUMBERS
    return bool(find_spec("flowstock") and grid is not None and not pairs.has_outside and small)


def peer_flows(
    pairs: CountPairs, grid: BaseGrid, *, seconds: float = 600.0
) -> tuple[FloatArray, str]:
    """Flows (H, d, d), summed over the days, and how many rounds it took to come to an end.

    It chooses chances to leave a cell, what draws people to each, and a decay with distance. All
    cells are within reach of each other. A round that is done after ``seconds`` is the last.
    """
    from flowstock import akagi  # noqa: PLC0415

    # Of a cell where nobody ever is it would divide nothing by nothing.
    cells = np.flatnonzero(pairs.before.any(axis=0) | pairs.after.any(axis=0))
    among = np.ix_(cells, cells)
    rounds = _Rounds(time.monotonic() + seconds)
    with _in_todays_libraries(akagi, rounds):
        series = _Series(pairs.before[:, cells], pairs.after[:, cells])
        model = akagi.Akagi(series, _kilometres(grid)[among], np.inf, save_options=rounds)
        model.save_config = model.save_state = lambda *_: None
        model.save_checkpoint = rounds.done
        model.update_s_beta = partial(_summed, model, model.update_s_beta)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(_LateError):
            model.exact_inference(EPS)
    flows = np.zeros((len(pairs.slots), pairs.n_states, pairs.n_states))
    for slot, moved in zip(pairs.slot, model.M, strict=True):
        flows[slot][among] += moved
    return flows, f"rounds={rounds.number}" + (", not converged" if rounds.late else "")


def _summed(model: Any, update: Callable[[float], bool], eps: float) -> bool:
    """What draws people, and the decay, depend on flows by their sums alone, which are fewer."""
    flows, model.M = model.M, model.M.sum(axis=0, keepdims=True)
    try:
        return update(eps)
    finally:
        model.M = flows


class _LateError(Exception):
    """Its time is over."""


class _Rounds:
    """Counts rounds, in place of options of saving, and ends them."""

    def __init__(self, until: float) -> None:
        self.until, self.number, self.late = until, 0, False

    def make_dir(self) -> None:
        """No folder is needed."""

    def check(self, _: FloatArray) -> None:
        """End a search whose time is over, with what it has."""
        self.late = time.monotonic() > self.until
        if self.late:
            raise StopIteration

    def done(self, step: int) -> None:
        """A round is done."""
        self.number = step + 1
        if self.late or time.monotonic() > self.until:
            self.late = True
            raise _LateError


class _Series:
    """Pairs of counts that look like one series: all but its last, and all but its first."""

    def __init__(self, before: FloatArray, after: FloatArray) -> None:
        self.before, self.after = before, after
        self.shape = (len(before) + 1, before.shape[1])

    def copy(self, order: str) -> _Series:  # noqa: ARG002  # it asks for one
        """Itself: nothing is written to it."""
        return self

    def __getitem__(self, which: int | slice) -> FloatArray:
        if isinstance(which, int):
            return np.asarray(self.before[which])
        return self.before if which == slice(None, -1) else self.after


@contextmanager
def _in_todays_libraries(akagi: Any, rounds: _Rounds) -> Iterator[None]:
    """Starts of the optimizer are flat today; its cost is compiled for a series alone."""
    kept = akagi.opt, akagi._cost

    def minimize(function: Any, x0: FloatArray, **options: Any) -> Any:
        return kept[0].minimize(function, np.ravel(x0), callback=rounds.check, **options)

    akagi.opt = SimpleNamespace(minimize=minimize, minimize_scalar=kept[0].minimize_scalar)
    akagi._cost = lambda flows, series: float(kept[1].py_func(flows, series))
    try:
        yield
    finally:
        akagi.opt, akagi._cost = kept


def _kilometres(grid: BaseGrid) -> FloatArray:
    """Between the middles of cells, (n, n)."""
    places = grid.centroids_m
    apart = places[:, None] - places[None]
    return np.asarray(np.sqrt((apart**2).sum(axis=2)) / 1000)
