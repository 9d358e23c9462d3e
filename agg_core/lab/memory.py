"""How much memory work of the Lab takes, told before it begins."""

from __future__ import annotations

from agg_core.base.threads import number_of_threads
from agg_core.lab.experiments import LabSettings
from agg_core.lab.teaching import GROUP_SIZES, SAMPLE, TeachingSettings
from agg_core.study.memory import BASE_BYTES
from agg_core.study.people import estimate_megabytes

__all__ = ["experiment_megabytes", "teaching_megabytes"]

TOKEN_BYTES = 160
"""A person at a step, of those who are learned from and of as many others to test on."""

TABLES, TABLE_BYTES = 45, 8
"""Tables (d, d) of the learner that keeps most of them."""

FIXES_EACH = 48
"""Fixes of a person of the sample, all of which are read."""


def experiment_megabytes(settings: LabSettings) -> float:
    """Peak memory of an experiment in MB, within a factor of about 1.5.

    As many of its cases are at work at once as there are cores, each with its people.
    """
    at_once = min(number_of_threads(), settings.n_runs)
    slots = max(settings.n_individuals) * max(settings.lengths)
    tables = TABLES * TABLE_BYTES * max(settings.n_states) ** 2
    return (BASE_BYTES + at_once * (slots * TOKEN_BYTES + tables)) / 1e6


def teaching_megabytes(settings: TeachingSettings) -> float:
    """Peak memory of flows at every group size in MB, which are learned one after the other."""
    study = settings.study(settings.learner, GROUP_SIZES[-1])
    fixes = FIXES_EACH * SAMPLE.n_people
    return estimate_megabytes(settings.n_people, fixes, study.grid.make(), study)
