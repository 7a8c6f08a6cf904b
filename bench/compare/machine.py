"""A description of the machine that a run was made on."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

__all__ = ["available_memory", "described"]

_CPU: Final = Path("/proc/cpuinfo")
_MEMORY: Final = Path("/proc/meminfo")
_TIMEOUT: Final = 20.0


def described() -> dict[str, str]:
    """Return the processor, the memory, the kernel and the tools."""
    tools = {
        "Go": _said(["go", "version"], r"go(\d[\w.]*)"),
        "Rust": _said(["cargo", "--version"], r"(\d[\w.]*)"),
    }
    return {
        "CPU": _cpu_model(),
        "cores": str(os.cpu_count()),
        "memory": f"{_memory('MemTotal') / 1e9:.0f} GB",
        "kernel": f"{platform.system()} {platform.release()}",
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        **{name: version for name, version in tools.items() if version},
    }


def available_memory() -> int:
    """Return how many bytes can be had without swapping; 0 if the kernel does not tell."""
    return _memory("MemAvailable")


def _cpu_model() -> str:
    if _CPU.exists():
        for line in _CPU.read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def _memory(what: str) -> int:
    if _MEMORY.exists():
        for line in _MEMORY.read_text(encoding="ascii").splitlines():
            name, _, value = line.partition(":")
            if name == what:
                return int(value.split()[0]) * 1024
    return 0


def _said(command: list[str], pattern: str) -> str:
    """Return the version that a tool prints; empty if it is not installed."""
    if shutil.which(command[0]) is None:
        return ""
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_TIMEOUT)
    found = re.search(pattern, done.stdout)
    return found[1] if found else ""
