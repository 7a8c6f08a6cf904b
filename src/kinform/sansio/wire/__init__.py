"""Incremental decoders of the bytes of HTTP bodies: chunks, gzip, lists and watches.

Each one takes bytes as they arrive and gives the same result for every way they may be split.
"""
