"""The learners, and what each needs."""

from __future__ import annotations

__all__ = ["CALIBRATED", "FROM_POSITIONS"]

FROM_POSITIONS = ("auto", "sampling", "cavity", "cfb")
"""Learners that take positions of people."""

CALIBRATED = ("cfb", "cavity")
"""Learners whose E-step can be calibrated by simulation."""
