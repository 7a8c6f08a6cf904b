"""Structural schemas of custom kinds: pruning, defaulting and validation of objects."""
