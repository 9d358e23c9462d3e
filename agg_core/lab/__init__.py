"""Experiments, accuracy and what a lecturer shows."""
