"""The session of a case: requests that are recorded, and preparations that are not.

A *quiet* request belongs to the preparations: it must succeed, and only what it says of
identities (versions, uids) is kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import aiohttp

from tests.contract.exchange import Answer, Json, Option
from tests.contract.target import Target
from tests.contract.wire import Wire

__all__ = ["Session"]

POLL_INTERVAL: Final = 0.05
PATIENCE: Final = 20.0


class Session(Wire):
    """The way of a case to a server; what it says is the case's record."""

    def __init__(self, http: aiohttp.ClientSession, target: Target, *, ident: str) -> None:
        super().__init__(http, target, ident=ident)
        self.named: Final[dict[str, str]] = {}

    # Names and versions.

    def unique(self, name: str) -> str:
        """Return a name for something cluster-scoped, which no other case uses.

        Names made of one case sort as what they were made of.
        """
        return f"{self.ident}-{name}"

    def later(self, rv: str, by: int = 1_000_000) -> str:
        """Return a resourceVersion that lies ``by`` after ``rv``: in the future."""
        value = str(int(rv) + by)
        self.named[value] = f"<future-rv+{by}>"
        return value

    # Preparations.

    async def settle(self, path: str, rv: str) -> None:
        """Wait until the server's cache has come to ``rv``: reads of version 0 may be older."""
        await self.look(path, resourceVersion=rv, resourceVersionMatch="NotOlderThan")

    async def make(self, path: str, body: object) -> Json:
        """Create an object, quietly: it must work."""
        return _succeeded(await self.post(path, body, quiet=True))

    async def change(self, path: str, patch: object) -> Json:
        """Merge-patch an object, quietly: it must work."""
        return _succeeded(await self.patch(path, patch, quiet=True))

    async def remove(self, path: str) -> Json:
        """Delete an object, quietly: it must work."""
        return _succeeded(await self.delete(path, quiet=True))

    async def look(self, path: str, **query: Option) -> Json:
        """Get something, quietly: it must work."""
        return _succeeded(await self.get(path, quiet=True, **query))

    async def configmap(self, name: str, *, ns: str = "", **labels: str) -> Json:
        """Make a ConfigMap with these labels in the case's namespace, or in another."""
        body: Json = {"metadata": {"name": name}}
        if labels:
            body["metadata"]["labels"] = labels
        return await self.make(f"/api/v1/namespaces/{ns or '{ns}'}/configmaps", body)

    async def namespace(self, name: str, **labels: str) -> str:
        """Make one more namespace; return its full, unique name."""
        full = self.unique(name)
        await self.make("/api/v1/namespaces", {"metadata": {"name": full, "labels": labels}})
        return full

    async def crd(self, *, plural: str = "widgets", kind: str = "Widget", **spec: object) -> str:
        """Define a namespaced custom resource of a group of this case's own; return the group.

        It is served when this returns, as ``/apis/<group>/v1/…``; ``spec`` overrides the CRD's
        spec, ``versions`` for example.
        """
        group = f"{self.ident}.example.com"
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version = {"name": "v1", "served": True, "storage": True}
        whole: Json = {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
            **spec,
        }
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        await self.make(path, {"metadata": {"name": f"{plural}.{group}"}, "spec": whole})
        for each in whole["versions"]:
            if each["served"]:
                await self._served(f"/apis/{group}/{each['name']}/{plural}")
        return group

    async def _served(self, path: str) -> None:
        """Wait until a custom resource is served for good: the server forgets once or twice."""
        good = 0
        async with asyncio.timeout(PATIENCE):
            while good < 3:
                status = (await self.get(path, quiet=True)).status
                self.exchanges.pop()
                good = good + 1 if status == 200 else 0
                await asyncio.sleep(POLL_INTERVAL)

    async def eventually(
        self, path: str, until: Callable[[Answer], bool], **options: Option
    ) -> Answer:
        """GET until the answer is as wanted; only that answer is kept.

        Raises:
            TimeoutError: it was not for many seconds.
        """
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while True:
            answer = await self.get(path, **options)
            if until(answer):
                return answer
            if asyncio.get_running_loop().time() > deadline:
                raise TimeoutError(f"{path} never became what it was to become")
            self.exchanges.pop()
            await asyncio.sleep(POLL_INTERVAL)

    async def compact(self) -> None:
        """Make the server forget its history; only in a case that ``compacts``."""
        await self.target.compact()

    # The beginning and the end.

    async def open(self) -> None:
        """Make the case's namespace."""
        await self.make("/api/v1/namespaces", {"metadata": {"name": self.ns}})

    async def close(self) -> None:
        """Delete what is cluster-scoped, namespaces last, without waiting for its end."""
        for path in sorted(self.created, key=lambda path: "/namespaces/" in path):
            if self.target.is_ours and "/namespaces/" in path:
                continue
            with suppress(aiohttp.ClientError):
                await self.delete(path, quiet=True)


def _succeeded(answer: Answer) -> Json:
    if answer.status >= 300:
        raise RuntimeError(f"the preparations failed: {answer.status} {answer.content!r}")
    body: Json = answer.body
    return body
