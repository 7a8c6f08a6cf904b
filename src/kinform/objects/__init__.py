"""Kubernetes objects in memory: their bytes, their decoded views and the caller's models.

`kinform.Object` is the public name of the class; the rest is how a cache keeps objects small.
"""
