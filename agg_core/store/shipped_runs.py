"""Finished runs that come with the package: flows of the samples without any learning.

Each lies below ``data/runs`` as `agg_core.store.codec.save_result` writes a result, and is learned
anew by ``python data/learn.py``. Their keys are a closed list, so that no address makes a path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from agg_core.base.errors import InputError
from agg_core.base.shipped import shipped
from agg_core.io import read_trajectories
from agg_core.made.samples import (
    COUNT_SAMPLE,
    SAMPLES,
    count_sample,
    sample_path,
    sample_settings,
)
from agg_core.store.codec import load_result
from agg_core.study.counts import count_study_steps
from agg_core.study.people import study_steps
from agg_core.study.result import FlowResult
from agg_core.study.settings import CountLearnSettings

__all__ = ["SHIPPED_RUNS", "ShippedRun", "learn_shipped", "load_shipped", "shipped_run_of"]


WORLDS_OF_COUNTS = 4
"""Simulated worlds of the run of counts: with as many as by default its files were megabytes."""


@dataclass(frozen=True)
class ShippedRun:
    """A finished run of a sample: its key in addresses, and what it is called.

    ``sample`` is the key of the people it was learned from, None where it was learned from the
    sample of counts.
    """

    key: str
    title: str
    sample: str | None


SHIPPED_RUNS: Mapping[str, ShippedRun] = MappingProxyType(
    {
        run.key: run
        for run in (
            ShippedRun("sample-tokyo", SAMPLES["tokyo_commuters"].title, "tokyo_commuters"),
            ShippedRun("sample-counts", COUNT_SAMPLE, None),
        )
    }
)
"""Shipped runs by key; saved runs have ids of 32 hexadecimal digits, so none is called the same."""


def shipped_run_of(sample: str | None) -> str:
    """The key of the run of a sample; None means the sample of counts."""
    return next(run.key for run in SHIPPED_RUNS.values() if run.sample == sample)


def load_shipped(key: str) -> FlowResult:
    """Open a shipped run.

    Raises
    ------
    InputError
        If none has that key, or its files are missing or damaged.
    """
    return load_result(shipped(f"data/runs/{_named(key).key}/result.json").parent)


def learn_shipped(key: str) -> Iterator[Any]:
    """Learn a shipped run anew, by the settings that a page has at first but `WORLDS_OF_COUNTS`.

    Yields the steps of the learner and at the end the result.

    Raises
    ------
    InputError
        If none has that key.
    """
    sample = _named(key).sample
    if sample is None:
        settings = CountLearnSettings(replicates=WORLDS_OF_COUNTS)
        yield from count_study_steps(count_sample(), settings)
        return
    people = read_trajectories(sample_path(sample), tz=SAMPLES[sample].timezone)
    yield from study_steps(people, sample_settings(sample))


def _named(key: str) -> ShippedRun:
    if key not in SHIPPED_RUNS:
        raise InputError(
            f"There is no shipped run named {key!r}; choose one of {', '.join(SHIPPED_RUNS)}.",
            code="unknown-run",
        )
    return SHIPPED_RUNS[key]
