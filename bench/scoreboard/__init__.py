"""The same faults for every client, judged from outside: see ``docs/scoreboard.md``.

A *cell* is one scenario with one client: an embedded API server with its fault plan in a process of
its own, the client's program of ``bench/peers`` in another, and in between the one that breaks
things, looks and writes down what it saw. `judge` makes a verdict of that, later and without I/O.
"""
