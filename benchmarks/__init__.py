"""Speed and memory, measured: ``python -m benchmarks`` or ``make bench``."""
