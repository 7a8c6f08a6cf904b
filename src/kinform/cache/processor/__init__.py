"""Delivery of a cache's changes to event handlers and streams: client-go's ``sharedProcessor``."""
