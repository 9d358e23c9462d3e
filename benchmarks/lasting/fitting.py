"""Rates fitted to studies that were timed, and how they foretell those they were not fitted to."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.optimize import least_squares, nnls

from agg_core.counts.choosing import DENSE, DRAWN
from agg_core.learn.table import LEARNERS
from agg_core.study.lasting import ERRING, CountSizes, PeopleSizes, Rates, Stage
from agg_core.study.settings import KINDS, CountLearnSettings, LearnSettings, StudySettings
from benchmarks.lasting.cases import Planned, settings_of

__all__ = [
    "Timed",
    "check_table",
    "every_key",
    "fitted",
    "held_out",
    "timed_runs",
    "told",
    "written",
]

FloatArray = npt.NDArray[np.float64]
Key = tuple[str, str]

WORKS = ("people", "counts")
KINDS_OF_WORK = {
    "people": ("people", "people/positions", "people/sampling", "people/gaussian_pairs",
               "people/cfb"),
    "counts": ("counts/exact", "counts/erring"),
}  # fmt: skip
ENOUGH = 12
"""Studies of a kind of work from which on it has a spread of its own."""

SMALL = 0.05
"""Part of a whole study below which a stage hardly counts."""

MOST_TURNS = 15
"""Turns of the descent, after which hardly anything changes."""

FOLDS = 6

EASY, PULL, LEAST = 0.03, 0.15, 0.02
"""Pull of the logarithm of a rate to where it begins, of those that all stages have in common and
of each, and the least part of a stage that it begins with."""

HELD, NARROWEST = 0.9, 1.5
"""Share of studies that a range is to hold, more than is promised as they are few, and the factor
that its ends are apart from what is told at least, as machines are more or less busy."""


@dataclass(frozen=True)
class Timed:
    """A study that was timed: its stages, and probes by the name of a stage as they were told.

    ``probes`` are of stages that were done; ``group`` is its kind of data, ``kind`` that of its
    range, ``whole`` whether it came to its end.
    """

    group: str
    kind: str
    stages: tuple[Stage, ...]
    probes: dict[str, float]
    whole: bool
    plan: Planned

    @property
    def total(self) -> float:
        """Probes of all stages that were done."""
        return sum(self.probes.values())


def timed_runs(runs: Iterable[dict[str, Any]]) -> list[Timed]:
    """Studies with their stages as they would have been told before."""
    found = []
    for run in runs:
        plan = Planned(run["kind"], run["data"], run["settings"])
        settings = settings_of(plan)
        # Lists of JSON are tuples again.
        sizes = {k: tuple(v) if isinstance(v, list) else v for k, v in run["sizes"].items()}
        if isinstance(settings, StudySettings):
            people = PeopleSizes(**sizes)
            stages, kind = tuple(people.stages(settings.learn)), people.kind(settings.learn)
        else:
            counts = CountSizes(**sizes)
            stages, kind = tuple(counts.stages(settings)), counts.kind
        probes = {
            name: seconds / run["probe_s"]
            for name, seconds in run["spent"].items()
            if name != run["cut"]
        }
        found.append(
            Timed(plan.data["name"], kind, stages, _merged(probes, stages), not run["cut"], plan)
        )
    return found


def _merged(probes: dict[str, float], stages: Sequence[Stage]) -> dict[str, float]:
    """What was measured by names of stages; what comes before the first of them is in that."""
    names = {stage.name for stage in stages}
    merged: dict[str, float] = defaultdict(float)
    last = ""
    for name, value in probes.items():
        last = name if name in names else last or next(iter(probes))
        merged[last] += value
    return dict(merged)


def every_key(work: str) -> set[Key]:
    """Rates and kinds of all settings of a work, also of those that no study was timed with."""
    stages = _of_all_counts() if work == "counts" else _of_all_people()
    return {(stage.rate, kind) for stage in stages for kind in stage.amounts}


def _of_all_people() -> Iterator[Stage]:
    people = PeopleSizes((4_000,), days=2, length=4, states=25, occupied=10.0, fixes=50_000)
    for learner, observed, group in product(LEARNERS, KINDS, (1, 20, 400)):
        row = LEARNERS[learner]
        if KINDS[observed] in row.observes and (row.single if group == 1 else row.groups):
            learn = LearnSettings(inference=learner, observed=observed, group_size=group)
            yield from people.stages(learn)


def _of_all_counts() -> Iterator[Stage]:
    for errs, given, times, drawn in product((False, True), repeat=4):
        counts = CountSizes(
            pairs=50, states=10, slots=12, days=6, people=5e4, parts=3, rest=0.7, types=1,
            times=times, errs=errs, given=given, learners=(DRAWN, DENSE), drawn=drawn,
        )  # fmt: skip
        yield from counts.stages(CountLearnSettings())


def fitted(runs: Sequence[Timed]) -> dict[str, dict[str, float]]:
    """Probes per unit by rate and kind: least squares of logarithms of stages, none below 0.

    First of rates that all stages of a learner have in common, then of each, drawn to those.
    """
    rows: list[tuple[dict[Key, float], float, float]] = []
    for run in runs:
        first = next(iter(run.probes), "")
        for name, value in run.probes.items():
            amounts: dict[Key, float] = defaultdict(float)
            for stage in run.stages:
                if stage.name == name or (stage.name == "preparing" and name == first):
                    for kind, amount in stage.amounts.items():
                        amounts[stage.rate, kind] += amount
            if value > 0 and any(amounts.values()):
                weight = np.sqrt(value / (value + SMALL * run.total))
                rows.append((dict(amounts), value, weight))
    shared = _solved([({_shared(k): 0.0 for k in a} | _summed(a), v, w) for a, v, w in rows], {})
    keys = {(s.rate, kind) for run in runs for s in run.stages for kind in s.amounts}
    keys |= every_key(runs[0].kind.partition("/")[0])
    begun = {key: shared[_shared(key)] for key in keys if _shared(key) in shared}
    for key in sorted(keys - begun.keys()):
        begun[key] = shared.get(("cavity", key[1]), 0.0)
    begun = {key: max(value, 1e-12) for key, value in begun.items()}
    found = begun | _solved(rows, begun)
    rates: dict[str, dict[str, float]] = defaultdict(dict)
    for rate, kind in sorted(found):
        rates[rate][kind] = float(f"{found[rate, kind]:.4g}")
    return dict(rates)


def _shared(key: Key) -> Key:
    """The rate that stages of a learner have in common."""
    rate, kind = key
    stage, _, rest = rate.partition("/")
    if stage == "measuring":
        rest = ERRING
    if stage in ("drawing", "worlds") and rest:
        return f"happened/{rest}", kind
    for ending in ("/times", "/one"):
        rest = rest.removesuffix(ending)
    return (rest if rest and stage != "preparing" else rate), kind


def _summed(amounts: dict[Key, float]) -> dict[Key, float]:
    summed: dict[Key, float] = defaultdict(float)
    for key, amount in amounts.items():
        summed[_shared(key)] += amount
    return dict(summed)


def _solved(
    rows: Sequence[tuple[dict[Key, float], float, float]], near: dict[Key, float]
) -> dict[Key, float]:
    """Rates of rows of amounts, what they took and a weight, drawn to others if these are there."""
    keys = sorted({key for amounts, _, _ in rows for key in amounts})
    column = {key: number for number, key in enumerate(keys)}
    X = np.zeros((len(rows), len(keys)))
    for row, (amounts, value, _) in zip(X, rows, strict=True):
        for key, amount in amounts.items():
            row[column[key]] = amount / value
    w = np.array([weight for _, _, weight in rows])
    # A rate of 1 is then one by which a kind of work takes about as long as its stages.
    scale = np.array([np.median(x[x > 0]) if (x > 0).any() else 1.0 for x in X.T])
    Z = X / scale
    if near:
        begun = np.array([near[key] for key in keys]) * scale
    else:
        begun, _ = nnls(w[:, None] * Z, w)
        begun = np.maximum(begun, LEAST)
    pull = PULL if near else EASY

    def off(logs: FloatArray) -> FloatArray:
        return np.concatenate([w * np.log(Z @ np.exp(logs)), pull * (logs - np.log(begun))])

    def slope(logs: FloatArray) -> FloatArray:
        parts = Z * np.exp(logs)
        by_row = w[:, None] * parts / parts.sum(axis=1, keepdims=True)
        return np.concatenate([by_row, pull * np.eye(len(logs))])

    found = np.exp(
        least_squares(off, np.log(begun), slope, loss="soft_l1", f_scale=0.5, max_nfev=MOST_TURNS).x
    )
    return dict(zip(keys, found / scale, strict=True))


def told(run: Timed, rates: Rates) -> float:
    """Probes of those stages of a study that were done."""
    return sum(
        rates.probes_of(stage)
        for stage in run.stages
        if stage.name in run.probes or (stage.name == "preparing" and run.probes)
    )


def held_out(runs: Sequence[Timed], parts: Sequence[object]) -> FloatArray:
    """Logarithm of measured over told (n,), of each study from rates of the other parts."""
    off = np.zeros(len(runs))
    for part in set(parts):
        rest = [run for run, other in zip(runs, parts, strict=True) if other != part]
        rates = Rates(fitted(rest), {})
        for number, run in enumerate(runs):
            if parts[number] == part:
                off[number] = np.log(run.total / max(told(run, rates), 1e-9))
    return off


def folds(runs: Sequence[Timed]) -> list[object]:
    """One of `FOLDS` parts for each study, in turn."""
    return [number % FOLDS for number in range(len(runs))]


def spread_of(off: FloatArray) -> tuple[float, float]:
    """Factors from what is told to the ends of a range that holds `HELD` of studies.

    Of ranges that do, the narrowest by the ratio of its ends.
    """
    sorted_off = np.sort(off)
    n = len(sorted_off)
    k = min(int(np.ceil(HELD * (n + 1))), n)
    widths = sorted_off[k - 1 :] - sorted_off[: n - k + 1]
    first = int(np.argmin(widths))
    low, high = np.exp([sorted_off[first], sorted_off[first + k - 1]])
    return float(f"{low:.3g}"), float(f"{high:.3g}")


def written(runs: Sequence[Timed]) -> str:
    """The text of the file of rates, fitted to all studies, with spreads of those held out."""
    probes: dict[str, dict[str, float]] = {}
    spread: dict[str, tuple[float, float]] = {}
    for work in WORKS:
        mine = [run for run in runs if run.kind.startswith(work)]
        probes |= fitted(mine)
        spread |= spreads(mine, held_out(mine, folds(mine)), work)
    about = f"python -m benchmarks lasting fit, of {len(runs)} studies"
    values = {"made_by": about, "spread": spread, "probes": probes}
    return json.dumps(values, indent=1) + "\n"


def spreads(runs: Sequence[Timed], off: FloatArray, work: str) -> dict[str, tuple[float, float]]:
    """Those of each kind of a work; of a kind with few studies that of all of the work.

    Only studies that came to their end tell them.
    """
    whole = np.array([run.whole for run in runs])
    found = {}
    for kind in KINDS_OF_WORK[work]:
        of_kind = whole & np.array([run.kind == kind for run in runs])
        low, high = spread_of(off[of_kind if of_kind.sum() >= ENOUGH else whole])
        found[kind] = min(low, round(1 / NARROWEST, 3)), max(high, NARROWEST)
    return found


def check_table(runs: Sequence[Timed]) -> str:
    """How many studies took as long as was told by rates and spreads of other studies."""
    rows: list[dict[str, object]] = []
    for work in WORKS:
        mine = [run for run in runs if run.kind.startswith(work)]
        rows += _held(mine, work, "one in 6", folds(mine))
        rows += _held(mine, work, "kind of data", [run.group for run in mine])
    return pd.DataFrame(rows).to_string(index=False)


def _held(
    runs: Sequence[Timed], work: str, left_out: str, parts: Sequence[object]
) -> list[dict[str, object]]:
    """Rows of the check, of studies that came to their end."""
    off, whole = held_out(runs, parts), np.array([run.whole for run in runs])
    groups = np.array([run.group for run in runs])
    low, high = np.zeros((2, len(runs)))
    for part in set(parts):
        others = np.array([other != part for other in parts])
        rest = [run for run, other in zip(runs, others, strict=True) if other]
        found = spreads(rest, off[others], work)
        for number in np.flatnonzero(~others):
            low[number], high[number] = np.log(found[runs[number].kind])
    inside = (low <= off) & (off <= high)
    rows: list[dict[str, object]] = []
    for group in ["all", *sorted(set(groups))]:
        mine = whole & ((groups == group) | (group == "all"))
        if mine.any():
            rows.append(
                {
                    "from": work, "left out": left_out, "data": group, "studies": int(mine.sum()),
                    "within": round(float(inside[mine].mean()), 3),
                    "high / low": round(float(np.exp(np.median((high - low)[mine]))), 2),
                    "took / told": round(float(np.exp(np.median(off[mine]))), 2),
                }
            )  # fmt: skip
    return rows
