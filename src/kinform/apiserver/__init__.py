"""The embedded API server: Kubernetes' HTTP API from one Python process, for tests and demos."""

from __future__ import annotations

from kinform.apiserver.server import APIServer

__all__ = ["APIServer"]
