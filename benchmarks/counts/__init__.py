"""Flows from counts alone, measured: ``python -m benchmarks counts``."""
