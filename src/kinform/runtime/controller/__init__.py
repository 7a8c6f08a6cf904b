"""Controllers: the reconcile loop, its workers, and the context that a reconcile function gets."""
