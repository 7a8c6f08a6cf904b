"""A small living cluster on the embedded API server: something happens all the time."""

from __future__ import annotations

from kinform.apiserver.demo.running import Demo

__all__ = ["Demo"]
