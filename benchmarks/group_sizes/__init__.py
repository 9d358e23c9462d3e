"""Learners at every group size, measured: ``python -m benchmarks group-sizes``."""
