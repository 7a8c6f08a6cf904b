"""The ``kinform`` command. It needs the extra ``kinform[cli]``: click and rich.

Rule of the package: a command is a file; what a command decides or draws is pure and stands in a
file of its own; nothing heavy is imported before it is needed, so that ``--help`` is instant.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from typing import NoReturn

__all__ = ["main"]


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command and leave the process with its exit code."""
    for needed in ("click", "rich"):
        if importlib.util.find_spec(needed) is None:
            sys.exit(f"error: the kinform command needs {needed}: pip install 'kinform[cli]'")
    from kinform.cli.execution import run

    sys.exit(run(args))
