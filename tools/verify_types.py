"""Fail unless every public symbol of kinform has a complete type.

Runs ``pyright --verifytypes`` and lists the symbols that a user's type checker would see as
unknown or only partly known.
"""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

COMMAND = [
    *(sys.executable, "-m", "pyright"),
    *("--verifytypes", "kinform", "--ignoreexternal", "--outputjson"),
]


def main() -> None:
    """Run pyright and print its verdict."""
    # Here pyright heeds neither --pythonpath nor its settings: it asks the `python` on PATH.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    env = {**os.environ, "PATH": path}
    done = subprocess.run(COMMAND, check=False, capture_output=True, text=True, env=env)
    try:
        report: dict[str, Any] = json.loads(done.stdout)["typeCompleteness"]
    except (ValueError, KeyError):
        sys.exit(f"pyright gave no report, code {done.returncode}\n{done.stdout}{done.stderr}")
    for symbol in report["symbols"]:
        if symbol["isTypeKnown"] or not symbol["isExported"]:
            continue
        print(symbol["name"])
        for diagnostic in symbol.get("diagnostics", ()):
            print(textwrap.indent(diagnostic["message"], "    "))
    exported: dict[str, int] = report["exportedSymbolCounts"]
    print(f"types: {report['completenessScore']:.1%} of {sum(exported.values())} public symbols")
    sys.exit(report["completenessScore"] < 1 or not report["packageName"])


if __name__ == "__main__":
    main()
