"""Run all benchmarks, or the one named.

``python -m bench [--full]`` runs all; ``--full`` takes the large list body at its full size.
``python -m bench NAME [ARGUMENTS]`` runs one.
"""

from __future__ import annotations

import sys
from typing import Final

from bench import (
    apiserver,
    blocking,
    clientset,
    controllers,
    frames,
    lists,
    memory,
    official,
    pipeline,
    queues,
)

BENCHMARKS: Final = {
    "frames": frames.main,
    "pipeline": pipeline.main,
    "memory": memory.main,
    "lists": lists.main,
    "apiserver": apiserver.main,
    "queues": queues.main,
    "controllers": controllers.main,
    "clientset": clientset.main,
    "blocking": blocking.main,
    "official": official.main,
}
_FULL: Final = "--full"


def _run(arguments: list[str]) -> int:
    """Return the exit code: 0 if all bars were reached, 1 if not, 2 for an unknown name."""
    if arguments in ([], [_FULL]):
        return 0 if all(_run_all(arguments)) else 1
    name, *rest = arguments
    if name not in BENCHMARKS:
        print(f"no benchmark {name!r}; there is {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    return 0 if BENCHMARKS[name](rest) else 1


def _run_all(arguments: list[str]) -> list[bool]:
    reached: list[bool] = []
    for name, benchmark in BENCHMARKS.items():
        print(f"=== {name}\n", flush=True)
        reached.append(benchmark(arguments if name == "lists" else ()))
        print()
    return reached


if __name__ == "__main__":
    sys.exit(_run(sys.argv[1:]))
