"""The bars of this package against its peers: ``python -m benchmarks`` measures and writes docs/BENCHMARKS.md."""
