"""Write ``docs/captures/``: the output of the ``kinform`` command on the embedded demo cluster.

Each capture is one run of ``kinform`` in a new process, on a demo cluster with a fixed seed:
the objects are the same each time; ages and timings are not. Captures contain nothing of the
machine: no home folder, no token, and always port 8001. ``python -m tools.captures
[NAME]...``
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Final

from rich.ansi import AnsiDecoder
from rich.console import Console
from rich.terminal_theme import MONOKAI

__all__ = ["main"]

FOLDER: Final = Path(__file__).resolve().parent.parent / "docs" / "captures"
SEED: Final = "3"
TOKEN: Final = "captures"  # noqa: S105 - of a server that lives as long as one capture
WIDTH: Final = 110
LINES: Final = 26
LIMIT: Final = 60.0
"""Seconds that a capture may take; only a broken one does."""
FRAME: Final = re.compile(r"\r\x1b\[2K(?:\x1b\[1A\x1b\[2K)*")
"""The sequence that rich writes before each frame but the first."""
CONTROL: Final = re.compile(r"\x1b\[\?25[lh]|\r")
SERVING: Final = re.compile(r"serving http://127\.0\.0\.1:(\d+)")
SVG: Final = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{
  font-family: "Fira Code", "DejaVu Sans Mono", Menlo, Consolas, monospace;
  font-size: {char_height}px;
  line-height: {line_height}px;
}}
.{unique_id}-title {{ font-size: 18px; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""As rich's own, but it fetches no fonts from anywhere."""


# --- running the command


def environment(home: str) -> dict[str, str]:
    """Return an environment in which nothing is configured."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    return {
        **kept,
        "HOME": home,
        "PYTHONUTF8": "1",
        "COLUMNS": str(WIDTH),
        "TERM": "xterm-256color",
        "KINFORM_TOKEN": TOKEN,
    }


@contextlib.contextmanager
def serving(env: Mapping[str, str]) -> Generator[str]:
    """Run ``kinform serve --demo`` within the block; give its port."""
    process = subprocess.Popen(
        command("serve", "--demo", "--seed", SEED), env=env, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        found = SERVING.match(process.stdout.readline())
        if found is None:
            sys.exit("kinform serve did not say where it listens")
        yield found[1]
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(LIMIT)
        process.stdout.close()


def command(*args: str) -> list[str]:
    """Return the command line of ``kinform args``."""
    return [sys.executable, "-m", "kinform", *args]


def output(*args: str, env: Mapping[str, str]) -> str:
    """Run ``kinform args`` to its end; return what it wrote to stdout."""
    done = subprocess.run(
        command(*args), check=True, env=env, stdout=subprocess.PIPE, text=True, timeout=LIMIT
    )
    return done.stdout


def on_terminal(*args: str, env: Mapping[str, str]) -> str:
    """Run ``kinform args`` to its end on a terminal; return all that it wrote to it."""
    ours, theirs = pty.openpty()
    try:
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, WIDTH, 0, 0))
        process = subprocess.Popen(
            command(*args), env=env, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE
        )
        with contextlib.ExitStack() as stack:
            stack.callback(process.communicate)
            stack.callback(process.kill)
            return _read(ours, process).decode()
    finally:
        os.close(theirs)
        os.close(ours)


def _read(descriptor: int, process: subprocess.Popen[bytes]) -> bytes:
    read, deadline = b"", time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        has_ended = process.poll() is not None
        if select.select([descriptor], [], [], 0.1)[0]:
            read += os.read(descriptor, 1 << 16)
        elif has_ended:
            return read
    sys.exit(f"still running after {LIMIT:.0f} s: {process.args!r}")


# --- making the files


def pictures(written: str) -> list[str]:
    """Return all pictures that a live table has shown, without what moves the cursor."""
    return [CONTROL.sub("", part).rstrip("\n") for part in FRAME.split(written)]


def liveliest(shown: Sequence[str]) -> str:
    """Return the last picture of a full table in which something stands out in two ways."""
    marks = ("\x1b[1;30;43m", "\x1b[1;32m")
    full = max(len(picture.splitlines()) for picture in shown) - 1
    best = [one for one in shown if len(one.splitlines()) >= full]
    for count in (2, 1, 0):
        for picture in reversed(best):
            body = picture.rpartition("\n")[0]  # the status line is green as well
            if sum(mark in body for mark in marks) >= count:
                return picture
    return shown[-1]


def svg(picture: str, *, title: str) -> str:
    """Return a picture as SVG."""
    console = Console(
        record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="standard"
    )
    for line in AnsiDecoder().decode(picture):
        console.print(line, no_wrap=True, overflow="crop")
    made = console.export_svg(title=title, theme=MONOKAI, code_format=SVG, unique_id="capture")
    return "\n".join(line.rstrip() for line in made.splitlines() if line.strip()) + "\n"


def text(shown: str, *, of: str, lines: int | None = None) -> str:
    """Return the beginning of an output, below the command that made it; long lines are cut."""
    said = [line.rstrip() for line in shown.splitlines()][:lines]
    short = [line if len(line) <= WIDTH else f"{line[: WIDTH - 3]}..." for line in said]
    return "\n".join([f"$ kinform {of}", *short]) + "\n"


def watch(env: Mapping[str, str]) -> str:
    """Show the live table at a moment when much happens."""
    args = ["watch", "pods,deployments", "-A", "--demo", "--seed", SEED, "--for", "20s"]
    return svg(
        liveliest(pictures(on_terminal(*args, env=env))), title="kinform watch pods,deployments -A"
    )


def watch_lines(env: Mapping[str, str]) -> str:
    """Show the lines of a pipe."""
    args = ["watch", "pods", "-n", "shop", "--demo", "--seed", SEED, "--for", "8s"]
    return text(output(*args, env=env), of="watch pods -n shop | cat", lines=24)


def watch_wire(env: Mapping[str, str]) -> str:
    """Show the chunks of a watch."""
    with serving(env) as port:
        at = f"http://127.0.0.1:{port}"
        shown = output(
            "watch", "shops", "-n", "shop", "-o", "wire", "--server", at, "--for", "6s", env=env
        )
    return text(shown.replace(f":{port}/", ":8001/"), of="watch shops -n shop -o wire", lines=10)


def get(env: Mapping[str, str]) -> str:
    """Show what there is, also of a custom resource."""
    with serving(env) as port:
        at = f"http://127.0.0.1:{port}"
        output("watch", "pods", "-A", "--server", at, "--for", "6s", env=env)  # let it begin
        shown = [
            text(output(*words.split(), "--server", at, env=env), of=words)
            for words in ("get deployments -A", "get shops -n shop", "get nodes")
        ]
    return "\n".join(shown)


def serve_help(env: Mapping[str, str]) -> str:
    """Show the help of ``serve``."""
    return text(output("serve", "--help", env=env), of="serve --help")


CAPTURES: Final[Mapping[str, Callable[[Mapping[str, str]], str]]] = {
    "watch.svg": watch,
    "watch-lines.txt": watch_lines,
    "watch-wire.txt": watch_wire,
    "get.txt": get,
    "serve-help.txt": serve_help,
}


def main() -> None:
    """Write all captures, or those whose names contain one of the arguments."""
    wanted = sys.argv[1:]
    chosen = [name for name in CAPTURES if not wanted or any(part in name for part in wanted)]
    if not chosen:
        sys.exit(f"no capture is called that; there are {', '.join(CAPTURES)}")
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        env = environment(home)
        for name in chosen:
            made = CAPTURES[name](env)
            if TOKEN in made.replace("docs/captures", "") or home in made:
                sys.exit(f"{name} would tell a token or a path")
            (FOLDER / name).write_text(made, encoding="utf-8")
            print(f"docs/captures/{name}")


if __name__ == "__main__":
    main()
