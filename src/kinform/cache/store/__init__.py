"""The caches of informers: objects by key, their indexes, and the transitions that a write makes.

client-go's ``Store``, ``Indexer`` and ``ThreadSafeStore``.
"""
