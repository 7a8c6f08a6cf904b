"""Run seeds in this process, and say in one line of JSON how each went; stop at the first failure.

``python -m tools.mutants.seeds FIRST COUNT``, with ``PYTHONHASHSEED=0`` and whichever kinform is
first on the path. A seed does here what it does in ``kinform simulate``.
"""

from __future__ import annotations

import json
import logging
import sys

from kinform.testing.simulation import seeds

__all__ = ["main"]


def main() -> None:
    """Run them."""
    first, count = map(int, sys.argv[1:])
    logging.disable(logging.CRITICAL)
    run = seeds.SimulatedProgram().load()
    for schedule in seeds.drawn(first, count):
        oracle = message = ""
        try:
            divergence = run(schedule).divergence
        except Exception as exc:  # noqa: BLE001 - no oracle saw it, but nobody could miss it
            oracle, message = "crash", repr(exc)
        else:
            if divergence is not None:
                oracle, message = divergence.oracle, str(divergence)
        said = {"seed": schedule.seed, "oracle": oracle, "message": message}
        print(json.dumps(said), flush=True)
        if oracle:
            break


if __name__ == "__main__":
    main()
