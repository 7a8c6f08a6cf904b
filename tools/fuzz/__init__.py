"""Coverage-guided fuzzing of kinform's parsers: ``python -m tools.fuzz --help``.

A small engine of our own, on the standard library alone. Atheris is faster, but never returns from
its loop, so CI's short run could not be an ordinary test; it comes for Linux only; and it knows
bytes but not JSON, so that most of what it makes of an object is none. What is fuzzed is in
``tests/fuzz``, as plain functions of bytes: any other engine can drive them too.
"""
