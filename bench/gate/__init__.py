"""A gate for performance that does not depend on the machine: ``python -m bench.gate``.

Every hot path (`bench.gate.paths`) is run with a small load, and its cost is compared with
``baseline.json``. The counts per event, object or lookup are the same on every machine, and are
valid for one minor version of Python:

* *instructions*: bytecode instructions executed, asyncio's included.
* *calls*: calls of functions that are written in C.
* *passes*: those of them that go over the bytes of an object, decoding or (de)compressing.
* *bytes*: memory that is kept afterwards.
* *tracked*: objects among it that the garbage collector has to walk through.

None of them shows the work inside C code, so one measure is a time:

* *cpu*: CPU time as a multiple of a reference job, which alternates with it in the same process:
  decoding the metadata of the same pods by msgspec, or ten ``dict.get`` for each lookup.
"""
