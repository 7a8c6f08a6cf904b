"""`FakeListWatch`: objects in memory to list and watch, with the faults of a real server on call.

For tests of anything that reads from a `kinform.cache.ListerWatcher`, without HTTP and without
threads. It behaves as kube-apiserver does: one counter of versions, pages from one snapshot,
selectors, 410 for what it has forgotten, streamed lists.

client-go: tools/cache/testing FakeControllerSource.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Final, Generic, TypeVar, final, overload

from kinform.cache.listwatch import SourceOptions
from kinform.errors import ResourceExpiredError
from kinform.meta import Entry, ListMeta, ObjectName
from kinform.objects.object import Object
from kinform.resource import model_or_object
from kinform.rest.options import ListOptions
from kinform.rest.results import Bookmark, ListResult, Received, Unreadable
from kinform.testing.fakes import _answers
from kinform.testing.fakes._history import FakeHistory, HistoryChange, ObjectLike
from kinform.testing.fakes._watch import FakeRequest, FakeWatch, Verb, VerbFaults, Waiters

__all__ = ["FakeListWatch", "FakeRequest", "FakeWatch", "ObjectLike"]

T = TypeVar("T")


@final
class FakeListWatch(Generic[T]):
    """A `kinform.cache.ListerWatcher` of objects in memory.

    .. code-block:: python

        source = FakeListWatch()
        source.add({"metadata": {"name": "web"}, "data": {"colour": "red"}})
        reflector = Reflector(source, store)

    Objects are given as dicts or as `Object`; or, where ``T`` is nothing that could be made from
    JSON, as an `Entry`. The source fills in kind and namespace where they are missing, and always
    decides on uid and resourceVersion itself. Its first version is 1, as etcd's.

    Changes are plain functions: when one returns, it is in every open watch, and its readers find
    it at their next turn. Lists and watches take a turn of the loop at least. Everything is for
    one event loop and its thread; time is the loop's, so virtual time works.

    Args:
        model: what objects are read as. Any class if only entries are given.
        kind: the kind of objects that do not say theirs.
        api_version: their ``apiVersion``.
        namespace: where objects live that do not say so; ``""``: the kind has no namespaces.
        supports_watch_list: see the attribute.
    """

    supports_watch_list: bool
    """True if lists can be streamed (``send_initial_events``); otherwise such a watch is refused.

    A `kinform.cache.Reflector` reads it when it is made. May be changed, as all attributes
    below: from then on the server is another one.
    """
    has_watch_cache: bool
    """True if lists of any version (``"0"``) ignore their limit and come in one piece."""
    expires_at_start: bool
    """True if a watch from a forgotten version is refused with a status; else with an event."""
    ends_initial_events: bool
    """True if a streamed list ends with its bookmark; without it, readers wait for ever."""
    latency: float
    """Seconds that every list, and the start of every watch, takes."""
    requests: Final[Sequence[FakeRequest]]
    """All requests, in order."""

    @overload
    def __init__(
        self: FakeListWatch[Object],
        *,
        kind: str = ...,
        api_version: str = ...,
        namespace: str = ...,
        supports_watch_list: bool = ...,
    ) -> None: ...
    @overload
    def __init__(
        self,
        model: type[T],
        *,
        kind: str = ...,
        api_version: str = ...,
        namespace: str = ...,
        supports_watch_list: bool = ...,
    ) -> None: ...
    def __init__(
        self,
        model: type[T] | None = None,
        *,
        kind: str = "ConfigMap",
        api_version: str = "v1",
        namespace: str = "default",
        supports_watch_list: bool = True,
    ) -> None:
        self._kind: Final = kind
        self._api_version: Final = api_version
        self._history: Final[FakeHistory[T]] = FakeHistory(
            model_or_object(model), kind=kind, api_version=api_version, namespace=namespace
        )
        self._watches: Final[list[FakeWatch[T]]] = []
        self._list_faults: Final = VerbFaults()
        self._watch_faults: Final = VerbFaults()
        self._waiters: Final = Waiters()
        self._requests: Final[list[FakeRequest]] = []
        self.requests = self._requests
        self.supports_watch_list = supports_watch_list
        self.has_watch_cache = True
        self.expires_at_start = False
        self.ends_initial_events = True
        self.latency = 0.0

    # The current contents.

    @property
    def source_options(self) -> SourceOptions:
        """How a reflector may use this source."""
        return SourceOptions(supports_watch_list=self.supports_watch_list)

    @property
    def resource_version(self) -> str:
        """The version of the newest state."""
        return str(self._history.version)

    @property
    def entries(self) -> Mapping[ObjectName, Entry[T]]:
        """A copy of the newest state, in the order of keys."""
        entries = [revision.entry for revision in self._history.now()]
        return {entry.metadata.key: entry for entry in entries}

    @property
    def open_watches(self) -> int:
        """The number of open watches."""
        return sum(not watch.has_ended for watch in self._watches)

    def __repr__(self) -> str:
        count = len(self._history.now())
        return f"<FakeListWatch of {count} {self._kind} rv={self.resource_version}>"

    # Changes.

    def add(self, obj: ObjectLike[T], *, drop: bool = False) -> Entry[T]:
        """Create an object and return it as the server has it.

        With ``drop`` the change happens, but no watch delivers it: only a list shows it.

        Raises:
            UsageError: there is one of that name, or it has none; the model takes no JSON.
            DecodeError: it does not fit the model.
        """
        return self._publish(self._history.add(obj, visible=not drop))

    def modify(self, obj: ObjectLike[T], *, drop: bool = False) -> Entry[T]:
        """Replace an object and return it as the server has it; ``drop`` as in `add`.

        Raises:
            UsageError: there is none of that name.
            DecodeError: it does not fit the model.
        """
        return self._publish(self._history.modify(obj, visible=not drop))

    def delete(self, obj: str | ObjectName | ObjectLike[T], *, drop: bool = False) -> Entry[T]:
        """Delete an object, given as an object or by its key; ``drop`` as in `add`.

        Returns its last state, with the version of the deletion, as watches deliver it.

        Raises:
            UsageError: no object has that name.
        """
        return self._publish(self._history.delete(obj, visible=not drop))

    def advance(self, count: int = 1) -> None:
        """Increase the version by ``count``, as writes to other kinds do."""
        self._history.version += count

    def compact(self) -> None:
        """Forget what happened up to now: watches from older versions have expired.

        So have exact lists of them, and the pages of lists that began before. Open watches go
        on.
        """
        self._history.compact()

    def restore(self, version: str) -> None:
        """Go back to the state at ``version``, as an etcd that was restored from a backup.

        Versions are used a second time from there on, with other content. Open watches stay
        open, and silent until the versions have passed the last delivered one: `close_watches` if
        the servers were restarted.

        Raises:
            UsageError: that version does not exist yet, or was forgotten.
        """
        self._history.restore(int(version))

    # Watch events other than changes.

    def bookmark(self, *, initial_events_end: bool = False) -> None:
        """Send the newest version to every open watch that allows bookmarks.

        No bookmark is sent otherwise, but for the end of streamed lists.
        """
        bookmark = Bookmark(self.resource_version, initial_events_end)
        for watch in self._watches:
            watch.tell_version(self._history.version, bookmark)

    def send(self, *received: Received[T] | Unreadable) -> None:
        """Send exactly this to every open watch, valid or not: no state changes."""
        for watch in self._watches:
            for one in received:
                watch.push(one)

    def close_watches(self, error: Exception | None = None) -> None:
        """End every open watch: cleanly, or with an error, after the events sent so far."""
        for watch in self._watches:
            watch.end(error)

    def freeze_watches(self) -> None:
        """Let every open watch be silent from now on, as a connection that was lost unnoticed.

        Nothing reaches its reader any more, not even its end.
        """
        for watch in self._watches:
            watch.freeze()

    # Faults.

    def fail_lists(self, *errors: Exception, forever: bool = False) -> None:
        """Raise these errors from the next lists, one each.

        With ``forever`` the last of them is raised again and again, until `heal`.
        """
        self._list_faults.fail(errors, forever=forever)

    def fail_watches(self, *errors: Exception, forever: bool = False) -> None:
        """Refuse the next watches with these errors; otherwise as `fail_lists`."""
        self._watch_faults.fail(errors, forever=forever)

    def hang_lists(self) -> None:
        """Do not answer lists until `heal`."""
        self._list_faults.hang()

    def hang_watches(self) -> None:
        """Do not start watches until `heal`."""
        self._watch_faults.hang()

    def heal(self) -> None:
        """Forget all errors that are due; what hangs is answered."""
        self._list_faults.heal()
        self._watch_faults.heal()

    # Waiting, for tests. None of these polls; put a time-out around them where one is needed.

    async def wait_for_watches(self, count: int = 1) -> None:
        """Wait until at least ``count`` watches are open at once; 0: until none is."""
        await self._waiters.wait_until(
            lambda: self.open_watches >= count if count else not self.open_watches
        )

    async def wait_for_requests(self, count: int = 1, *, verb: Verb | None = None) -> None:
        """Wait until at least ``count`` requests were made, of this verb or of any."""
        await self._waiters.wait_until(
            lambda: sum(verb in {None, request.verb} for request in self._requests) >= count
        )

    async def wait_delivered(self) -> None:
        """Wait until the readers of all open watches have taken everything and ask for more.

        An informer may still have events in its queue, and its handlers may not have run: in
        virtual time, ``await asyncio.sleep(1)`` returns when all have. If no watch is open, this
        returns at once.
        """
        await self._waiters.wait_until(lambda: all(watch.is_idle for watch in self._watches))

    # ListerWatcher.

    async def list(self, options: ListOptions | None = None) -> ListResult[T]:
        """List as a server would.

        Raises:
            ResourceExpiredError: an exact version, or a continue token, that is forgotten.
            ServerTimeoutError: a version that does not exist yet.
            InvalidError: options that contradict each other, or cannot be read.
            Exception: the error given to `fail_lists`.
        """
        options = options or ListOptions()
        self._log("list", options)
        await self._answer(self._list_faults)
        page = _answers.page(self._history, options, has_watch_cache=self.has_watch_cache)
        metadata = ListMeta(
            resource_version=str(page.version),
            continue_token=page.continue_token,
            remaining_item_count=page.remaining,
        )
        return ListResult(
            [revision.entry for revision in page.items],
            metadata=metadata,
            kind=f"{self._kind}List",
            api_version=self._api_version,
        )

    @contextlib.asynccontextmanager
    async def watch(self, options: ListOptions | None = None) -> AsyncGenerator[FakeWatch[T]]:
        """Watch as a server would; `FakeWatch` lists the events it yields.

        Raises:
            ResourceExpiredError: the version is forgotten: while reading, or at the start if
                ``expires_at_start``.
            ServerTimeoutError: while reading: a streamed list not older than a version that
                does not exist yet.
            InvalidError: options that contradict each other, or cannot be read; a streamed list
                from a server without them.
            Exception: the error given to `fail_watches`.
        """
        options = options or ListOptions()
        self._log("watch", options)
        await self._answer(self._watch_faults)
        _answers.check_watch(options, supports_watch_list=self.supports_watch_list)
        start = _answers.start(self._history, options, ends_initial_events=self.ends_initial_events)
        if isinstance(start.error, ResourceExpiredError) and self.expires_at_start:
            raise start.error
        watch = FakeWatch(options, start, on_change=self._waiters.look)
        self._watches.append(watch)
        self._waiters.look()
        try:
            with watch.open():
                yield watch
        finally:
            self._watches.remove(watch)
            self._waiters.look()

    # Details.

    def _publish(self, change: HistoryChange[T]) -> Entry[T]:
        if change.visible:
            for watch in self._watches:
                watch.tell(change)
        return change.entry

    def _log(self, verb: Verb, options: ListOptions) -> None:
        self._requests.append(FakeRequest(verb, options, asyncio.get_running_loop().time()))
        self._waiters.look()

    async def _answer(self, faults: VerbFaults) -> None:
        await asyncio.sleep(self.latency)
        await faults.strike()
