"""A name with line breaks adds no line to a log: names cannot forge log records."""

from __future__ import annotations

import asyncio
import logging
from typing import NoReturn

import kinform
from kinform.apiserver import APIServer
from kinform.runtime import Controller, KindSource, Manager
from kinform.runtime.controller.context import Context
from kinform.testing import in_virtual_time
from tests.security.support_matrix import Unfit, fragile

ROLES = "rbac.authorization.k8s.io/v1/roles"
NAME = "a\nERROR root: all is lost\r\x1b[2J\u202eb"


class Lines(logging.Handler):
    """Keeps what is logged, each record as its line."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def _fail(_: object) -> NoReturn:
    raise LookupError("nothing")


async def _reconcile(ctx: Context, name: kinform.ObjectName) -> None:
    ctx.logger.warning("is reconciled")
    if ctx.attempt:
        await asyncio.sleep(3600)
    raise RuntimeError("cannot be reconciled")


async def _live(client: kinform.Client) -> None:
    """Let everything that has a word to say about an object say it."""
    informer = client.informer(ROLES, namespace="default", indexers={"failing": _fail})
    unfit = client.informer(ROLES, namespace="default", model=Unfit)
    informer.add_event_handler(on_add=fragile, on_update=fragile, on_delete=fragile)
    source = KindSource(ROLES, namespace="default", when=_fail)
    async with Manager(client, signals=False, grace=5.0) as manager:
        manager.add(Controller("roles", _reconcile, for_=source, slow_after=10.0))
        await manager.start()
        async with informer, unfit:
            await asyncio.sleep(600)
        repr(informer.lister.list())


@in_virtual_time
async def test_no_line_of_a_log_holds_more_than_one_line() -> None:
    kept, log = Lines(), logging.getLogger("kinform")
    before = log.level
    log.addHandler(kept)
    log.setLevel(logging.DEBUG)
    try:
        async with APIServer(port=None, seed=1) as server, server.connect() as client:
            await client.resource(ROLES).create({"metadata": {"name": NAME}, "rules": []})
            (found,) = await client.resource(ROLES).list()
            assert found.name == NAME
            assert repr(found).isprintable()
            await _live(client)
    finally:
        log.setLevel(before)
        log.removeHandler(kept)
    about = [line for line in kept.lines if "all is lost" in line]
    expected = (
        "handler",
        "predicate",
        "index 'failing'",
        "cannot be read",
        "slow reconcile",
        "reconciled",
    )
    assert all(any(word in line for line in about) for word in expected), about
    assert [line for line in kept.lines if not line.isprintable()] == []
