"""One embedded server for all peers, and a namespace for each test.

The peers are tested as their users have them: from a kubeconfig, nothing of theirs replaced.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.peers.support_server import Served, served


@pytest.fixture(scope="session")
def peers_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("peers")) as found:
        yield found


@pytest.fixture
def namespace(peers_server: Served) -> str:
    return peers_server.namespace()
