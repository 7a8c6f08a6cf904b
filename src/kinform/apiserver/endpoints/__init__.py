"""Handling of requests: from an HTTP request to a response, without sockets.

`application` is the entry; it parses the path and the query, checks access and calls the registry.
"""
