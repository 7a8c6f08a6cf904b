"""The decisions of a work queue: which key is next, when a failed key is due, fair shares.

`kinform.workqueue` runs them on an event loop.
"""
