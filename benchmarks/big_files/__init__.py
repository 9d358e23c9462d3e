"""Files larger than memory, to counts: ``python -m benchmarks big-files``."""
