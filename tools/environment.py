"""Create a virtual environment for work on kinform, or bring it up to date.

Needs only a Python that can create virtual environments. The versions are those of
``constraints.txt``. A digest of everything that decides the installation is kept in the stamp
file of the environment, so a run without changes takes no time.
"""

import sys

# Old Pythons must get this far, so the file keeps to a syntax that they can read.
if sys.version_info < (3, 11):  # noqa: UP036 - the interpreter that reads this may be older
    sys.exit(
        "kinform needs Python 3.11 or newer; this is %s at %s.\n"  # noqa: UP031
        "Name a newer one: make PYTHON=python3.12 ..." % (sys.version.split()[0], sys.executable)
    )

import argparse
import hashlib
import importlib.util
import json
import os
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = ROOT / "constraints.txt"


def main() -> None:
    """Make the environment that the arguments name as fresh as the project's files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--path", default=".venv", help="where the environment lives")
    parser.add_argument("--group", default="dev", help="dependency group to install")
    parser.add_argument("--extras", default="all", help="extras of kinform, separated by commas")
    options = parser.parse_args()
    path = ROOT / options.path
    stamp = path / ".stamp"
    python = path / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not usable(python):
        create(path)
    wanted = digest(python, options.group, options.extras)
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        install(python, options.group, options.extras)
        stamp.write_text(wanted, encoding="utf-8")
    stamp.touch()  # newer than what make compares it with


def usable(python: Path) -> bool:
    """Return whether the environment's interpreter starts, is ours and is new enough."""
    code = "import sys, pip; sys.exit(sys.version_info < (3, 11) or sys.prefix == sys.base_prefix)"
    try:
        done = subprocess.run([python, "-c", code], check=False, capture_output=True)
    except OSError:
        return False
    return done.returncode == 0


def create(path: Path) -> None:
    """Create an empty environment, in place of a broken one if need be."""
    if importlib.util.find_spec("ensurepip") is None:
        sys.exit(
            f"{sys.executable} cannot create virtual environments: its ensurepip is missing.\n"
            "On Debian and Ubuntu: apt install python3-venv"
        )
    say(f"creating {path.name} with Python {sys.version.split()[0]} (once, about a minute)")
    subprocess.run([sys.executable, "-m", "venv", "--clear", path], check=True, cwd=ROOT)


def digest(python: Path, group: str, extras: str) -> str:
    """Return a fingerprint of everything that decides what is installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    parts = [
        str(ROOT),  # the package is installed as a pointer to its sources
        str(python.resolve()),
        group,
        extras,
        CONSTRAINTS.read_text(encoding="utf-8"),
        *(json.dumps(project[name]) for name in ("build-system", "project", "dependency-groups")),
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def install(python: Path, group: str, extras: str) -> None:
    """Install kinform with ``extras``, editable, and the tools of ``group``."""
    say(f"installing kinform[{extras}] and the {group!r} group into {python.parents[1].name}")
    # First pip itself: --group and --build-constraint need a recent one.
    pip_install(python, "--upgrade", "pip")
    builders = ("--build-constraint", str(CONSTRAINTS))
    pip_install(python, *builders, "--editable", f"{ROOT}[{extras}]", "--group", group)


def pip_install(python: Path, *arguments: str) -> None:
    """Run ``pip install`` within the constraints, and end here if it fails: it has said why."""
    options = ("--quiet", "--disable-pip-version-check", "--no-input", "-c", str(CONSTRAINTS))
    command = [str(python), "-m", "pip", "install", *options, *arguments]
    done = subprocess.run(command, check=False, cwd=ROOT, stdin=subprocess.DEVNULL)
    if done.returncode:
        sys.exit(f"{Path(__file__).name}: the step above failed (exit code {done.returncode})")


def say(text: str) -> None:
    """Print a message to stderr."""
    print(f"kinform: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
