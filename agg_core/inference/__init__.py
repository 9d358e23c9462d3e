"""E-steps of one signature, chosen by name."""

from agg_core.inference.base import ExpectedCounts, Inference, NoiseMap, PoissonInference
from agg_core.inference.cfb import collective_forward_backward

__all__ = ["INFERENCE", "POISSON", "ExpectedCounts", "Inference", "NoiseMap", "PoissonInference"]

POISSON: dict[str, PoissonInference] = {}
"""E-steps that take counts for Poisson readings; they have a further option, ``noise_map``."""

INFERENCE: dict[str, Inference] = {"cfb": collective_forward_backward, **POISSON}
"""E-steps by the name that estimator, command line and pages use."""
