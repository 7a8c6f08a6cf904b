"""A demo cluster on the embedded API server whose objects keep changing."""

from __future__ import annotations

from kinform.apiserver.demo.demo_cluster import Demo

__all__ = ["Demo"]
