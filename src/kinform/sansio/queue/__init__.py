"""Queues between a reflector and a cache: client-go's DeltaFIFO and RealFIFO, without locks.

`interface` states what every queue promises; `coalesce` merges the events of a slow listener.
"""
