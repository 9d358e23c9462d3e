"""What settings must know of the learners, without loading one."""

from __future__ import annotations

__all__ = ["CALIBRATED", "FROM_POSITIONS", "PRIOR", "PULLED"]

FROM_POSITIONS = ("auto", "sampling", "cavity", "cfb")
"""Learners that take positions of people."""

CALIBRATED = ("cfb", "cavity")
"""Learners whose E-step can be calibrated by simulation."""

PRIOR = 2.0
"""People that pull each row of transitions, unless said otherwise, wherever a learner is called."""

PULLED = ("cavity", "sampling", "gaussian_pairs")
"""Learners that a prior can pull; the others are as published."""
