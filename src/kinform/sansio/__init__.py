"""The pure core: decoders, state machines, queues and limits, without I/O.

Rule 1: no asyncio, no HTTP, no clock, no randomness; ``now`` and ``rand`` are arguments.
Rule 2: a function that takes bytes gives the same result for every way they may be split.
Rule 3: linear time in what it is fed.
"""
