"""The parts of tests/gpu/check. Python's standard library only: it runs where nothing can be installed."""
