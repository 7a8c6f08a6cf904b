"""Typed clients, a module for each API version. Written by ``make clientset``."""
