"""Kubernetes Events that a controller records: client-go's ``tools/record``."""
