"""Health checks, and the HTTP server of ``/livez``, ``/readyz`` and ``/metrics``."""
