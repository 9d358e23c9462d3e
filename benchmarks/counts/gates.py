"""Gates beside the counts of a simulated city: what they add, and what a wrong one does."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.stats import t as student

from agg_core.counts.pairs import pairs_of
from agg_core.evidence.gates import passing
from agg_core.evidence.lines import line_through
from agg_core.made.counts import simulate_city
from agg_core.study.counts import CountStudy, count_study_steps
from agg_core.study.result import ESTIMATE, WHOLE_DAY
from agg_core.study.settings import CountLearnSettings
from agg_core.tables.counts import CountTable
from agg_core.tables.crossings import CrossingTable
from benchmarks.counts.cases import Case, commuters
from benchmarks.group_sizes.tables import Row

__all__ = ["contradicted", "counted_gates", "gate_rows", "ipf_flows"]

FloatArray = npt.NDArray[np.float64]

N_GATES, WIDE = 10, 2
"""Gates that stand at borders of so many cells, each one way."""

ERROR = 0.05
WRONG = 2.0
"""By how much the contradictory gate is wrong."""

LEVEL, ROUNDS = 0.9, 200


def counted_gates(case: Case, seed: int, n: int = N_GATES) -> CrossingTable:
    """Gates at random borders of the square city, and what they counted of its true moves."""
    assert case.table.grid is not None
    assert case.by_pair is not None
    grid, rng = case.table.grid.make(), np.random.default_rng([seed, 1])
    side = round(len(case.table.cells) ** 0.5)
    west, south, east, north = grid.bounds
    xs, ys = np.linspace(west, east, side + 1), np.linspace(south, north, side + 1)
    tables: list[FloatArray] = []
    names: list[tuple[str, str]] = []
    taken = set()
    while len(tables) < n:
        upright, at = bool(rng.integers(2)), int(rng.integers(1, side))
        first, way = int(rng.integers(side - WIDE + 1)), int(rng.integers(2))
        if (upright, at, first, way) in taken:
            continue
        taken.add((upright, at, first, way))
        ends = [(xs[at], ys[k]) if upright else (xs[k], ys[at]) for k in (first, first + WIDE)]
        line = line_through(f"gate {len(tables) + 1}", [(float(x), float(y)) for x, y in ends])
        tables.append(passing(line, grid)[way])
        names.append((line.name, line.directions(grid)[way]))
    moves = sparse.csr_array(np.stack(tables).reshape(n, -1))
    c = len(case.table.cells)
    between = sparse.csr_array(np.stack(tables)[:, :c, :c].reshape(n, -1))
    passed = case.by_pair.reshape(len(case.by_pair), -1) @ between.T
    wrong = np.maximum(1 + ERROR * rng.standard_normal(passed.shape), 0.0)
    counts = np.full((len(case.table.counts), n), np.nan)
    counts[:-1] = rng.poisson(passed * wrong)
    return CrossingTable(*map(tuple, zip(*names, strict=True)), moves=moves, counts=counts)


def contradicted(gates: CrossingTable, gate: int) -> CrossingTable:
    """The same with one gate that counts as many again."""
    counts = gates.counts.copy()
    counts[:, gate] *= WRONG
    return replace(gates, counts=counts)


def _study(
    table: CountTable,
    settings: CountLearnSettings,
    gates: CrossingTable | None,
    known: CountStudy | None,
) -> CountStudy:
    remembered = None if known is None else known.remembered
    *_, done = count_study_steps(table, settings, remembered, gates=gates)
    assert isinstance(done, CountStudy)
    return done


def _intervals(done: CountStudy, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Ends (1 + H, G) of intervals of sums with ``weights`` (G, d, d), of the day and its times."""
    ends = [done.interval(time, ESTIMATE, weights) for time in (WHOLE_DAY, *done.times_of_day)]
    steps = [done.steps_summed(time) for time in (WHOLE_DAY, *done.times_of_day)]
    found = [(low * n, high * n) for (low, high), n in zip(filter(None, ends), steps, strict=True)]
    low, high = (np.stack(part) for part in zip(*found, strict=True))
    return low, high


def ipf_flows(case: Case, seed_rows: FloatArray, gates: CrossingTable) -> FloatArray:
    """Flows (H, d, d) that meet both counts of each pair and those of gates, taken for exact.

    Iterative proportional fitting from transitions (H, d, d) in turn to the counts before, the
    counts after, and each gate, without an error of any.
    """
    pairs = pairs_of(case.table)
    assert pairs.moment is not None
    moves = [
        row.toarray().reshape((pairs.n_states,) * 2) > 0 for row in _rows(gates, pairs.has_outside)
    ]
    flows = np.zeros((len(pairs.slots), pairs.n_states, pairs.n_states))
    which = pairs.which(seed_rows)
    for p, slot in enumerate(pairs.slot):
        table = np.maximum(pairs.before[p][:, None] * seed_rows[which[p]], 1e-12)
        for _ in range(ROUNDS // 10):
            for crossed, count in zip(moves, gates.counts[pairs.moment[p]], strict=True):
                if np.isfinite(count):
                    table[crossed] *= count / max(table[crossed].sum(), 1e-300)
            table *= (pairs.before[p] / np.maximum(table.sum(axis=1), 1e-300))[:, None]
            table *= pairs.after[p] / np.maximum(table.sum(axis=0), 1e-300)
        flows[slot] += table
    return flows


def _rows(gates: CrossingTable, outside: bool) -> list[sparse.csr_array]:
    moves = gates.between(outside=outside)
    return [moves[[g]] for g in range(gates.n_gates)]


def gate_rows(seeds: int, *, replicates: int, people: int = 3_000, side: int = 8) -> Iterator[Row]:
    """Rows of both tables, a seed each: what ten gates add, and what one that is wrong does."""
    for seed in range(seeds):
        began = time.perf_counter()
        case = commuters(simulate_city(side, side, people=people, random_state=seed))
        gates = counted_gates(case, seed)
        settings = CountLearnSettings(replicates=replicates, seed=seed)
        plain = _study(case.table, settings, None, None)
        told = replace(gates, error=ERROR)
        gated = _study(case.table, settings, told, plain)
        yield {
            "table": "ten gates",
            "seed": seed,
            **_shrunk(case, gates, plain, gated),
            **_common(case, plain, gated),
        }
        quick = replace(settings, replicates=0)
        g = int(np.random.default_rng(seed).integers(gates.n_gates))
        wrong = _study(case.table, quick, contradicted(gates, g), plain)
        without = _study(case.table, quick, gates.without(g), plain)
        assert wrong.gates is not None
        named = {(each.gate, each.direction): each for each in reversed(wrong.gates.contradictions)}
        key = (gates.gates[g], gates.directions[g])
        away = _rows(gates, wrong.has_outside)[g].toarray().reshape(gated.transmats.shape[1:]) == 0
        yield {
            "table": "one is wrong", "seed": seed, "wrong": " ".join(key), "named": key in named,
            "z": named[key].z if key in named else np.nan,
            "others named": len(named.keys() - {key}),
            **_apart(wrong, without, away), **_ipf_apart(case, plain, gates, g, away),
            "seconds": time.perf_counter() - began,
        }  # fmt: skip


def _shrunk(case: Case, gates: CrossingTable, plain: CountStudy, gated: CountStudy) -> Row:
    """Widths of intervals of those who pass gates, and how many hold them, with and without."""
    n, d = len(case.table.cells), gated.transmats.shape[-1]
    moves = gates.between(outside=gated.has_outside)
    weights = moves.toarray().reshape(-1, d, d)
    passed = np.tensordot(case.moves, weights[:, :n, :n], axes=([1, 2], [1, 2]))
    true = np.concatenate([passed.sum(axis=0)[None], passed])
    level = np.zeros(passed.shape)
    np.add.at(level, case.table.slot[:-1], np.nan_to_num(gates.counts[:-1]))
    steps = np.array(plain.steps)[:, None]
    mean = level / np.maximum(steps, 1)
    sigma = steps * (np.maximum(mean, 1.0) + (ERROR * mean) ** 2)
    sigma = np.concatenate([sigma.sum(axis=0)[None], sigma])
    worlds = plain.settings.replicates
    reach = student.ppf((1 + LEVEL) / 2, worlds - 1)
    row: Row = {}
    ends = {"counts": _intervals(plain, weights), "gates": _intervals(gated, weights)}
    known = true > 5
    half = {name: (high - low) / 2 for name, (low, high) in ends.items()}
    v = (half["counts"] / reach) ** 2
    theory = reach * np.sqrt(1 / (1 / np.maximum(v, 1e-9) + 1 / sigma))
    for of, at in (("day", slice(0, 1)), ("times", slice(1, None))):
        k = known[at]
        row[f"width {of}"] = float((half["gates"][at][k] / half["counts"][at][k]).mean())
        row[f"theory {of}"] = float((theory[at][k] / half["counts"][at][k]).mean())
        for name, (low, high) in ends.items():
            held = (low <= true + 0.5) & (true - 0.5 <= high)
            row[f"held {of}, {name}"] = float(held[at][k].mean())
            row[f"n {of}"] = int(k.sum())
    return row


def _flows(done: CountStudy) -> FloatArray:
    return np.asarray(done.parameters()["happened"] * np.array(done.steps)[:, None, None])


def _common(case: Case, plain: CountStudy, gated: CountStudy) -> Row:
    """The common part of movers time by time with counts alone and with gates."""
    n = case.moves.shape[1]
    away = ~np.eye(n, dtype=bool)
    row: Row = {}
    for name, done in (("counts", plain), ("gates", gated)):
        e, true = _flows(done)[:, :n, :n][:, away], case.moves[:, away]
        row[f"cpc {name}"] = float(2 * np.minimum(e, true).sum() / (e.sum() + true.sum()))
    return row


def _apart(one: CountStudy, other: CountStudy, elsewhere: npt.NDArray[np.bool_]) -> Row:
    """How far flows that do not pass a gate are from each other, over the day and its times."""
    return _differences("", _flows(one), _flows(other), elsewhere)


def _differences(name: str, a: FloatArray, b: FloatArray, elsewhere: npt.NDArray[np.bool_]) -> Row:
    moves = elsewhere & ~np.eye(len(elsewhere), dtype=bool)
    day = np.abs(a.sum(axis=0) - b.sum(axis=0))[moves].sum() / b.sum(axis=0)[moves].sum()
    times = np.abs(a - b)[:, moves].sum() / b[:, moves].sum()
    return {f"{name}elsewhere day": float(day), f"{name}elsewhere times": float(times)}


def _ipf_apart(
    case: Case, plain: CountStudy, gates: CrossingTable, g: int, away: npt.NDArray[np.bool_]
) -> Row:
    wrong, without = (
        ipf_flows(case, plain.transmats, given)
        for given in (contradicted(gates, g), gates.without(g))
    )
    return _differences("ipf ", wrong, without, away)
