"""The teaching view that comes with the package: flows at every group size without any learning.

It lies below ``data/runs`` as `agg_core.store.codec.save_teaching` writes it, and is learned anew
by ``python data/learn.py teaching``.
"""

from __future__ import annotations

from agg_core.base.shipped import shipped
from agg_core.lab.teaching import TeachingResult, TeachingSettings, teaching_steps
from agg_core.store.codec import load_teaching

__all__ = ["TEACHING", "TEACHING_SETTINGS", "learn_teaching", "load_shipped_teaching"]

TEACHING = "teaching"
"""Its folder below ``data/runs``."""

TEACHING_SETTINGS = TeachingSettings()
"""What it was learned with: the settings that the page has at first."""


def load_shipped_teaching() -> TeachingResult:
    """Open the shipped teaching view.

    Raises
    ------
    InputError
        If its files are missing or damaged.
    """
    return load_teaching(shipped(f"data/runs/{TEACHING}/result.json").parent)


def learn_teaching() -> TeachingResult:
    """Learn it anew, which takes minutes."""
    *_, result = teaching_steps(TEACHING_SETTINGS)
    assert isinstance(result, TeachingResult)
    return result
