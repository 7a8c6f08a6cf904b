"""Validation of pods and of templates of pods."""
