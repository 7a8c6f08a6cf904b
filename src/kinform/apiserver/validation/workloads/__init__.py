"""Validation of the kinds that run pods: Deployments, StatefulSets, DaemonSets, Jobs and others."""
