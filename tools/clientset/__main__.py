"""Write the typed models and clients, or check that they are as they would be written.

    python -m tools.clientset            write them
    python -m tools.clientset --check    fail if a file would change, is missing or is too much

What it reads is what ``tools/record_api.py`` recorded from a real kube-apiserver: its discovery
and its OpenAPI documents. No server is needed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from kinform.clientset.codegen.emit import emit
from tools.clientset.blocking import blocking_groups
from tools.clientset.clients import client_modules, groups, package, page
from tools.clientset.modules import model_modules
from tools.clientset.recorded import API

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / "src/kinform/clientset"
MARK = "Written by ``make clientset``."


def main() -> None:
    """Write or check."""
    parser = argparse.ArgumentParser(description="Write kinform.clientset.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail on a difference")
    check: bool = parser.parse_args().check
    files = written()
    stale = {path for path in HOME.rglob("*.py") if MARK in path.read_text("utf-8")} - files.keys()
    changed = {path for path, text in files.items() if not is_the_same(path, text)}
    if check:
        for path in sorted(stale | changed):
            print(f"{path.relative_to(ROOT)} is not as `make clientset` writes it")
        sys.exit(bool(stale or changed))
    for path in changed:
        path.parent.mkdir(exist_ok=True)
        path.write_text(files[path], encoding="utf-8")
    for path in stale:
        path.unlink()
    print(f"{len(files)} files, {len(changed)} written, {len(stale)} removed")


def written() -> dict[Path, str]:
    """Return the text of every file."""
    api = API()
    models, clients = model_modules(api), client_modules(api)
    return {
        HOME / "__init__.py": package([module.name for module in models]),
        HOME / "groups.py": groups(list(clients)),
        ROOT / "src/kinform/sync/groups.py": blocking_groups(api),
        ROOT / "docs/reference/kinds.md": page(api),
        HOME
        / "clients"
        / "__init__.py": f'"""Typed clients, a module for each API version. {MARK}"""\n',
        **{HOME / f"{module.name}.py": emit(module) for module in models},
        **{HOME / "clients" / f"{name}.py": text for name, text in clients.items()},
    }


def is_the_same(path: Path, text: str) -> bool:
    """Return whether a file has this text already."""
    return path.is_file() and path.read_text("utf-8") == text


if __name__ == "__main__":
    main()
