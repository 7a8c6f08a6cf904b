"""What a reconcile is given beside the name: the way to read, to write and to tell."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeVar, cast, final, overload

from kinform.cache.informer import SharedInformer
from kinform.cache.selection import Kind
from kinform.cache.store import Key
from kinform.client import Client
from kinform.errors import UsageError
from kinform.meta import GroupVersionResource, ObjectName
from kinform.objects import Object
from kinform.resource import Resource
from kinform.runtime.applying import apply
from kinform.runtime.caches import Caches
from kinform.runtime.recorder import EventRecorder
from kinform.selectors import LabelSelectorLike
from kinform.workqueue.causes import Causes

__all__ = ["CacheReader", "Context", "Environment"]

T = TypeVar("T")
R = TypeVar("R")


class CacheReader(Protocol[T]):
    """What a cache shows: a `Lister`, or an `InformerGroup` where there are several namespaces."""

    def get(self, key: Key) -> T | None:
        """Return the object of ``key``, if the cache holds it."""
        ...

    def list(self, label_selector: LabelSelectorLike = None) -> list[T]:
        """Return the objects whose labels meet the selector."""
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What a manager gives to its controllers."""

    client: Client
    """It refuses to write while this process may not."""
    recorder: EventRecorder
    fencing_number: Callable[[], str]


@final
class Context:
    """One reconcile's surroundings. It is of no use after that.

    Reading is from caches and costs no request: `lister`. Writing is by ``client``, whose writes
    are refused with `LeadershipLost` from the moment on at which somebody else may lead.
    """

    __slots__ = (
        "_caches",
        "_environment",
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
        self._id = ""
        self._logger: logging.LoggerAdapter[logging.Logger] | None = None
        self.controller: Final = controller
        """The name of the controller."""
        self.name: Final = name
        """What is to be reconciled."""
        self.causes: Final = causes
        """Why: what happened since the last reconcile of this name began."""
        self.attempt: Final = attempt
        """How often this name has failed since it last succeeded; 0 at first."""
        self.is_cancelled: bool = False
        """Whether time is up or the controller stops. A function in a thread should look at it."""

    def __repr__(self) -> str:
        return f"<Context {self.controller} {self.name}>"

    @property
    def client(self) -> Client:
        """The way to the server."""
        return self._environment.client

    @property
    def reconcile_id(self) -> str:
        """What tells this reconcile from others, for logs."""
        if not self._id:
            self._id = secrets.token_hex(4)
        return self._id

    @property
    def logger(self) -> logging.LoggerAdapter[logging.Logger]:
        """A logger, ``kinform.controller.NAME``; records have ``object`` and ``reconcile_id``."""
        if self._logger is None:
            extra = {
                "controller": self.controller,
                "object": str(self.name),
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

    @overload
    def lister(self, resource: str | GroupVersionResource) -> CacheReader[Object]: ...
    @overload
    def lister(self, resource: type[T] | Resource[T]) -> CacheReader[T]: ...
    @overload
    def lister(self, resource: str | GroupVersionResource, *, model: type[T]) -> CacheReader[T]: ...
    def lister(self, resource: Kind[T], *, model: type[T] | None = None) -> CacheReader[T]:
        """Return the cache of a kind that the controller is for, owns or watches.

        Name it as the controller does, with its model. Never any I/O; any thread may read.

        Raises:
            UsageError: the controller has no such cache; the message says which it has.
        """
        return self._caches.reader(resource, model)

    @overload
    def informers(
        self, resource: str | GroupVersionResource
    ) -> Mapping[str, SharedInformer[Object]]: ...
    @overload
    def informers(self, resource: type[T] | Resource[T]) -> Mapping[str, SharedInformer[T]]: ...
    def informers(self, resource: Kind[T]) -> Mapping[str, SharedInformer[T]]:
        """Return the informers of such a kind by namespace; that of all namespaces is ``""``.

        Raises:
            UsageError: the controller has none.
        """
        return self._caches.informers(resource, None)

    async def wait_for_cache(self, written: Object, timeout: float = 10.0) -> None:
        """Wait until the cache shows what was written, or something newer.

        Give what the server answered to a write of a kind that the controller is for, owns or
        watches. What is read afterwards is not older than that write. The event of it comes to
        the controller as any other.

        Raises:
            TimeoutError: it takes longer.
            UsageError: the controller has no cache of its kind.
        """
        await self._caches.wait_for(written, timeout)

    # --- writing and telling

    async def apply(
        self, body: Mapping[str, object], *, owner: Object | None = None, force: bool = True
    ) -> Object:
        """Apply an object on the server, with the controller's name as the field manager.

        With ``owner`` it is marked as controlled by that object: it goes when the owner does, and
        a controller that ``owns`` its kind hears of its changes.

        Raises:
            ConflictError: another manager owns a field, and ``force`` is off.
            UsageError: the body does not say what it is, or cannot be owned by ``owner``.
        """
        return await apply(
            self.client, body, field_manager=self.controller, owner=owner, force=force
        )

    def event(  # noqa: PLR0917 - client-go's order, which everybody knows
        self,
        regarding: Object,
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
            raise UsageError("wait() is for plain functions in threads; use await here")
        if self.is_cancelled:
            awaitable.close()
            raise TimeoutError(f"the time of {self!r} is up")
        return asyncio.run_coroutine_threadsafe(awaitable, self._loop).result()


@final
class _Prefixed(logging.LoggerAdapter[logging.Logger]):
    """Puts the object's name before each message: most formats do not show extra fields."""

    def process(self, msg: object, kwargs: Mapping[str, object]) -> tuple[str, dict[str, object]]:
        assert self.extra is not None
        extra = {**self.extra, **_mapping(kwargs.get("extra"))}
        return f"{self.extra['object']}: {msg}", {**kwargs, "extra": extra}


def _mapping(extra: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", extra) if isinstance(extra, Mapping) else {}
