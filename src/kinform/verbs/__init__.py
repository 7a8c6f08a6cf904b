"""The verbs of the Kubernetes API as mixins of resource clients.

Each class adds one group of verbs to the same small base; `kinform.ResourceClient` has them all,
a typed client those that its kind supports.
"""
