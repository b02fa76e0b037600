"""Fuzzers: directories of mutated traces that go through everything that reads them. ``python3 dev.py fuzz --help``."""
