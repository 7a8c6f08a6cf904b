"""kinform for blocking code: the same names, without ``await``.

.. code-block:: python

    from kinform.sync import connect

    with connect() as client, client.informer("v1/configmaps") as maps:
        maps.wait_synced(30)
        print(len(maps.lister.list()))

Everything happens on one event loop, in a thread that is started when it is first needed. What is
read and written are the same objects, events and errors as with asyncio. Names are loaded when
they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kinform._lazy import lazy_exports

if TYPE_CHECKING:
    from kinform.sync.client import Client, connect
    from kinform.sync.factory import SharedInformerFactory
    from kinform.sync.handlers import Registration
    from kinform.sync.informer_group import InformerGroup
    from kinform.sync.resource_client import ResourceClient
    from kinform.sync.runner import run, wait_for_cache_sync
    from kinform.sync.shared_informer import SharedInformer
    from kinform.sync.streams import EventStream, LogStream, Watch

__all__ = [
    "Client",
    "EventStream",
    "InformerGroup",
    "LogStream",
    "Registration",
    "ResourceClient",
    "SharedInformer",
    "SharedInformerFactory",
    "Watch",
    "connect",
    "run",
    "wait_for_cache_sync",
]

_HOMES: Final[dict[str, str]] = {
    "Client": "kinform.sync.client",
    "EventStream": "kinform.sync.streams",
    "InformerGroup": "kinform.sync.informer_group",
    "LogStream": "kinform.sync.streams",
    "Registration": "kinform.sync.handlers",
    "ResourceClient": "kinform.sync.resource_client",
    "SharedInformer": "kinform.sync.shared_informer",
    "SharedInformerFactory": "kinform.sync.factory",
    "Watch": "kinform.sync.streams",
    "connect": "kinform.sync.client",
    "run": "kinform.sync.runner",
    "wait_for_cache_sync": "kinform.sync.runner",
}
"""The module that defines each name."""


if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
