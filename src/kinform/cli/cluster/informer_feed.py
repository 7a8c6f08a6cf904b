"""A feed: one informer of the command, its changes in one type, and its state."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

from kinform.cache.lister import Lister
from kinform.cache.processor.event_stream import EventStream
from kinform.cache.processor.events import Added, Deleted, Event, Updated
from kinform.cache.shared_informer import SharedInformer
from kinform.cli.cluster.row_sources import Meter, Wanted, plain_source, table_source
from kinform.cli.cluster.targets import Target
from kinform.cli.output.rows import Row
from kinform.errors import ApiError, KinformError, UnknownResourceError
from kinform.meta import ObjectName

__all__ = ["InformerFeed", "RowChange", "change_of"]


@final
@dataclass(frozen=True, slots=True)
class RowChange:
    """One object came, changed or went."""

    type: str
    """ADDED, MODIFIED or DELETED, as on the wire."""
    target: Target
    row: Row
    old: Row | None = None
    initial: bool = False

    @property
    def key(self) -> ObjectName:
        """The key of the object within its kind."""
        return self.row.obj.key


def change_of(event: Event[Row], target: Target) -> RowChange:
    """Return an informer's event as a change."""
    match event:
        case Added(_, row, initial):
            return RowChange("ADDED", target, row, initial=initial)
        case Updated(_, old, new):
            return RowChange("MODIFIED", target, new, old)
        case Deleted(_, row):
            return RowChange("DELETED", target, row, row)


@final
class InformerFeed:
    """Follows one kind.

    Attributes:
        informer: what keeps the objects.
        fatal: what makes going on pointless: the server refuses what we ask for.
    """

    def __init__(self, wanted: Wanted, meter: Meter, *, as_table: bool) -> None:
        source = table_source(wanted, meter) if as_table else plain_source(wanted, meter)
        self.wanted: Final = wanted
        self.target: Final = wanted.target
        self.informer: Final[SharedInformer[Row]] = SharedInformer(
            source, name=wanted.target.label, watch_error_handler=self._failed
        )
        self.fatal: KinformError | None = None
        self._last_error: KinformError | None = None
        self._stream: EventStream[Row] | None = None

    @property
    def trouble(self) -> KinformError | None:
        """The current connection error; None while the feed is connected."""
        in_a_row = self.informer.statistics().reflector.failures_in_a_row
        return self._last_error if in_a_row else None

    @property
    def is_told(self) -> bool:
        """All initial objects were delivered."""
        return self._stream is not None and self._stream.has_synced

    async def follow(self, tell: Callable[[RowChange], object]) -> None:
        """Deliver every change until the informer stops."""
        await self.informer.wait_synced()
        async with contextlib.aclosing(self.informer.events()) as events:
            self._stream = events
            async for event in events:
                tell(change_of(event, self.target))

    async def equals_fresh_list(self, tries: int = 5) -> str | None:
        """Return the version at which the cache equals a fresh list; None if it never does."""
        resource = self.wanted.client.resource(
            str(self.target.resource.gvr), namespace=self.wanted.namespace
        )
        for _ in range(tries):
            listed = await resource.metadata_only.list(
                label_selector=self.wanted.selection.labels, field_selector=self.wanted.fields
            )
            fresh = {obj.uid: obj.resource_version for obj in listed}

            def is_fresh(cache: Lister[Row], fresh: dict[str, str] = fresh) -> bool:
                return fresh == {row.obj.uid: row.obj.resource_version for row in cache.list()}

            with contextlib.suppress(TimeoutError):
                await self.informer.wait_for(is_fresh, 1.0)
                return listed.resource_version
        return None

    def _failed(self, error: KinformError) -> None:
        self._last_error = error
        is_refusal = isinstance(error, ApiError) and error.code in {400, 401, 403, 404, 405, 422}
        if not self.informer.has_synced and (is_refusal or isinstance(error, UnknownResourceError)):
            self.fatal = error
