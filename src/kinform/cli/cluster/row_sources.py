"""List-watch sources of the command's informers: rows with the server's cells.

A table is asked for with its objects inside (``includeObject``), in lists and in watches alike.
So one stream brings both, the cells are of exactly the version that the cache shows, and no second
request is needed. The cache is the informer's, as with any other source.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncGenerator, AsyncIterable
from dataclasses import dataclass
from typing import Final, final

import msgspec

from kinform.cache.listwatch import ListWatch
from kinform.cli.cluster.targets import Target
from kinform.cli.options import Filters
from kinform.cli.output.rows import Column, Row, ServerTable, parse_table, plain
from kinform.client import Client
from kinform.errors import DecodeError, NotFoundError
from kinform.meta import Entry
from kinform.objects.object import Object
from kinform.rest.options import ListOptions
from kinform.rest.request import Request
from kinform.rest.results import ListResult, Received, WatchEvent

__all__ = ["TABLE", "Meter", "Wanted", "collection", "name_and", "plain_source", "table_source"]

TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
"""The ``Accept`` header: tables from servers that make them, plain objects from the others."""


@final
@dataclass(slots=True)
class Meter:
    """The number of bytes received."""

    received: int = 0
    """Bytes of JSON."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One kind on one server, and which of its objects."""

    client: Client
    target: Target
    selection: Filters
    metadata_only: bool = False

    @property
    def namespace(self) -> str:
        """The namespace to ask for; none for all, and for kinds that have none."""
        if not self.target.resource.namespaced:
            return ""
        return self.selection.place(self.client.config.namespace)

    @property
    def fields(self) -> str:
        """The field selector, the object's name included."""
        return name_and(self.target.name, self.selection.fields)


def name_and(name: str, fields: str) -> str:
    """Return the field selector for one name and more.

    >>> name_and("web", "status.phase=Running"), name_and("", "")
    ('metadata.name=web,status.phase=Running', '')
    """
    return ",".join(filter(None, (f"metadata.name={name}" if name else "", fields)))


def collection(wanted: Wanted) -> Request:
    """Return a GET of all that is wanted, without parameters."""
    gvr = wanted.target.resource.gvr
    request = wanted.client.rest(gvr.group_version).get()
    return request.namespace(wanted.namespace).resource(gvr.resource)


def plain_source(wanted: Wanted, meter: Meter) -> ListWatch[Row]:
    """Return the source of objects as they are."""
    name = str(wanted.target.resource.gvr)
    resource = wanted.client.resource(name, namespace=wanted.namespace)
    chosen = resource.metadata_only if wanted.metadata_only else resource
    source = chosen.list_watch(label_selector=wanted.selection.labels, field_selector=wanted.fields)

    async def fetch(options: ListOptions) -> ListResult[Row]:
        listed = await source.list(options)
        meter.received += sum(len(obj.raw) for obj in listed)
        entries = [Entry(one.metadata, plain(one.object, _now())) for one in listed.entries()]
        return ListResult(entries, metadata=listed.metadata, unreadable=listed.unreadable)

    @contextlib.asynccontextmanager
    async def watch(options: ListOptions) -> AsyncGenerator[AsyncIterable[Received[Row]]]:
        async with (
            source.watch(options) as events,
            contextlib.aclosing(_plain_rows(events, meter)) as rows,
        ):
            yield rows

    return ListWatch(
        list=fetch,
        watch=watch,
        reconnects=source.source_options.reconnects,
        probed_resource=source.source_options.probed_resource,
    )


async def _plain_rows(
    events: AsyncIterable[Received[Object]], meter: Meter
) -> AsyncGenerator[Received[Row]]:
    async for event in events:
        if isinstance(event, WatchEvent):
            meter.received += len(event.object.raw)
            yield WatchEvent(event.type, plain(event.object, _now()), event.metadata)
        else:
            yield event


def table_source(wanted: Wanted, meter: Meter) -> ListWatch[Row]:
    """Return the source of objects with the server's cells."""
    tables = Tables(wanted, meter)
    # A streamed list ends with a bookmark whose mark stands in a table's row: lists it is.
    return ListWatch(
        list=tables.fetch,
        watch=tables.watch,
        supports_watch_list=False,
        reconnects=wanted.client.rest().reconnects,
        probed_resource=lambda: wanted.target.resource.gvr,
    )


@final
class Tables:
    """Lists and watches one kind as tables.

    Attributes:
        columns: the server's columns, as soon as they are known.
    """

    def __init__(self, wanted: Wanted, meter: Meter) -> None:
        self._wanted = wanted
        self._meter = meter
        self.columns: tuple[Column, ...] = ()

    async def fetch(self, options: ListOptions) -> ListResult[Row]:
        """List once, exactly as ``options`` say."""
        try:
            answer = await self._request(options).do()
        except NotFoundError:
            await self._refuse_if_gone()
            raise
        table = self._read(answer.body)
        entries = [Entry(row.obj.metadata, row) for row in table.rows]
        return ListResult(entries, metadata=table.metadata)

    @contextlib.asynccontextmanager
    async def watch(self, options: ListOptions) -> AsyncGenerator[AsyncIterable[Received[Row]]]:
        """Open a watch."""
        request = self._request(dataclasses.replace(options, watch=True))
        async with (
            request.watch() as events,
            contextlib.aclosing(self._rows(events.with_bookmarks())) as rows,
        ):
            yield rows

    def _request(self, options: ListOptions) -> Request:
        wanted = self._wanted
        options = dataclasses.replace(
            options, label_selector=wanted.selection.labels, field_selector=wanted.fields
        )
        request = collection(wanted).header("Accept", TABLE).params(options)
        request.params({"includeObject": "Metadata" if wanted.metadata_only else "Object"})
        return request.max_retries(0)  # an informer has a back-off of its own

    async def _rows(self, events: AsyncIterable[Received[Object]]) -> AsyncGenerator[Received[Row]]:
        async for event in events:
            if not isinstance(event, WatchEvent):
                yield event
            elif event.object.kind != "Table":
                self._meter.received += len(event.object.raw)
                yield WatchEvent(event.type, plain(event.object, _now()), event.metadata)
            else:
                for row in self._read(event.object.raw).rows:
                    yield WatchEvent(event.type, row, row.obj.metadata)

    def _read(self, raw: bytes) -> ServerTable:
        self._meter.received += len(raw)
        kind = self._wanted.target.resource.kind
        try:
            table = parse_table(raw, columns=self.columns, received=_now(), kind=kind)
        except msgspec.DecodeError as exc:
            raise DecodeError("the server's table cannot be read") from exc
        self.columns = table.columns
        return table

    async def _refuse_if_gone(self) -> None:
        """Distinguish the removal of a kind, which empties the cache, from another 404."""
        await self._wanted.client.find(str(self._wanted.target.resource.gvr), fresh=True)


def _now() -> float:
    return asyncio.get_running_loop().time()
