"""Safe reading of small local files: tokens, certificates, kubeconfigs.

Every call here blocks; on the loop go through `kinform.clock.offload`. A kubeconfig may name any
path, so a device, a pipe or a huge file is refused instead of read.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Final, TypeAlias

__all__ = ["MAX_SIZE", "Signature", "is_exposed", "read_small", "reason", "signature"]

MAX_SIZE: Final = 1024 * 1024
"""Size limit of a token or certificate file."""

Signature: TypeAlias = tuple[int, int, int, int] | None
"""Identifies one state of a file; ``None``: the file does not exist."""

# Without O_NONBLOCK, opening a named pipe would wait for its writer.
_FLAGS: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)


def read_small(path: str, *, limit: int = MAX_SIZE) -> bytes:
    """Return the contents of the regular file at ``path``.

    Raises:
        OSError: if it cannot be read, is not a regular file, or is larger than ``limit``.
    """
    try:
        descriptor = os.open(path, _FLAGS)
    except ValueError as exc:  # a NUL in the path
        raise OSError(errno.EINVAL, "not a possible path", path) from exc
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(limit + 1)
    finally:
        os.close(descriptor)
    if len(data) > limit:
        raise OSError(errno.EFBIG, f"larger than {limit} bytes", path)
    return data


def signature(path: str) -> Signature:
    """Return a value that changes when the file at ``path`` is rewritten or replaced.

    Links are followed, so the swap of a mounted Secret's ``..data`` link is seen.
    """
    try:
        found = Path(path).stat()
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_dev


def is_exposed(path: str) -> bool:
    """Return whether other users of the machine may read the file (never on Windows)."""
    try:
        return os.name == "posix" and bool(Path(path).stat().st_mode & 0o044)
    except (OSError, ValueError):
        return False


def reason(error: OSError) -> str:
    """Return why a file could not be read, to follow a colon in a message."""
    return (error.strerror or type(error).__name__).lower()
