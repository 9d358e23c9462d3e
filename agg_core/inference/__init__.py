"""E-steps of one signature, chosen by name."""

from agg_core.inference.base import ExpectedCounts, Inference
from agg_core.inference.cfb import collective_forward_backward

__all__ = ["INFERENCE", "ExpectedCounts", "Inference"]

INFERENCE: dict[str, Inference] = {"cfb": collective_forward_backward}
"""E-steps by the name that estimator, command line and pages use."""
