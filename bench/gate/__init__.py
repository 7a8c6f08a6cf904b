"""A gate for performance that does not depend on the machine: ``python -m bench.gate``.

Every path (`bench.gate.paths`) is taken with little to do, and what that takes is held against
``baseline.json``. Counts per event, object or lookup are the same on every machine, and belong to
one minor version of Python:

* *instructions*: bytecode instructions executed, asyncio's included.
* *calls*: calls of functions that are written in C.
* *passes*: those of them that go over the bytes of an object, decoding or (de)compressing.
* *bytes*: memory that is kept afterwards.
* *tracked*: objects among it that the garbage collector has to walk through.

What C code does inside is seen by none of them, so there is one measure in time as well:

* *cpu*: CPU time as a multiple of a job that is not ours, in turns with it in the same process:
  decoding the metadata of the same pods by msgspec, or ten ``dict.get`` for each lookup.
"""
