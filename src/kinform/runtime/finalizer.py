"""`Finalizer`: delays the deletion of an object until its external resources are cleaned up.

Rule: a finalizer is only ever written to the object that was meant, and no other finalizer is
touched. Every write is a JSON patch that tests the uid and the whole list of finalizers first, so
the server does all of it or nothing. What it was tested against is read anew if the test fails.
Other changes to the object do not matter: the patch passes between them.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar, final

from kinform.errors import ConflictError, InvalidError, NotFoundError, UsageError
from kinform.meta import ObjectMeta, Status
from kinform.resource_client import ResourceClient
from kinform.runtime.map_functions import described, metadata_of
from kinform.sansio.json_diff import Operation
from kinform.selectors.requirements import key_problem

__all__ = ["Finalizer"]

T = TypeVar("T")

_NEEDED: Final = (
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "deletionTimestamp",
    "finalizers",
)
_TRIES: Final = 5
_PAUSE: Final = 0.01


@final
@dataclass(frozen=True, slots=True)
class Finalizer:
    """One finalizer, by its name: ``example.com/cleanup``.

    .. code-block:: python

        FINALIZER = Finalizer("example.com/bucket")

        async def reconcile(ctx: Context, name: ObjectName) -> None:
            ...
            if await FINALIZER.handle(buckets, bucket, lambda: delete_bucket(bucket)):
                return
            bucket = await FINALIZER.ensure(buckets, bucket)
            ...                                 # from here on there may be something to clean up

    Objects may come from a cache, however old. They are `Object` or a model that declares its
    ``metadata``. Any task may use it; it keeps nothing.

    Raises:
        UsageError: the name is not qualified by a domain. The server asks for that too, for
            built-in kinds; names without are Kubernetes' own.
    """

    name: str

    def __post_init__(self) -> None:
        domain, _, _ = self.name.partition("/")
        if "/" not in self.name or not domain or key_problem(self.name):
            raise UsageError(
                f"{self.name!r} is not a finalizer; expected a name within a domain of yours, "
                "like 'example.com/cleanup'"
            )

    def is_on(self, obj: object) -> bool:
        """Return whether the object has this finalizer.

        Raises:
            UsageError: a model does not declare its finalizers.
        """
        return self.name in metadata_of(obj, "finalizers").finalizers

    async def ensure(self, client: ResourceClient[T], obj: T) -> T:
        """Add the finalizer, unless it is there or the object is being deleted; return the object.

        Check the result: an object that is being deleted may be without it (`is_on`).

        Raises:
            NotFoundError: the object does not exist any more.
            ConflictError: another object has its name by now, or others keep changing finalizers.
            ApiError: what else the server says.
            UsageError: ``obj`` was never on a server, or does not declare its metadata.
        """

        def added(metadata: ObjectMeta) -> Sequence[str]:
            if metadata.deletion_timestamp is not None or self.name in metadata.finalizers:
                return metadata.finalizers
            return [*metadata.finalizers, self.name]

        return await _rewrite(client, obj, added)

    async def remove(self, client: ResourceClient[T], obj: T) -> T | None:
        """Take the finalizer away, unless ``obj`` has none; return the object as it is then.

        If nothing else holds it back, an object that is being deleted is gone with that. None:
        it was gone before, and another object of its name is not touched.

        Raises:
            ConflictError: others keep changing finalizers.
            ApiError: what else the server says.
            UsageError: ``obj`` was never on a server, or does not declare its metadata.
        """

        def removed(metadata: ObjectMeta) -> Sequence[str]:
            return [name for name in metadata.finalizers if name != self.name]

        try:
            return await _rewrite(client, obj, removed)
        except NotFoundError:
            return None
        except ConflictError:
            if await _current(client, _meta(obj)) is None:
                return None
            raise

    async def handle(
        self, client: ResourceClient[T], obj: T, cleanup: Callable[[], Awaitable[object]]
    ) -> bool:
        """Run the clean-up of a deletion; return whether the object is being deleted.

        If it is, and this finalizer is still on it, ``cleanup`` is awaited and then the finalizer
        removed. The server is asked first, because a cache may show a finalizer that was removed
        a moment ago. ``cleanup`` is called again if this process ends before the finalizer is
        removed: it must not mind that its work is done already.

        If ``cleanup`` raises (or is cancelled), that passes and the finalizer stays.

        Raises:
            ConflictError: others keep changing finalizers.
            ApiError: what else the server says.
            UsageError: ``cleanup`` is not async; or ``obj`` does not declare its metadata.
        """
        metadata = _meta(obj)
        if metadata.deletion_timestamp is None:
            return False
        if self.is_on(obj):
            current = await _current(client, metadata)
            if current is not None and self.is_on(current):
                await _awaited(cleanup())
                await self.remove(client, current)
        return True


def _meta(obj: object) -> ObjectMeta:
    metadata = metadata_of(obj, *_NEEDED)
    if not metadata.uid:
        what = described(obj)
        raise UsageError(f"{what} has no uid: finalizers are for objects that are on a server")
    return metadata


async def _current(client: ResourceClient[T], metadata: ObjectMeta) -> T | None:
    """Return the object as the server has it; None if it was deleted."""
    try:
        found = await client.get(metadata.key)
    except NotFoundError:
        return None
    return found if _meta(found).uid == metadata.uid else None


async def _rewrite(
    client: ResourceClient[T], obj: T, change: Callable[[ObjectMeta], Sequence[str]]
) -> T:
    """Write the finalizers that ``change`` gives for those of ``obj``, if they are others.

    Raises:
        NotFoundError: the object does not exist any more.
        ConflictError: another has its name, or others keep writing.
    """
    refusals: list[ConflictError | InvalidError] = []
    while True:
        metadata = _meta(obj)
        before, after = list(metadata.finalizers), list(change(metadata))
        if before == after:
            return obj
        if len(refusals) == _TRIES:
            message = f"the finalizers of {metadata.key} kept changing, {_TRIES} times"
            raise _conflict(message, refusals[-1]) from refusals[-1]
        try:
            return await client.patch(metadata.key, _patch(metadata.uid, before, after))
        except (ConflictError, InvalidError) as exc:
            refusals.append(exc)
            obj = await _after_refusal(client, metadata, exc)
        await asyncio.sleep(_PAUSE)


def _patch(uid: str, before: list[str], after: list[str]) -> list[Operation]:
    return [
        {"op": "test", "path": "/metadata/uid", "value": uid},
        # An empty list is not written; the value of a missing field is null.
        {"op": "test", "path": "/metadata/finalizers", "value": [*before] or None},
        {"op": "add", "path": "/metadata/finalizers", "value": [*after]},
    ]


async def _after_refusal(
    client: ResourceClient[T], metadata: ObjectMeta, refusal: ConflictError | InvalidError
) -> T:
    """Return the object to try it with again.

    A failed test and a faulty object are refused alike. So if it is still the version that the
    patch was made from, the refusal meant something else.
    """
    fresh = await client.get(metadata.key)
    found = _meta(fresh)
    if found.uid != metadata.uid:
        message = (
            f"{metadata.key} with uid {metadata.uid} is gone; another object has its name, "
            f"with uid {found.uid}"
        )
        raise _conflict(message, refusal) from refusal
    if isinstance(refusal, InvalidError) and found.resource_version == metadata.resource_version:
        raise refusal
    return fresh


def _conflict(message: str, refusal: ConflictError | InvalidError) -> ConflictError:
    status = Status(status="Failure", code=409, reason="Conflict", message=message)
    return ConflictError(status, method=refusal.method, url=refusal.url)


async def _awaited(work: object) -> None:
    if not inspect.isawaitable(work):
        raise UsageError(
            f"cleanup answered {type(work).__name__}; it must be an async function, and the "
            "finalizer stays"
        )
    await work
