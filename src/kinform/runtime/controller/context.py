"""Context: the argument of a reconcile, with access to caches, the client and events."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import secrets
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeVar, cast, final, overload

from kinform import clock
from kinform.cache.informer_group import InformerGroup
from kinform.cache.selection import Kind
from kinform.client import Client
from kinform.errors import UsageError
from kinform.meta import GroupVersionResource, ObjectName
from kinform.objects.object import Object
from kinform.resource import Resource
from kinform.runtime.controller.caches import Caches
from kinform.runtime.events._event_objects import Regarding
from kinform.runtime.events.recorder import EventRecorder
from kinform.runtime.map_functions import AnyObject
from kinform.runtime.server_side_apply import apply
from kinform.runtime.source.kind import KindSource
from kinform.workqueue.causes import Causes

__all__ = ["Context", "Environment"]

T = TypeVar("T")
R = TypeVar("R")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The resources that a manager gives to its controllers."""

    client: Client
    """It refuses to write while this process may not."""
    recorder: EventRecorder
    fencing_number: Callable[[], str]


@final
class Context:
    """The context of one reconcile. Do not use it after the reconcile has returned.

    Reads are from caches and cost no request: `lister`. Writes go through ``client``, which refuses
    them with `LeadershipLost` from the moment on at which another process may lead.
    """

    __slots__ = (
        "_caches",
        "_environment",
        "_give_up",
        "_id",
        "_logger",
        "_loop",
        "attempt",
        "causes",
        "controller",
        "is_cancelled",
        "name",
    )

    def __init__(
        self,
        environment: Environment,
        caches: Caches,
        *,
        controller: str,
        name: ObjectName,
        causes: Causes,
        attempt: int,
    ) -> None:
        self._environment = environment
        self._caches = caches
        self._loop = asyncio.get_running_loop()
        self._give_up: Callable[[], object] | None = None  # what a thread waits for
        self._id = ""
        self._logger: logging.LoggerAdapter[logging.Logger] | None = None
        self.controller: Final = controller
        """The name of the controller."""
        self.name: Final = name
        """The name to reconcile."""
        self.causes: Final = causes
        """Why: what happened since the last reconcile of this name began."""
        self.attempt: Final = attempt
        """The number of failures of this name since its last success; 0 at first."""
        self.is_cancelled: bool = False
        """True after the time-out or a stop. A function in a thread should check it."""

    def __repr__(self) -> str:
        return f"<Context {self.controller} {self.name}>"

    @property
    def client(self) -> Client:
        """The way to the server."""
        return self._environment.client

    @property
    def reconcile_id(self) -> str:
        """An identifier of this reconcile, for logs."""
        if not self._id:
            self._id = secrets.token_hex(4)
        return self._id

    @property
    def logger(self) -> logging.LoggerAdapter[logging.Logger]:
        """A logger, ``kinform.controller.NAME``; records have ``object`` and ``reconcile_id``."""
        if self._logger is None:
            extra = {
                "controller": self.controller,
                "object": self.name.shown,
                "reconcile_id": self.reconcile_id,
            }
            logger = logging.getLogger(f"kinform.controller.{self.controller}")
            self._logger = _Prefixed(logger, extra)
        return self._logger

    @property
    def fencing_number(self) -> str:
        """The resourceVersion of the write that made this process leader; ``""`` without election.

        It only grows from leader to leader: a system that remembers the highest it has seen can
        refuse the writes of an old leader that come late.
        """
        return self._environment.fencing_number()

    # --- reading

    @property
    def caches(self) -> Caches:
        """All caches of the controller."""
        return self._caches

    @overload
    def lister(self, resource: str | GroupVersionResource) -> InformerGroup[Object]: ...
    @overload
    def lister(
        self, resource: str | GroupVersionResource, *, model: type[T]
    ) -> InformerGroup[T]: ...
    @overload
    def lister(self, resource: KindSource[T] | type[T] | Resource[T]) -> InformerGroup[T]: ...
    def lister(
        self, resource: Kind[T] | KindSource[T], *, model: type[T] | None = None
    ) -> InformerGroup[T]:
        """Return the cache of a kind that the controller is for, owns or watches.

        Name it as the controller does, with its model; or give the `KindSource`, where the
        controller has several of one kind. Never any I/O; any thread may read.

        Raises:
            UsageError: the controller has no such cache, or several: the message says which.
        """
        if isinstance(resource, KindSource):
            return cast("InformerGroup[T]", self._caches.of_source(resource))
        return self._caches.found(resource, model)

    async def wait_for_cache(self, written: Object, timeout: float = 10.0) -> None:
        """Wait until the cache contains ``written``, or a newer version of it.

        ``written`` is the server's answer to a write of a kind that the controller is for, owns or
        watches. Later reads are not older than that write. Its event is delivered to the
        controller like any other.

        Raises:
            TimeoutError: it takes longer.
            UsageError: the controller has no cache of its kind.
        """
        await self._caches.wait_for(written, timeout)

    # --- writing and events

    async def apply(
        self, body: AnyObject, *, owner: AnyObject | None = None, force: bool = True
    ) -> Object:
        """Apply an object on the server, with the controller's name as the field manager.

        ``body`` and ``owner`` are dicts, `Object` or models; models of `kinform.clientset` know
        their kind.

        With ``owner`` the object is marked as controlled by the owner: it is deleted with the
        owner, and a controller that ``owns`` its kind is notified of its changes.

        Raises:
            ConflictError: another manager owns a field, and ``force`` is off.
            UsageError: the body has no apiVersion or kind, or cannot be owned by ``owner``.
        """
        return await apply(
            self.client, body, field_manager=self.controller, owner=owner, force=force
        )

    def event(  # noqa: PLR0917 - client-go's order of arguments
        self,
        regarding: Regarding,
        type_: Literal["Normal", "Warning"],
        reason: str,
        message: str,
    ) -> None:
        """Record an Event about an object. Never waits; see `EventRecorder.event`.

        Raises:
            UsageError: the arguments cannot make an event.
        """
        self._environment.recorder.event(regarding, type_, reason, message)

    def wait(self, awaitable: Coroutine[object, object, R]) -> R:
        """Run something asynchronous from a reconcile that is a plain function, in its thread.

        ``ctx.wait(ctx.client.resource("v1/pods").get(name))``

        Raises:
            TimeoutError: the reconcile's time is up.
            UsageError: this is the event loop's own thread; ``await`` it there.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            awaitable.close()
            if clock.current() is not clock.SYSTEM:
                raise UsageError(
                    "under virtual time a plain function runs on the event loop, where nothing "
                    "can be waited for: test it on an ordinary loop, or make it async"
                )
            raise UsageError("wait() is for plain functions in threads; use await here")
        if self.is_cancelled:
            awaitable.close()
            raise TimeoutError(f"the time of {self!r} is up")
        waiting = asyncio.run_coroutine_threadsafe(awaitable, self._loop)
        self._give_up = waiting.cancel
        if _is_cancelled(self):  # meanwhile, by the loop
            waiting.cancel()
        try:
            return waiting.result()
        except concurrent.futures.CancelledError:
            raise TimeoutError(f"the time of {self!r} is up") from None
        finally:
            self._give_up = None

    def cancel(self) -> None:
        """Set `is_cancelled` for a function in a thread, and cancel its call of `wait`."""
        self.is_cancelled = True
        if (give_up := self._give_up) is not None:
            give_up()


@final
class _Prefixed(logging.LoggerAdapter[logging.Logger]):
    """Puts the object's name before each message: most formats do not show extra fields."""

    def process(self, msg: object, kwargs: Mapping[str, object]) -> tuple[str, dict[str, object]]:
        assert self.extra is not None
        extra = {**self.extra, **_mapping(kwargs.get("extra"))}
        name = str(self.extra["object"]).replace("%", "%%")  # arguments may come
        return f"{name}: {msg}", {**kwargs, "extra": extra}


def _is_cancelled(context: Context) -> bool:
    return context.is_cancelled  # as it is by now: another thread may have changed it


def _mapping(extra: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", extra) if isinstance(extra, Mapping) else {}
