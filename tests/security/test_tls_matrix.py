"""TLS: the wrong server receives no request, and keys are left in no file."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path

import pytest

import kinform
from kinform.errors import ConfigError, TransportError, TransportFailure
from kinform.rest.clientcmd.loading import load
from kinform.rest.config import Config, ExecPlugin, TlsConfig
from kinform.rest.transport.tls import ClientCertificate, TlsSource
from tests.rest.support_kubeconfig import document, write
from tests.security.support_canaries import TOKEN
from tests.support.certs import Authority, Pair
from tests.support.wire import WireServer, answers, reply

OURS, THEIRS = Authority(), Authority()
VERSION = {"gitVersion": "v1.36.0"}


def config(server: WireServer, *, host: str, name: str | None, authority: Authority) -> Config:
    return Config(
        server=f"https://{host}:{server.port}",
        token=TOKEN,
        tls=TlsConfig(ca_data=authority.certificate, server_name=name),
    )


@pytest.mark.parametrize(
    "shown, host, name, trusted",
    [
        pytest.param(OURS.issue("localhost"), "localhost", None, THEIRS, id="another CA"),
        pytest.param(OURS.issue("elsewhere"), "localhost", None, OURS, id="another name"),
        pytest.param(OURS.issue("*.localhost"), "localhost", None, OURS, id="wildcard"),
        pytest.param(OURS.issue("localhost"), "127.0.0.1", None, OURS, id="address by a name"),
        pytest.param(OURS.issue("127.0.0.2"), "127.0.0.1", None, OURS, id="another address"),
        pytest.param(OURS.issue("localhost"), "localhost", "api.test", OURS, id="server name"),
        pytest.param(OURS.issue("localhost", expired=True), "localhost", None, OURS, id="expired"),
        pytest.param(OURS.issue(common_name="localhost"), "localhost", None, OURS, id="CN alone"),
    ],
)
async def test_who_is_not_the_server_that_is_meant_hears_nothing(
    shown: Pair, host: str, name: str | None, trusted: Authority
) -> None:
    async with WireServer(answers(), tls=shown.server_context()) as server:
        wanted = config(server, host=host, name=name, authority=trusted)
        async with kinform.connect(wanted) as client:
            with pytest.raises(TransportError) as caught:
                await client.version()
    assert caught.value.failure is TransportFailure.TLS
    assert not server.requests


@pytest.mark.parametrize(
    "shown, host, name",
    [
        (OURS.issue("localhost"), "localhost", None),
        (OURS.issue("127.0.0.1"), "127.0.0.1", None),
        (OURS.issue("api.test"), "127.0.0.1", "api.test"),
    ],
    ids=["name", "address", "server name"],
)
async def test_who_is_the_server_that_is_meant_is_told(
    shown: Pair, host: str, name: str | None
) -> None:
    async with WireServer(answers(reply(200, json=VERSION)), tls=shown.server_context()) as server:
        wanted = config(server, host=host, name=name, authority=OURS)
        async with kinform.connect(wanted) as client:
            assert (await client.version()).git_version == "v1.36.0"
    assert server.requests[0].headers["authorization"] == f"Bearer {TOKEN}"


@pytest.mark.parametrize(
    "host",
    [
        "api.example",
        "10.0.0.1",
        "192.168.0.1:8080",
        "localhost.example",
        "127.0.0.1.example",
        "[fd00::1]",
        "0.0.0.0",
        "notlocalhost",
    ],
)
@pytest.mark.parametrize("way", ["token", "token file", "password", "plugin"])
def test_no_credential_travels_in_clear_to_another_machine(host: str, way: str) -> None:
    ways = {
        "token": Config(server=f"http://{host}", token=TOKEN),
        "token file": Config(server=f"http://{host}", token_file="/token"),
        "password": Config(server=f"http://{host}", username="u", password=TOKEN),
        "plugin": Config(server=f"http://{host}", exec_plugin=ExecPlugin(command="login")),
    }
    with pytest.raises(ConfigError, match="credentials are not sent in clear to another machine"):
        load(ways[way], environ={})


async def test_a_hundred_logins_leave_no_file_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each plugin's answer may be a new key: none of them stays on the disk."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    source = TlsSource(Config(server="https://localhost", tls=TlsConfig(ca_data=OURS.certificate)))
    contexts = set[int]()
    kept = []
    for _ in range(100):
        pair = OURS.issue(common_name="me")
        source.use_certificate(ClientCertificate(pair.certificate, pair.key))
        context = await source.context()
        contexts.add(id(context))
        kept.append(context)
    assert len(contexts) == 100
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("key", ["tokenFile", "client-key"])
@pytest.mark.parametrize("mode, warned", [(0o644, True), (0o640, True), (0o600, False)])
def test_files_with_credentials_that_others_can_read_are_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, key: str, mode: int, warned: bool
) -> None:
    held = tmp_path / "held"
    held.write_text("x", encoding="utf-8")
    held.chmod(mode)
    more = {} if key == "tokenFile" else {"client-certificate": "cert"}
    path = write(tmp_path / "config", document(user={key: "held", **more}))
    with caplog.at_level(logging.WARNING, "kinform"):
        load(path, environ={})
    assert (f"{held} holds credentials and can be read by other users" in caplog.text) is warned
