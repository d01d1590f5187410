"""Benchmarks side by side with rivals. `python -m benchmarks --help` lists them."""
