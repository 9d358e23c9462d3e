"""What a release tells, and how surely, measured: ``python -m benchmarks evidence``."""
