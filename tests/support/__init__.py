"""Shared helpers for tests of every layer: no behaviour of kinform itself lives here."""
