"""Studies that were timed: run for a while, stage by stage, and kept a line of JSON each."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from time import process_time
from typing import Any

from agg_core.base.errors import InputError
from agg_core.base.speed import probed_s
from agg_core.study.counts import CountProgress, count_study_steps
from agg_core.study.lasting import CountSizes, PeopleSizes
from agg_core.study.people import Progress, study_steps
from agg_core.study.settings import StudySettings
from benchmarks.lasting.cases import Planned, counts_of, people_of, planned, settings_of

__all__ = ["collect", "read_runs", "timed"]

LONGEST_S = 12.0
"""Seconds of a core after which a study is cut: the stages that were done by then still count."""

ANNOUNCED = {name: name for name in ("moving", "validating", "drawing")}
"""Stages of counts that are told as they begin: the others are told step by step, as each ends."""

Run = dict[str, Any]


def collect(path: Path, seconds: float, random_state: int, longest_s: float = LONGEST_S) -> None:
    """Append studies to a file, as many as so many seconds of a core allow."""
    began = process_time()
    for plan in planned(random_state):
        if process_time() - began > seconds:
            return
        run = timed(plan, longest_s)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(run) + "\n")


def timed(plan: Planned, longest_s: float = LONGEST_S) -> Run:
    """A study with the seconds of a core that each stage took; of one that is refused, why."""
    run: Run = asdict(plan)
    try:
        steps, run["sizes"] = _steps_of(plan)
    except InputError as fault:
        return run | {"refused": str(fault)}
    before = probed_s()
    spent: dict[str, float] = defaultdict(float)
    n_steps: dict[str, int] = defaultdict(int)
    began = last = process_time()
    cut, result, stage = False, None, ""
    try:
        for step in steps:
            now = process_time()
            stage, announced = _stage_of(step), stage
            spent[ANNOUNCED.get(announced, stage)] += now - last
            n_steps[stage] += 1
            last, result = now, step
            if now - began > longest_s:
                cut = True
                break
    except InputError as fault:
        return run | {"refused": str(fault)}
    run |= {
        "probe_s": round((before + probed_s()) / 2, 6),
        "spent": {name: round(value, 4) for name, value in spent.items()},
        "n_steps": dict(n_steps),
        "total_s": round(last - began, 4),
        "cut": stage if cut else "",
    }
    if not cut:
        run["found"] = _found(result)
    return run


def _steps_of(plan: Planned) -> tuple[Iterator[Any], dict[str, Any]]:
    """The steps of a study, and the sizes that are known before they begin."""
    settings = settings_of(plan)
    if isinstance(settings, StudySettings):
        people, learn = people_of(plan), settings.learn
        told = PeopleSizes.of(people, settings.grid.make(), settings.window, learn.group_size)
        return study_steps(people, settings), asdict(told)
    counts = counts_of(plan)
    return count_study_steps(counts, settings), asdict(CountSizes.of(counts, settings))


def _stage_of(step: Any) -> str:
    if isinstance(step, Progress):
        return f"{step.stage}/{step.source}"
    if not isinstance(step, CountProgress):
        return "ending"
    return "moving" if step.stage == "learning" and "simulated" in step.message else step.stage


def _found(result: Any) -> Run:
    if result.kind == "counts":
        return {
            "learner": result.learner, "by_time": len(result.transmats) > 1,
            "day_types": result.day_types, "count_error": result.count_error,
            "expansion": result.expansion, "outside": bool(result.has_outside),
            "n_trials": len(result.candidates),
            "happened": result.happened.method,
        }  # fmt: skip
    return {
        "learner": result.learner, "n_states": result.n_states,
        "n_groups": result.n_groups, "n_sequences": result.n_sequences,
        "sequences": [found.n_sequences for found in result.by_time],
        "iterations": result.iterations,
    }  # fmt: skip


def read_runs(path: Path) -> list[Run]:
    """Studies that were kept, without those that were refused, or cut before a stage was over."""
    runs = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [run for run in runs if "refused" not in run and run["spent"].keys() - {run["cut"]}]
