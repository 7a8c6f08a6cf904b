"""Run every benchmark, or those named: ``python -m bench [NAME] [ARGUMENTS]``."""

from __future__ import annotations

import sys
from typing import Final

from bench import frames, memory

BENCHMARKS: Final = {"frames": frames.main, "memory": memory.main}


def _run(arguments: list[str]) -> int:
    """Return the exit code: 0 if all bars were reached, 1 if not, 2 for an unknown name."""
    if not arguments:
        reached = [benchmark() for benchmark in BENCHMARKS.values()]
        return 0 if all(reached) else 1
    name, *rest = arguments
    if name not in BENCHMARKS:
        print(f"no benchmark {name!r}; there is {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    return 0 if BENCHMARKS[name](rest) else 1


if __name__ == "__main__":
    sys.exit(_run(sys.argv[1:]))
