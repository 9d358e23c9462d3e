"""How well the learners do, as tables from one command: the paper's figures and what they claim."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from agg_core.base.engine import current
from agg_core.base.errors import InputError
from agg_core.lab.experiments import EXPERIMENTS, LabProgress, LabResult, LabSettings, lab_steps
from agg_core.lab.trends import LEARNER_LABELS, SYMBOLS, final_table
from agg_core.learn.esteps.pairs import least_squares
from agg_core.made.people import random_hmm
from agg_core.model.aggregates import aggregate
from agg_core.model.hmm import HMM, random_probs

__all__ = [
    "AccuracyProgress",
    "AccuracyReport",
    "ErrorByGroups",
    "accuracy_steps",
    "error_by_groups",
]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class AccuracyProgress:
    """Which part is under way, and where it stands."""

    part: str
    progress: LabProgress


@dataclass(frozen=True)
class ErrorByGroups:
    """L1 error of the rows of transmat that least squares learns from K groups of M people.

    ``errors`` are means over seeds; ``slope`` is that of log error over log K, -1/2 in theory.
    """

    group_size: int
    n_groups: tuple[int, ...]
    errors: tuple[float, ...]
    slope: float
    n_seeds: int


@dataclass(frozen=True)
class AccuracyReport:
    """Results by experiment, and the error of least squares by the number of groups."""

    results: dict[str, LabResult]
    by_groups: tuple[ErrorByGroups, ...]

    def to_dict(self) -> dict[str, Any]:
        """For JSON; a figure that is not finite is null."""
        return {
            "experiments": {name: _result_dict(r) for name, r in self.results.items()},
            "least_squares": [asdict(error) for error in self.by_groups],
        }

    def to_text(self) -> str:
        """Tables for a terminal."""
        parts = [_result_text(name, result) for name, result in self.results.items()]
        if self.by_groups:
            parts.append(_by_groups_text(self.by_groups))
        return "\n\n".join(parts)


def accuracy_steps(
    settings: Iterable[LabSettings], by_groups: Callable[[], tuple[ErrorByGroups, ...]] | None
) -> Iterator[AccuracyProgress | AccuracyReport]:
    """Run experiments one after the other, then ``by_groups`` if given; the report comes last."""
    results = {}
    for chosen in settings:
        for step in lab_steps(chosen):
            if isinstance(step, LabResult):
                results[chosen.experiment] = step
            else:
                yield AccuracyProgress(chosen.experiment, step)
    if by_groups is not None:
        yield AccuracyProgress("least squares", LabProgress(0, 1, "error by number of groups"))
    yield AccuracyReport(results, by_groups() if by_groups is not None else ())


def error_by_groups(
    group_sizes: tuple[int, ...] = (10, 100),
    n_groups: tuple[int, ...] = (100, 400, 1600, 6400),
    *,
    n_states: int = 3,
    length: int = 5,
    n_seeds: int = 24,
) -> tuple[ErrorByGroups, ...]:
    """Error of least squares with a known emission on the paper's random models, by M.

    Raises
    ------
    InputError
        If there are fewer than two numbers of groups.
    """
    if len(n_groups) < 2:
        raise InputError("A slope needs at least two numbers of groups.", code="too-few-groups")
    found = []
    for size in group_sizes:
        of_seed = partial(_errors, size, n_groups, n_states, length)
        errors = np.array(current().map(of_seed, range(n_seeds))).mean(axis=0)
        slope = float(np.polyfit(np.log(n_groups), np.log(errors), 1)[0])
        found.append(ErrorByGroups(size, n_groups, tuple(errors.tolist()), slope, n_seeds))
    return tuple(found)


def _errors(
    size: int, n_groups: tuple[int, ...], n_states: int, length: int, seed: int
) -> list[float]:
    """Mean L1 error of rows by number of groups; fewer groups are the first of more."""
    rng = np.random.default_rng([seed, size])
    truth = HMM.categorical(*random_hmm(n_states, random_state=rng))
    symbols, _ = truth.sample(size * max(n_groups), length, rng)
    groups = aggregate(symbols, size, n_states, rng)
    start = HMM(
        random_probs((n_states,), rng), random_probs((n_states, n_states), rng), truth.emission
    )
    errors = []
    for n in n_groups:
        learned = least_squares(groups.take(np.arange(n)), start)[1]
        errors.append(float(np.abs(learned - truth.transmat).sum(axis=1).mean()))
    return errors


# ------------------------------------------------------------------------------------ the tables


def _result_dict(result: LabResult) -> dict[str, Any]:
    rows = final_table(result.table).to_dict(orient="records")
    return {
        "settings": result.settings.to_dict(),
        "final": [{str(k): _plain(v) for k, v in row.items()} for row in rows],
        "trends": [asdict(trend) for trend in result.trends],
        "notes": list(result.notes),
        "wall_s": round(result.wall_s, 2),
    }


def _plain(value: Any) -> Any:
    """A number that JSON has a word for."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _result_text(name: str, result: LabResult) -> str:
    settings = result.settings
    head = (
        f"{name}: {EXPERIMENTS[name].title}\n{settings.n_seeds} seeds, {settings.iterations} "
        f"iterations, {result.wall_s:.0f} s; ΔNLL at the end in nats per person, learning in s"
    )
    ends = final_table(result.table).replace({"learner": LEARNER_LABELS})
    shown = ends.drop(columns="n_seeds").rename(columns=SYMBOLS)
    table = shown.to_string(index=False, float_format=lambda value: f"{value:.4f}", na_rep="-")
    verdicts = [f"- {trend.claim} {trend.sentence}" for trend in result.trends]
    return "\n".join([head, table, *verdicts, *result.notes])


def _by_groups_text(by_groups: tuple[ErrorByGroups, ...]) -> str:
    lines = ["least squares: L1 error of the rows of transmat by number of groups K"]
    for error in by_groups:
        figures = ", ".join(
            f"{value:.3f} at {n:,}" for n, value in zip(error.n_groups, error.errors, strict=True)
        )
        lines.append(
            f"M = {error.group_size}: {figures}; slope {error.slope:.2f} ({error.n_seeds} seeds)"
        )
    return "\n".join(lines)
