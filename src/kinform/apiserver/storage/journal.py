"""The journal: saves the writes in memory to the data file, in another thread.

Writes do not wait for each other. All that is written while one batch is being committed is the
next batch, so sixteen clients pay for one commit, not for sixteen.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
from typing import Final, final

from kinform.apiserver.storage.sqlite import Database, WriteBatch
from kinform.apiserver.storage.versioned_store import Change, Storage, Stored, Unsaved
from kinform.clock import offload
from kinform.tasks import ended, finish

__all__ = ["Journal"]

log: Final = logging.getLogger("kinform.apiserver")


@final
class Journal:
    """Makes the writes of one storage durable. To be opened, and closed at the end.

    A commit that fails is tried again with the next one; until one succeeds, `saved` raises.
    """

    def __init__(self, storage: Storage, database: Database) -> None:
        self._storage = storage
        self._database = database
        # Invariant: what the file does not have, unless it is on its way there.
        self._pending: dict[tuple[str, str], Stored | None] = {}
        self._is_everything = False
        self._is_closing = False
        self._work = asyncio.Event()
        loop = asyncio.get_running_loop()
        # What became of the batch on its way (None if there is none), and of the next one.
        self._now: asyncio.Future[Exception | None] | None = None
        self._next: asyncio.Future[Exception | None] = loop.create_future()
        self._task = loop.create_task(self._run(), name="kinform journal")

    @classmethod
    async def open(cls, path: str | os.PathLike[str], storage: Storage) -> Journal:
        """Fill an empty storage from a file, and carry there what is written from now on.

        Cancelled, it leaves the file to others.

        Raises:
            UsageError: the file cannot be used. It was not changed.
        """
        database = await _opened(path)
        try:
            revision, rows = await offload(database.load)
        except BaseException:
            await finish(offload(database.close))
            raise
        storage.load(revision, rows)
        journal = cls(storage, database)
        storage.journal = journal
        return journal

    async def close(self) -> None:
        """Commit what is left and unlock the file."""
        self._is_closing = True
        self._work.set()
        await asyncio.wait([self._task])

    # --- what the storage calls

    def note(self, resource: str, change: Change) -> None:
        """Take a change over."""
        self._pending[resource, change.key] = None if change.is_delete else change.new
        self._work.set()

    def reset(self) -> None:
        """Save the whole storage again: it was restored."""
        self._is_everything = True
        self._work.set()

    async def saved(self) -> None:
        """Wait until all that was written before this call is durable.

        Raises:
            Unsaved: it could not be made so.
        """
        if self._pending or self._is_everything:
            self._work.set()  # also after a failure: perhaps it works now
            outcome = self._next
        elif self._now is not None:
            outcome = self._now
        else:
            return
        await asyncio.wait([outcome])  # cancelling this wait does not touch the outcome
        if (problem := outcome.result()) is not None:
            raise Unsaved(f"cannot write to {str(self._database.path)!r}: {problem}") from problem

    # --- the task

    async def _run(self) -> None:
        try:
            while not self._is_closing:
                await self._work.wait()
                await self._commit()
            await self._commit()  # what came during the last one
        finally:
            self._next.set_result(Unsaved("the server has stopped"))  # for later callers of `saved`
            await offload(self._database.close)

    async def _commit(self) -> None:
        self._work.clear()
        if not self._pending and not self._is_everything:
            return
        batch = self._batch()
        loop = asyncio.get_running_loop()
        self._now, self._next = self._next, loop.create_future()
        problem: Exception | None = Unsaved("the server has stopped")
        try:
            await offload(self._database.commit, batch)
            problem = None
        except sqlite3.Error as exc:
            problem = exc
            log.error(  # noqa: TRY400 - the message has the reason
                "cannot write to the data file %s: %s",
                self._database.path,
                exc,
                extra={"file": str(self._database.path), "error": str(exc)},
            )
        finally:
            if problem is not None:
                self._pending = {**batch.changes, **self._pending}
                self._is_everything |= batch.is_everything
            outcome, self._now = self._now, None
            outcome.set_result(problem)

    def _batch(self) -> WriteBatch:
        """Return all that waits, of this moment."""
        changes, everything = self._pending, self._is_everything
        self._pending, self._is_everything = {}, False
        if everything:
            changes = {
                (resource, stored.key): stored
                for resource in self._storage.resources()
                for stored in self._storage.table(resource).now()
            }
        return WriteBatch(self._storage.revision, changes, everything)


async def _opened(path: str | os.PathLike[str]) -> Database:
    """Open a data file; if cancelled, wait until it is open, and close it."""
    opening = asyncio.get_running_loop().create_task(offload(Database.open, path))
    try:
        await ended(opening)
    except asyncio.CancelledError:
        if not opening.cancelled() and opening.exception() is None:
            await finish(offload(opening.result().close))
        raise
    return opening.result()
