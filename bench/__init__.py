"""Benchmarks. ``python -m bench`` runs them all and fails below a bar.

Figures are ratios of things measured side by side in one run; a time by itself means nothing
on a shared machine.
"""
