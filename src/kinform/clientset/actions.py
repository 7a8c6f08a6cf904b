"""What can be done with a few kinds only: evict and bind pods, issue tokens."""

from __future__ import annotations

from typing import TypeVar

from kinform.clientset import authentication_v1
from kinform.rest.options import WriteOptions
from kinform.verbs import _write_bodies
from kinform.verbs.base import Name, ResourceBase
from kinform.verbs.writing import Creates

__all__ = ["Binds", "Evicts", "IssuesTokens"]

T = TypeVar("T")


class Evicts(ResourceBase[T]):
    """Can ask pods to leave."""

    async def evict(
        self,
        name: Name,
        *,
        grace_period: float | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        dry_run: bool = False,
    ) -> None:
        """Delete a pod if its disruption budgets allow that now. It is not tried again.

        ``uid`` and ``resource_version`` make sure that it is the one you mean.

        Raises:
            TooManyRequestsError: a PodDisruptionBudget forbids it for the time being.
            NotFoundError: there is no such pod.
        """
        options = _write_bodies.delete_options(
            grace_period=grace_period,
            propagation=None,
            uid=uid,
            resource_version=resource_version,
            dry_run=dry_run,
        )
        body = _body(name, kind="Eviction", api_version="policy/v1", deleteOptions=options)
        request = await self._request("POST", name, subresource="eviction")
        await request.max_retries(0).body(body).do()


class Binds(ResourceBase[T]):
    """Can say where pods run: what schedulers do."""

    async def bind(self, name: Name, node: str, *, dry_run: bool = False) -> None:
        """Bind a pod to a node.

        Raises:
            ConflictError: it is bound already.
        """
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = _body(name, kind="Binding", api_version="v1", target=target)
        request = await self._request("POST", name, subresource="binding")
        await request.params(WriteOptions(dry_run=dry_run)).body(body).do()


class IssuesTokens(ResourceBase[T]):
    """Can issue tokens: service accounts have it."""

    async def create_token(
        self, name: Name, request: authentication_v1.TokenRequest | None = None
    ) -> authentication_v1.TokenRequest:
        """Return a new token of a service account, in ``status.token``."""
        model = authentication_v1.TokenRequest
        place = self._elsewhere(subresource="token")
        tokens = Creates(self._connection, self._find, model, **place)
        return await tokens.create(request or model(), name=name)


def _body(name: Name, *, kind: str, api_version: str, **rest: object) -> _write_bodies.Content:
    plain = name if isinstance(name, str) else name.name
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": plain}, **rest}
