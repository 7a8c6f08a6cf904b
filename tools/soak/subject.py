"""The process under test: informers, handlers and a controller, as a program would have them.

It reads an `Address` from its standard input, then answers each line; it ends when the input ends.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from pathlib import Path
from typing import Final, final

import msgspec

import kinform
from kinform import Added, Deleted, Object, ReflectorOptions, SharedInformer, Updated
from kinform.errors import KinformError, ResourceVersionRegressed
from kinform.rest.config import TlsConfig
from kinform.sansio.backoff import Backoff
from kinform.tasks import background
from tools.soak.messages import Address, Said, Sample, State

__all__ = ["SELECTED", "Handler", "main", "state_of"]

KIND: Final = "v1/configmaps"
SELECTED: Final = "soak=chosen"
OPTIONS: Final = ReflectorOptions(
    watch_timeout=20, idle_timeout=45, probe_period=15, backoff=Backoff(cap=4.0)
)
"""A day's reconnects in an hour."""
_MOST_COMPLAINTS: Final = 100
_STATM: Final = Path("/proc/self/statm")
_DESCRIPTORS: Final = Path("/proc/self/fd")


def state_of(obj: Object) -> str:
    """Return what makes one state of one object different from all others."""
    return f"{obj.uid}@{obj.resource_version}"


@final
class Handler:
    """Builds its own state from notifications, and records inconsistent ones."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.believed: dict[str, str] = {}
        self.complaints: list[str] = []
        self.events = 0

    def listen(self, informer: SharedInformer[Object], *, pause: float = 0.0) -> None:
        """Add itself to an informer; take ``pause`` seconds for each event."""
        if not pause:
            informer.add_event_handler(
                on_add=self.on_add, on_update=self.on_update, on_delete=self.on_delete
            )
            return

        async def slowly(event: Added[Object] | Updated[Object] | Deleted[Object]) -> None:
            await asyncio.sleep(pause)
            match event:
                case Added():
                    self.on_add(event)
                case Updated():
                    self.on_update(event)
                case Deleted():
                    self.on_delete(event)

        informer.add_event_handler(on_add=slowly, on_update=slowly, on_delete=slowly)

    def on_add(self, event: Added[Object]) -> None:
        """Take note of an object that was not there."""
        self.events += 1
        if event.obj.name in self.believed:
            self._complain(f"{event.obj.name} was added, and had been before")
        self.believed[event.obj.name] = state_of(event.obj)

    def on_update(self, event: Updated[Object]) -> None:
        """Take note of another state of the same object."""
        self.events += 1
        if self.believed.get(event.old.name) != state_of(event.old):
            self._complain(f"{event.old.name} was updated from a state that was never delivered")
        if event.old.uid != event.new.uid:
            self._complain(f"{event.old.name} was updated to another object")
        self.believed[event.new.name] = state_of(event.new)

    def on_delete(self, event: Deleted[Object]) -> None:
        """Take note that an object is gone."""
        self.events += 1
        gone = self.believed.pop(event.obj.name, "")
        if gone.partition("@")[0] != event.obj.uid:
            self._complain(f"{event.obj.name} was deleted, and was not there")

    def regressed(self, error: KinformError) -> None:
        """Complain of a server that went back: this one never does."""
        if isinstance(error, ResourceVersionRegressed):
            self._complain(str(error))

    def _complain(self, text: str) -> None:
        if len(self.complaints) < _MOST_COMPLAINTS:
            self.complaints.append(f"{self._name}: {text}")


@final
class Subject:
    """All that is under test, and what it believes."""

    def __init__(self, client: kinform.Client, namespace: str) -> None:
        self._quick, self._slow, self._few = (Handler(name) for name in ("quick", "slow", "few"))
        self.whole = client.informer(
            KIND, namespace=namespace, options=OPTIONS, watch_error_handler=self._quick.regressed
        )
        self.chosen = client.informer(
            KIND, namespace=namespace, label_selector=SELECTED, options=OPTIONS
        )
        self._quick.listen(self.whole)
        self._slow.listen(self.whole, pause=0.002)
        self._few.listen(self.chosen)
        self._reconciled: dict[str, str] = {}
        self.manager = kinform.Manager(
            client, signals=False, namespaces=namespace, options=OPTIONS, grace=5
        )
        self.manager.add(kinform.Controller("soak", self._reconcile, for_=KIND, workers=4))

    async def _reconcile(self, ctx: kinform.Context, name: kinform.ObjectName) -> None:
        await asyncio.sleep(0)
        found = ctx.lister(KIND).get(name)
        if found is None:
            self._reconciled.pop(name.name, None)
        else:
            self._reconciled[name.name] = state_of(found)

    @property
    def _handlers(self) -> tuple[Handler, ...]:
        return self._quick, self._slow, self._few

    def sample(self, at: float) -> Sample:
        """Return how this process stands."""
        resident = int(_STATM.read_text(encoding="ascii").split()[1])
        informers = (self.whole, self.chosen)
        return Sample(
            at=round(at, 2),
            rss=resident * os.sysconf("SC_PAGE_SIZE"),
            tasks=len(asyncio.all_tasks()),
            descriptors=len(list(_DESCRIPTORS.iterdir())),
            events=sum(one.events for one in self._handlers),
            failures=sum(one.statistics().reflector.failures for one in informers),
        )

    def state(self) -> State:
        """Return what every part of it believes."""
        views = {
            "cache": {one.name: state_of(one) for one in self.whole.lister.list()},
            "handler": self._quick.believed,
            "slow handler": self._slow.believed,
            "reconciled": self._reconciled,
            "chosen cache": {one.name: state_of(one) for one in self.chosen.lister.list()},
            "chosen handler": self._few.believed,
        }
        complaints = [text for one in self._handlers for text in one.complaints]
        return State(views=views, complaints=complaints)


def _connect(address: Address) -> kinform.Client:
    tls = TlsConfig(ca_data=address.ca, cert_data=address.cert, key_data=address.key)
    return kinform.connect(kinform.Config(server=address.url, token=address.token, tls=tls))


def _say(what: Said) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(what) + b"\n")
    sys.stdout.buffer.flush()


async def _sampled(subject: Subject) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    while True:
        _say(subject.sample(loop.time() - began))
        await asyncio.sleep(1)


async def main() -> None:
    """Run until the standard input ends."""
    logging.getLogger("kinform").setLevel(logging.ERROR)  # failures are what this is about
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    address = msgspec.json.decode(await reader.readline(), type=Address)
    async with _connect(address) as client:
        subject = Subject(client, address.namespace)
        async with subject.whole, subject.chosen, subject.manager:
            await subject.manager.start()
            async with background(_sampled(subject)):
                while await reader.readline():
                    _say(subject.state())


if __name__ == "__main__":
    asyncio.run(main())
