"""A server beside the tests, and a blocking client of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kinform.rest.config import Config
from kinform.sync import Client, ResourceClient, connect
from kinform.testing import APIServerThread


@pytest.fixture
def server() -> Iterator[APIServerThread]:
    with APIServerThread() as server:
        yield server


@pytest.fixture
def client(server: APIServerThread) -> Iterator[Client]:
    with connect(Config(server=server.url, token=server.token, namespace="default")) as client:
        yield client


@pytest.fixture
def maps(client: Client) -> ResourceClient:
    return client.resource("v1/configmaps")
