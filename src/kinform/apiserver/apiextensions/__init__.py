"""Custom resources: definitions, and the objects of their kinds.

`definitions` judges a CustomResourceDefinition, `establishing` gives it the status that the
server's controllers would, and `kinds` makes the kinds that it serves. An object of such a kind
goes through `pruning`, `defaulting` and `validating`, in this order. `scale` is the ``scale``
subresource of custom and of built-in kinds.
"""

from __future__ import annotations
