"""Watches outside of informers: one that survives its connections, and waits for a condition.

client-go's ``tools/watch``.
"""
