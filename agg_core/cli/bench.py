"""``agg-core bench``: the learners measured on made data."""

from __future__ import annotations

import argparse
import json

from agg_core.cli.console import watched
from agg_core.lab.accuracy import (
    AccuracyProgress,
    AccuracyReport,
    accuracy_steps,
    error_by_groups,
)
from agg_core.lab.experiments import EXPERIMENTS

__all__ = ["add_options", "run"]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what can be measured, and its options."""
    kinds = parser.add_subparsers(required=True, metavar="WHAT")
    accuracy = kinds.add_parser("accuracy", help="the paper's experiments, figures 3 to 7")
    accuracy.add_argument("--quick", action="store_true", help="fewer seeds and people: minutes")
    accuracy.add_argument("--experiment", choices=list(EXPERIMENTS), help="this one alone")
    accuracy.add_argument("--json", action="store_true", help="print one JSON object")


def run(chosen: argparse.Namespace) -> int:
    """Repeat the experiments and print what they came to."""
    names = [chosen.experiment] if chosen.experiment else list(EXPERIMENTS)
    settings = [EXPERIMENTS[n].quick if chosen.quick else EXPERIMENTS[n].full for n in names]
    steps = accuracy_steps(settings, None if chosen.experiment else error_by_groups)
    report = watched(steps, AccuracyReport, _run_of)
    print(json.dumps(report.to_dict(), ensure_ascii=False) if chosen.json else report.to_text())
    return 0


def _run_of(step: AccuracyProgress) -> str:
    at = step.progress
    return f"{step.part}: {at.done} of {at.n_runs} runs, {at.label}"
