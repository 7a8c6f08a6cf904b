"""Run the test suite on every supported Python that is installed.

Looks on PATH and among pyenv's versions. Each Python has an environment of its own
(``.venv-3.12``, ...), kept for the next time. Arguments are passed on to pytest.

With ``--quick`` as the first argument: the quick round only (``make test-quick``), in small
environments (``.venv-quick-3.12``, ...) without the clients of other projects. A defect that shows
on one version of Python alone then fails within minutes.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MINORS = (11, 12, 13, 14, 15)
XDIST = ("-n", "2", "--dist", "loadgroup", "--max-worker-restart", "0")
QUICK = ("-m", "not slow and not e2e", "--ignore", "tests/bench", "--ignore", "tests/peers")


def main() -> None:
    """Test on each Python in turn; fail at the end if any of them did."""
    arguments = sys.argv[1:]
    quick = arguments[:1] == ["--quick"]
    results: dict[str, str] = {}
    for minor in MINORS:
        version = f"3.{minor}"
        python = find(version)
        if python is None:
            results[version] = "not installed"
            continue
        print(f"== Python {version}: {python}", flush=True)
        began = time.monotonic()
        passed = test(version, python, arguments[1:] if quick else arguments, quick=quick)
        seconds = round(time.monotonic() - began)
        results[version] = f"{'passed' if passed else 'FAILED'} in {seconds} s"
    print("\n".join(f"Python {version}: {result}" for version, result in results.items()))
    verdicts = {result.partition(" ")[0] for result in results.values()}
    sys.exit("FAILED" in verdicts or "passed" not in verdicts)


def find(version: str) -> Path | None:
    """Return an interpreter of ``version`` that really starts, if there is one."""
    for python in candidates(version):
        code = "import sys; print('%d.%d' % sys.version_info[:2])"
        done = subprocess.run([python, "-c", code], check=False, capture_output=True, text=True)
        if done.stdout.strip() == version:
            return python
    return None


def candidates(version: str) -> Iterator[Path]:
    """Yield where an interpreter of ``version`` may be, newest patch release first."""
    if on_path := shutil.which(f"python{version}"):
        yield Path(on_path)
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    found = pyenv.glob(f"versions/{version}.*/bin/python{version}")
    yield from sorted(found, key=lambda path: (len(str(path)), path), reverse=True)


def test(version: str, python: Path, arguments: list[str], *, quick: bool) -> bool:
    """Bring that Python's environment up to date and run the suite in it."""
    path, group = (f".venv-quick-{version}", "quick") if quick else (f".venv-{version}", "test")
    extras = ("--extras", "testing,cli,zstd,metrics") if quick else ()
    prepare = [str(python), "tools/environment.py", "--path", path, "--group", group, *extras]
    suite = [f"{path}/bin/python", "-m", "pytest", *XDIST, *(QUICK if quick else ()), *arguments]
    environment = {**os.environ, **({"HYPOTHESIS_PROFILE": "quick"} if quick else {})}
    for command in (prepare, suite):
        if subprocess.run(command, check=False, cwd=ROOT, env=environment).returncode:
            return False
    return True


if __name__ == "__main__":
    main()
