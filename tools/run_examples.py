"""Run the programs in ``examples/`` and the code in the guides, on one control plane.

Each program gets ``KUBECONFIG`` and a minute, and must end by itself with exit code 0. One that
needs arguments for that names them in a line of its own, ``# ci: --count 3``. Of a Markdown page
all ``python`` blocks are run, as one program; a block that only shows something is fenced as
``{code-block} python`` instead. Arguments choose programs by a part of their path.
"""

import os
import re
import shlex
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

from kinform.testing import ControlPlane, ControlPlaneUnavailable

ROOT = Path(__file__).resolve().parent.parent
ARGUMENTS = re.compile(r"^# ci:(.*)$", re.MULTILINE)
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TIMEOUT = 60.0


def main() -> None:
    """Run them all, and fail at the end if one did."""
    chosen = [command for command in commands() if matches(command[1], sys.argv[1:])]
    if not chosen:
        sys.exit("no example has that in its path")
    control_plane = ControlPlane()
    try:
        control_plane.start()
    except ControlPlaneUnavailable as error:
        required = os.environ.get("KINFORM_REQUIRE_CONTROL_PLANE") == "1"
        print(f"examples not run: {error}", file=sys.stderr)
        sys.exit(required)
    try:
        env = {**os.environ, "KUBECONFIG": str(control_plane.kubeconfig_path)}
        failed = [command[1] for command in chosen if not run(command, env)]
    finally:
        control_plane.close()
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


def commands() -> Iterator[list[str]]:
    """Yield the command of every program: the interpreter, a path, arguments."""
    for path in sorted(ROOT.glob("examples/*.py")):
        found = ARGUMENTS.search(path.read_text(encoding="utf-8"))
        arguments = shlex.split(found[1]) if found else []
        yield [sys.executable, str(path.relative_to(ROOT)), *arguments]
    for page in [ROOT / "README.md", *sorted(ROOT.glob("docs/guides/*.md"))]:
        if code := program_of(page):
            program = ROOT / "build" / "examples" / f"{page.stem.lower().replace('-', '_')}.py"
            program.parent.mkdir(parents=True, exist_ok=True)
            program.write_text(code, encoding="utf-8")
            yield [sys.executable, str(program.relative_to(ROOT))]


def program_of(page: Path) -> str:
    """Return the ``python`` blocks of a page as one program; they may ``await`` at top level."""
    blocks = [textwrap.dedent(block) for block in BLOCK.findall(page.read_text(encoding="utf-8"))]
    code = "\n".join(block for block in blocks if not block.lstrip().startswith(">>>"))
    if not code:
        return ""
    flag = "ast.PyCF_ALLOW_TOP_LEVEL_AWAIT"
    return textwrap.dedent(f"""\
        # The code of {page.relative_to(ROOT)}; made by tools/run_examples.py.
        import ast, asyncio, inspect

        CODE = {code!r}
        result = eval(compile(CODE, {page.name!r}, "exec", flags={flag}), globals())
        if inspect.iscoroutine(result):
            asyncio.run(result)
    """)


def matches(path: str, wanted: list[str]) -> bool:
    """Return whether ``path`` was selected; without a selection, all are."""
    return not wanted or any(part in path for part in wanted)


def run(command: list[str], env: dict[str, str]) -> bool:
    """Run one program, and show what it said if it failed."""
    began = time.monotonic()
    try:
        done = subprocess.run(
            command,
            check=False,
            cwd=ROOT,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=TIMEOUT,
        )
        said, verdict = done.stdout, f"exit code {done.returncode}" if done.returncode else "ok"
    except subprocess.TimeoutExpired as error:
        said, verdict = error.stdout or b"", f"still running after {TIMEOUT:.0f} s"
    print(
        f"{verdict:>12}  {time.monotonic() - began:5.1f} s  {shlex.join(command[1:])}", flush=True
    )
    if verdict != "ok":
        print(textwrap.indent(said.decode(errors="replace"), "    "), flush=True)
    return verdict == "ok"


if __name__ == "__main__":
    main()
