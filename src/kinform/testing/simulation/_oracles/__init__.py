"""Oracles of a simulated run: checks of deliveries, writes and failed reconciles."""
