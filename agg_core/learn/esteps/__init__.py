"""E-steps of one signature, chosen by name."""

from agg_core.learn.esteps.base import ExpectedCounts, Inference, NoiseMap, PoissonInference
from agg_core.learn.esteps.cavity import cavity_forward_backward
from agg_core.learn.esteps.cfb import collective_forward_backward
from agg_core.learn.esteps.poisson import bethe_rda, nlbp, prox
from agg_core.learn.esteps.sampling import sampled_counts

__all__ = ["INFERENCE", "POISSON", "ExpectedCounts", "Inference", "NoiseMap", "PoissonInference"]

POISSON: dict[str, PoissonInference] = {"nlbp": nlbp, "bethe_rda": bethe_rda, "prox": prox}
"""E-steps that take counts for Poisson readings; they have a further option, ``noise_map``."""

INFERENCE: dict[str, Inference] = {
    "sampling": sampled_counts,
    "cavity": cavity_forward_backward,
    "cfb": collective_forward_backward,
    **POISSON,
}
"""E-steps by the name that estimator, command line and pages use."""
