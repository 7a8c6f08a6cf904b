"""Correlation of Kubernetes Events: an occurrence is a new Event, or counts up an earlier one.

client-go's ``EventCorrelator`` and the series of ``events.k8s.io``.
"""
