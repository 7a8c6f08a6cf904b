"""The embedded API server: Kubernetes' HTTP API from one Python process, for tests and demos.

There so far: `kinform.apiserver.storage`, what etcd and the watch cache are to the real one.
"""
