"""The data file: every object in its last version, in SQLite. Everything here blocks.

One file, one server: the file is locked for as long as it is open. What is committed outlives the
server's end, and the machine's, however sudden.

Rule 1: a file that is not ours, or that is broken, is refused and stays as it is.
Rule 2: after an unexpected end the file has all of a batch, or nothing of it.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import stat
import threading
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final, NamedTuple, Self, final

import msgspec

from kinform.apiserver.storage.versioned_store import Stored
from kinform.errors import UsageError
from kinform.version import __version__

__all__ = ["FORMAT", "Database", "StoredRow", "WriteBatch"]

log: Final = logging.getLogger("kinform.apiserver")

FORMAT: Final = 1
"""The version of the file's layout. Another one cannot be read."""
_APPLICATION: Final = 0x6B696E66
"""The application id in SQLite's header: ``kinf``."""
_MODE: Final = 0o600  # there may be Secrets in it
_BUSY: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_SCHEMA: Final = (
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {FORMAT}",
    "CREATE TABLE server (revision INTEGER NOT NULL, kinform TEXT NOT NULL)",
    """
    CREATE TABLE objects (
        resource TEXT NOT NULL, key TEXT NOT NULL, revision INTEGER NOT NULL,
        raw BLOB NOT NULL, selected BLOB NOT NULL, PRIMARY KEY (resource, key)
    )
    """,
)
_PUT: Final = "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?)"
_DROP: Final = "DELETE FROM objects WHERE resource = ? AND key = ?"


class StoredRow(NamedTuple):
    """One object and the table that it is in."""

    resource: str
    stored: Stored


@final
class WriteBatch(msgspec.Struct, frozen=True):
    """Changes that become durable together."""

    revision: int
    """The counter's value after them."""
    changes: Mapping[tuple[str, str], Stored | None]
    """The new states by resource and key; None: it is gone."""
    is_everything: bool = False
    """It is the whole contents: the previous rows of the file are dropped."""


@final
class _Selected(msgspec.Struct, frozen=True, array_like=True):
    """Labels, fields, uid and owners, see `Stored`."""

    labels: dict[str, str]
    fields: dict[str, str]
    uid: str
    owners: tuple[str, ...]


@final
class _Metadata(msgspec.Struct, frozen=True):
    resource_version: str = msgspec.field(name="resourceVersion")


@final
class _Object(msgspec.Struct, frozen=True):
    metadata: _Metadata


_encode: Final = msgspec.json.Encoder().encode
_selected: Final = msgspec.json.Decoder(_Selected).decode
_object: Final = msgspec.json.Decoder(_Object).decode


@final
class Database:
    """An open data file. It may be used from any thread, by one at a time."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._lock = threading.Lock()

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open a data file, or create it, and lock it.

        A file that other users can read or write is opened with a warning, and keeps its mode.

        Raises:
            UsageError: it cannot be used. It was not changed.
        """
        file = Path(path).absolute()
        if not _created(file):
            _inspect(file)
        with _explained(file):
            connection = _connect(file, "rw")
            try:
                _prepare(connection)
                # Left over by `_inspect`. The file is locked, so no other process uses it.
                file.with_name(f"{file.name}-shm").unlink(missing_ok=True)
            except BaseException:
                connection.close()
                raise
        _warn_of_others(file)
        return cls(file, connection)

    def load(self) -> tuple[int, list[StoredRow]]:
        """Return the revision counter and all objects, in the order of resource and key.

        Raises:
            UsageError: the file is broken.
        """
        with self._lock, _explained(self.path):
            (revision,) = self._connection.execute("SELECT revision FROM server").fetchone()
            return revision, list(_rows(self._connection, revision))

    def commit(self, batch: WriteBatch) -> None:
        """Make a batch durable, all of it or nothing.

        Raises:
            sqlite3.Error: it could not be; it can be tried again.
        """
        gone = [place for place, stored in batch.changes.items() if stored is None]
        kept = (
            (resource, stored.key, stored.revision, stored.raw, _selection(stored))
            for (resource, _), stored in batch.changes.items()
            if stored is not None
        )
        connection = self._connection
        with self._lock, _transaction(connection):
            if batch.is_everything:
                connection.execute("DELETE FROM objects")
            else:
                connection.executemany(_DROP, gone)
            connection.executemany(_PUT, kept)
            values = (batch.revision, __version__)
            connection.execute("UPDATE server SET revision = ?, kinform = ?", values)

    def close(self) -> None:
        """Unlock the file. Nothing can be done with it afterwards."""
        with self._lock:
            self._connection.close()


def _created(file: Path) -> bool:
    """Create the file if there is none; tell whether it is empty.

    An existing file is never opened here: to close it again would take away the lock of another
    server in this process, as POSIX locks belong to processes.
    """
    try:
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, _MODE))
    except FileExistsError:
        pass
    except OSError as exc:
        raise _refused(file, f"cannot be created: {_reason(exc)}") from exc
    else:
        return True
    try:
        found = file.stat()
    except OSError as exc:
        raise _refused(file, f"cannot be read: {_reason(exc)}") from exc
    if stat.S_ISDIR(found.st_mode):
        raise _refused(file, "is a directory; name a file in it")
    if not stat.S_ISREG(found.st_mode):
        raise _refused(file, "is not a regular file")
    effective = os.access in os.supports_effective_ids
    if not os.access(file, os.R_OK | os.W_OK, effective_ids=effective):
        raise _refused(file, "may not be read and written by this user; change its permissions")
    return not found.st_size


def _warn_of_others(file: Path) -> None:
    if os.name == "posix" and file.stat().st_mode & 0o066:
        message = "the data file %r can be read or written by other users; chmod it to 600"
        log.warning(message, str(file))


def _inspect(file: Path) -> None:
    """Validate an existing file, through a connection that cannot change it."""
    with _explained(file), closing(_connect(file, "ro")) as connection:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if application != _APPLICATION:
            raise _refused(file, "is a SQLite database, but not one of kinform's")
        if version != FORMAT:
            (writer,) = connection.execute("SELECT kinform FROM server").fetchone()
            why = f"has format {version}, written by kinform {writer}; this kinform needs {FORMAT}"
            raise _refused(file, f"{why}: use that version")
        (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise _broken(file, " ".join(str(verdict).split()))
        (revision,) = connection.execute("SELECT revision FROM server").fetchone()
        for _ in _rows(connection, revision):
            pass


def _connect(file: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{file.as_uri()}?mode={mode}",
        uri=True,
        timeout=0,  # if another process has the file, fail at once
        isolation_level=None,  # transactions are begun by hand
        check_same_thread=False,
    )
    # The schema of a file from elsewhere must not run code.
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def _prepare(connection: sqlite3.Connection) -> None:
    """Lock the file, and lay it out if it is empty."""
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")  # from the first transaction on
    with _transaction(connection):
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if not tables:
            for statement in _SCHEMA:
                connection.execute(statement)
            connection.execute("INSERT INTO server VALUES (1, ?)", (__version__,))
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Generator[None]:
    connection.execute("BEGIN EXCLUSIVE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _rows(connection: sqlite3.Connection, counter: int) -> Iterator[StoredRow]:
    """Read and check all objects."""
    found: Iterable[tuple[str, str, int, bytes, bytes]] = connection.execute(
        "SELECT resource, key, revision, raw, selected FROM objects ORDER BY resource, key"
    )
    for resource, key, revision, raw, selected in found:
        about = _selected(selected)
        version = _object(raw).metadata.resource_version
        if version != str(revision) or not 0 < revision <= counter:
            raise ValueError(f"{resource} {key} in revision {revision} is {version} of {counter}")
        owners = tuple(about.owners)
        yield StoredRow(
            resource, Stored(key, raw, revision, about.labels, about.fields, about.uid, owners)
        )


def _selection(stored: Stored) -> bytes:
    labels, fields = dict(stored.labels), dict(stored.fields)
    return _encode(_Selected(labels, fields, stored.uid, stored.owners))


@contextmanager
def _explained(file: Path) -> Generator[None]:
    """Turn what SQLite and the rows complain of into what a user can do about it."""
    try:
        yield
    except sqlite3.Error as exc:
        code = getattr(exc, "sqlite_errorcode", 0) & 0xFF  # the rest of it is detail
        if code in _BUSY:
            why = "is in use by another server; stop that one, or name another file"
            raise _refused(file, why) from exc
        if code == sqlite3.SQLITE_NOTADB:
            why = "is not a SQLite database; name another file"
            raise _refused(file, why) from exc
        if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR}:
            raise _broken(file, str(exc)) from exc
        raise _refused(file, f"cannot be opened: {exc}") from exc
    except (ValueError, TypeError, msgspec.MsgspecError) as exc:
        raise _broken(file, str(exc)) from exc


def _broken(file: Path, why: str) -> UsageError:
    return _refused(file, f"is broken ({why}); restore it from a backup, or name another file")


def _refused(file: Path, why: str) -> UsageError:
    return UsageError(f"the data file {str(file)!r} {why}")


def _reason(exc: OSError) -> str:
    return (exc.strerror or str(exc)).lower()
