"""How much sooner two workers are done than one, with work of the kinds that engines share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from agg_core.base.dask_engine import dask_engine
from agg_core.base.engine import Engine, current, use_engine
from agg_core.counts.certainty import replicates
from agg_core.counts.choosing import DENSE, try_candidates
from agg_core.counts.pairs import CountPairs, pairs_of
from agg_core.counts.rows import Strength
from agg_core.io.counts import read_counts
from agg_core.learn.learners import learn
from agg_core.made.counts import docomo_csv, simulate_city
from agg_core.made.people import random_hmm
from agg_core.model.aggregates import Aggregates, aggregate
from agg_core.model.hmm import HMM
from agg_core.study.counts import move_shape

__all__ = ["WORKS", "rows"]

REPEATS = 3
"""Times that each work is done by one worker and by two, in turn; medians are given."""

N_WORLDS, N_TILES = 8, 8


@cache
def _city() -> tuple[CountPairs, Any]:
    """Two weeks of hourly counts of a made-up city of 24 cells that hold many people."""
    city = simulate_city(4, 6, days=14, people=20_000, random_state=0)
    table = read_counts(docomo_csv(city).encode())
    pairs = pairs_of(table)
    return pairs, move_shape(table, outside=pairs.has_outside)


def _trials() -> int:
    """Strengths of the prior tried on days kept aside."""
    pairs, shape = _city()
    return len(list(try_candidates(pairs, shape, time="one", random_state=0)))


def _worlds() -> int:
    """Simulated worlds, from each of which flows are learned."""
    pairs, shape = _city()
    worlds = replicates(pairs, shape, shape[None], DENSE, Strength(20.0), N_WORLDS, random_state=0)
    return len(list(worlds))


@cache
def _tile(number: int) -> tuple[Aggregates, HMM]:
    """People of a part of a country in groups, and where learning begins."""
    rng = np.random.default_rng([number])
    d = 60
    start, transmat, emission = random_hmm(d, random_state=rng)
    symbols, _ = HMM.categorical(start, transmat, emission).sample(12_000, 4, rng)
    begin = HMM.categorical(np.full(d, 1 / d), np.full((d, d), 1 / d), emission)
    return aggregate(symbols, 20, d, rng), begin


def _learned(tile: tuple[Aggregates, HMM]) -> HMM:
    return learn(*tile, inference="cfb", fixed=("emission",), n_iter=15, tol=0.0)[0]


def _tiles() -> int:
    """Parts of a country, each learned on its own."""
    return len(current().map(_learned, map(_tile, range(N_TILES))))


WORKS: dict[str, Callable[[], int]] = {"trials": _trials, "worlds": _worlds, "tiles": _tiles}
"""Work by its name; each returns how many parts it had."""


def rows() -> list[dict[str, Any]]:
    """A row per work: its parts, seconds on the clock with one worker and with two, their ratio.

    Workers are processes of a Dask cluster on this machine, of which each has one thread. One
    worker and two take turns in one run.
    """
    return list(_rows())


def _rows() -> Iterator[dict[str, Any]]:
    with ExitStack() as stack:
        engines = {n: stack.enter_context(dask_engine(None, n_workers=n)) for n in (1, 2)}
        for name, work in WORKS.items():
            parts = {_timed(engine, work)[0] for engine in engines.values()}  # loads kernels
            seconds: dict[int, list[float]] = {n: [] for n in engines}
            for _ in range(REPEATS):
                for n, engine in engines.items():
                    seconds[n].append(_timed(engine, work)[1])
            one, two = (median(seconds[n]) for n in (1, 2))
            yield {
                "work": name, "engine": "dask", "n_parts": parts.pop(), "one_worker_s": one,
                "two_workers_s": two, "ratio": one / two,
            }  # fmt: skip


def _timed(engine: Engine, work: Callable[[], int]) -> tuple[int, float]:
    with use_engine(engine):
        began = perf_counter()
        n_parts = work()
        return n_parts, perf_counter() - began
