"""What learners make of counts, held against the moves that really were."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from agg_core.counts.certainty import flows_by_slot
from agg_core.counts.choosing import (
    Trial,
    learn_flows,
    timed_pairs,
    try_candidates,
)
from agg_core.counts.held_out import gravity_prediction
from agg_core.counts.pairs import CountPairs, moments_of, over_day_types, pairs_of
from agg_core.counts.rows import Strength
from agg_core.learn.learners import learn
from agg_core.model.aggregates import Aggregates
from agg_core.model.hmm import HMM
from agg_core.study.counts import CountStudy, count_study_steps, move_shape
from agg_core.study.result import ESTIMATE, WHOLE_DAY
from agg_core.study.settings import CountLearnSettings
from benchmarks.counts.cases import Case, blanks_as_zero, miscounted, scaled_up, suppressed
from benchmarks.counts.peer import can_learn, peer_flows
from benchmarks.coverage import held_flows, held_sums, sum_masks
from benchmarks.group_sizes.tables import FloatArray, Row, flow_figures

__all__ = ["coverage", "default_flows", "errors_of_counting", "masks_of", "methods", "suppression"]

CFB_ITERATIONS = 60


def figures(flows: FloatArray, truth: FloatArray) -> Row:
    """Figures of flows (H, d, d) summed over times of day, and the CPC hour by hour."""
    n = truth.shape[1]
    inside = flows[:, :n, :n]
    found = flow_figures(inside.sum(axis=0), truth.sum(axis=0))
    away = ~np.eye(n, dtype=bool)
    e, t = inside[:, away], truth[:, away]
    by_slot = 2 * np.minimum(e, t).sum() / max(e.sum() + t.sum(), 1e-300)
    return {"cpc": found["cpc"], "total_ratio": found["total_ratio"], "cpc_by_slot": float(by_slot)}


def methods(case: Case, *, time_of_day: str = "by_time", seed: int = 0) -> Iterator[Row]:
    """A row per way to come from counts to flows; ``time_of_day`` as the app's setting ``time``."""
    pairs = pairs_of(case.table)
    shape = move_shape(case.table, outside=pairs.has_outside)
    began = time.perf_counter()

    def row(method: str, flows: FloatArray, what: str = "") -> Row:
        nonlocal began
        took, began = time.perf_counter() - began, time.perf_counter()
        return {"method": method, **figures(flows, case.moves), "what": what, "seconds": took}

    yield row("start", flows_by_slot(pairs, shape[None]))
    yield row("gravity", flows_by_slot(pairs, gravity_prediction(pairs, shape)))
    yield row("cfb, no prior", flows_by_slot(pairs, _cfb(pairs, shape)))
    trials = list(try_candidates(pairs, shape, time=time_of_day, random_state=seed))
    ways = {
        "no prior": [t for t in trials if t.candidate.strength.prior == 0 and not _timed(t)],
        "prior": [t for t in trials if not _timed(t)],
        "prior + time of day": [t for t in trials if _timed(t)],
    }
    for method, tried in ways.items():
        if not tried:
            continue
        best = max(tried, key=_score).candidate
        timed = timed_pairs(pairs, best.strength)
        *_, last = learn_flows(timed, shape, best.learner, best.strength, random_state=seed)
        flows = over_day_types(flows_by_slot(timed, last.transmats), len(pairs.slots))
        yield row(method, flows, f"{_named(best.learner, best.strength)} score={best.score:.2f}")
    done = study(case, CountLearnSettings(replicates=0, seed=seed, time=time_of_day))
    chosen = done.candidates.loc[done.candidates["chosen"]].iloc[0]
    what = f"{_named(done.learner, chosen)} movement={done.movement:.3f}"
    usual = done.people * np.array(done.steps)[:, None]
    yield row("default", usual[:, :, None] * done.transmats, what)
    assert done.happened is not None
    what = f"{done.happened.method} rhat={done.happened.r_hat} n_eff={done.happened.n_eff}"
    yield {"method": "default, what happened", **shown(done, case.moves), "what": what}
    began = time.perf_counter()
    grid = None if case.table.grid is None else case.table.grid.make()
    if grid is not None and can_learn(pairs, grid):
        yield row("flowstock", *peer_flows(pairs, grid))


def _named(learner: str, s: Strength | pd.Series[Any]) -> str:
    types = " by type of day" if s.day_types else ""
    return f"{learner} prior={s.prior:g} hours={s.hours} own={s.own}{types}"


def _score(trial: Trial) -> float:
    return trial.candidate.score


def _timed(trial: Trial) -> bool:
    return trial.candidate.strength.by_time


def _cfb(pairs: CountPairs, shape: FloatArray) -> FloatArray:
    """The paper's learner on the same pairs, from the same start."""
    d = pairs.n_states
    both = np.stack([pairs.before, pairs.after], axis=1)
    hmm, _ = learn(
        Aggregates.from_dense(both), HMM.categorical(np.full(d, 1 / d), shape, np.eye(d)),
        inference="cfb", fixed=("emission",), n_iter=CFB_ITERATIONS,
    )  # fmt: skip
    return hmm.transmat[None]


def study(case: Case, settings: CountLearnSettings) -> CountStudy:
    """The whole way of the app."""
    *_, done = count_study_steps(case.table, settings)
    assert isinstance(done, CountStudy)
    return done


def default_flows(case: Case, *, replicates: int = 0, seed: int = 0, time: str = "auto") -> Row:
    """Figures of what the app does by itself."""
    settings = CountLearnSettings(replicates=replicates, seed=seed, time=time)
    done = study(case, settings)
    flows = flows_by_slot(pairs_of(case.table), done.transmats)
    chosen = done.candidates.loc[done.candidates["chosen"]].iloc[0]
    what = f"{chosen['learner']} prior={chosen['prior']:g} hours={chosen['hours']}"
    return {**figures(flows, case.moves), "what": what, "seconds": done.wall_s}


def coverage(case: Case, *, replicates: int, error: float = 0.0, seed: int = 0) -> Iterator[Row]:
    """How many of the true moves lie in their intervals, of those above `FROM` people.

    Intervals of what happened and of what usually happens are both held against it. Sums of flows
    are those above `FROM` people as they are estimated. Where moves of each pair are known, each
    day alone is held against what happened on it. Counts err by a share ``error``.
    """
    wrong = miscounted(case.table, error, np.random.default_rng(seed))
    done = study(Case(wrong, case.moves), CountLearnSettings(replicates=replicates, seed=seed))
    n = case.moves.shape[1]
    assert done.happened is not None
    assert done.steps is not None
    of_day, whole, steps_of = case.moves.sum(axis=0)[None], [sum(done.steps)], done.steps
    for of, flows, table, truth, steps in (
        ("happened", "day", done.happened.day_flows.assign(slot=0), of_day, whole),
        ("happened", "time of day", done.happened.flows, case.moves, steps_of),
        ("usual", "day", done.day_flows.assign(slot=0), of_day, whole),
        ("usual", "time of day", done.flows, case.moves, steps_of),
    ):
        inside = table.loc[(table["origin"] < n) & (table["dest"] < n)]
        at = tuple(inside[name].to_numpy() for name in ("slot", "origin", "dest"))
        low, high = np.zeros(truth.shape), np.zeros(truth.shape)
        times = np.asarray(steps)[at[0]]
        low[at], high[at] = inside["low"] * times, inside["high"] * times
        held = held_flows(truth, low, high)
        yield {"error": error, "of": of, "flows": flows, **_share(held)}
    for source in done.sources:
        for name, masks in masks_of(case).items():
            for flows, times_of in (("day", (WHOLE_DAY,)), ("time of day", done.times_of_day)):
                found = [
                    held_sums(done, time, source, masks, _moved(done, case, time))
                    for time in times_of
                ]
                yield {
                    "error": error, "of": done.source_name(source), "flows": f"{name}, {flows}",
                    **_share(np.concatenate(found)),
                }  # fmt: skip
    if case.by_pair is not None and done.days:
        for flows, held in _on_single_days(done, case, case.by_pair).items():
            yield {"error": error, "of": "happened on one day", "flows": flows, **_share(held)}


def _on_single_days(
    done: CountStudy, case: Case, by_pair: FloatArray
) -> dict[str, npt.NDArray[np.bool_]]:
    """Whether moves, and sums of them, lie in their intervals, each day chosen alone."""
    n, moments = case.moves.shape[1], moments_of(case.table)
    first, found = moments.first, dict[str, list[npt.NDArray[np.bool_]]]()
    dates = moments.date[first].astype("datetime64[D]").astype(str)
    masks = masks_of(case)
    for day in done.days:
        one = done.of_days([day])
        for at in one.times:
            mine = dates == day
            if at != WHOLE_DAY:
                mine &= case.table.slot[first] == done.slots.index(at)
            truth, steps = by_pair[first[mine]].sum(axis=0), one.steps_summed(at)
            ends = [steps * one.matrix(at, column=end)[:n, :n] for end in ("low", "high")]
            when = "day" if at == WHOLE_DAY else "time of day"
            found.setdefault(when, []).append(held_flows(truth, *ends))
            for name, of in masks.items():
                held = held_sums(one, at, ESTIMATE, of, truth)
                found.setdefault(f"{name}, {when}", []).append(held)
    return {name: np.concatenate(parts) for name, parts in found.items()}


def _moved(done: CountStudy, case: Case, time: str) -> FloatArray:
    """People who moved at a time, or over the day, (n, n)."""
    if time == WHOLE_DAY:
        return np.asarray(case.moves.sum(axis=0))
    return np.asarray(case.moves[done.slots.index(time)])


def _share(held: npt.NDArray[np.bool_]) -> Row:
    return {"n_flows": len(held), "held": float(held.mean()) if len(held) else np.nan}


def masks_of(case: Case) -> dict[str, npt.NDArray[np.bool_]]:
    """Masks (K, n, n) of the moves of a case that are summed (see `sum_masks`)."""
    grid = case.table.grid
    return sum_masks(case.moves.shape[1], None if grid is None else grid.make().centroids_m)


def suppression(case: Case, below: float, *, seed: int = 0) -> Iterator[Row]:
    """All counts, those from ``below`` people on with care, and with blanks taken for zero."""
    withheld = suppressed(case.table, below)
    tables = {
        "all counts": case.table, "suppressed": withheld, "blanks as zero": blanks_as_zero(withheld)
    }  # fmt: skip
    for name, table in tables.items():
        yield {"counts": name, **default_flows(Case(table, case.moves), seed=seed)}


def errors_of_counting(
    case: Case, errors: Sequence[float], *, share: int = 1, seed: int = 0
) -> Iterator[Row]:
    """What the default makes of counts that err by each of ``errors``, a share of the count.

    They are of one in ``share`` people, scaled up by that.
    """
    for error in errors:
        rng = np.random.default_rng(seed)
        table = case.table if share == 1 else scaled_up(case, share, rng)
        wrong = miscounted(table, error, rng)
        done = study(Case(wrong, case.moves), CountLearnSettings(replicates=0, seed=seed))
        yield {
            "share": share, "error": error, "learned": done.count_error,
            "low": done.count_error_low, "high": done.count_error_high,
            "expansion": done.expansion, **shown(done, case.moves), "seconds": done.wall_s,
        }  # fmt: skip


def shown(done: CountStudy, truth: FloatArray) -> Row:
    """Figures of what happened, as the result shows it."""
    happened = done.parameters()["happened"]
    return figures(happened * np.array(done.steps)[:, None, None], truth)
