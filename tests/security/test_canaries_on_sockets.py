"""No secret is shown on any failing path of the network, of TLS, of logging in and of loading."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

import kinform
from kinform.apiserver import APIServer
from kinform.errors import ConfigError
from kinform.rest.clientcmd.loading import load
from kinform.rest.config import Config, ExecPlugin, TlsConfig
from tests.rest.support_kubeconfig import Entry, document, write
from tests.rest.support_plugin import V1, Plugin, credential
from tests.security.support_canaries import PASSWORD, SECRET, TOKEN, encoded, secret, witness
from tests.security.support_matrix import EFFECTS, OPERATIONS, Make
from tests.support.certs import Authority
from tests.support.wire import WireConnection, WireRequest, WireServer, answers, reply

ON_THE_WIRE = [
    *("refuse", "reset", "close", "half_open", "stall", "truncate_frame", "corrupt"),
    *("status", "error_event", "drip", "gzip"),
]
CASES = [
    pytest.param(make, id=f"{name}-{number}")
    for name in ON_THE_WIRE
    for number, make in enumerate(EFFECTS[name])
]


@pytest.mark.slow
@pytest.mark.parametrize("make", CASES)
async def test_no_request_that_fails_on_a_socket_shows_a_secret(make: Make) -> None:
    with witness() as seeing:
        async with APIServer(token=TOKEN, seed=1) as server:
            config = Config(server=server.url, token=TOKEN, read_timeout=0.2)
            async with server.connect() as patient:
                await patient.resource("v1/secrets").create(secret())
            async with kinform.connect(config) as client:
                server.faults.add(make())
                async with asyncio.TaskGroup() as group:
                    for operation in OPERATIONS.values():
                        group.create_task(seeing.attempt(operation(client), within=1.0))
                seeing.show(client, client.config)
    assert seeing.failures


# --- a peer that is not what it should be -----------------------------------------------------


async def _silence(request: WireRequest, conn: WireConnection) -> None:
    await conn.stall()


async def _echo(request: WireRequest, conn: WireConnection) -> None:
    """Send the request back as a response that is not HTTP: an error must not quote it."""
    await conn.write(request.head + request.body)
    await conn.fin()


async def _echo_as_header(request: WireRequest, conn: WireConnection) -> None:
    await conn.send(200, {"X-Echo": request.headers["authorization"], "Content-Length": "x"}, b"{}")


async def _echo_as_chunks(request: WireRequest, conn: WireConnection) -> None:
    await conn.chunked(headers={"Content-Type": "application/json"})
    await conn.write(request.headers["authorization"].encode() + b"\r\n" + request.body)
    await conn.fin()


async def _secret_in_pieces(request: WireRequest, conn: WireConnection) -> None:
    await conn.chunked(headers={"Content-Type": "application/json"})
    await conn.chunk(json.dumps(secret()).encode()[:-20] + b"\xff")
    await conn.end_chunks()


async def _secret_as_another_kind(request: WireRequest, conn: WireConnection) -> None:
    body = {"kind": "SecretList", "metadata": SECRET, "items": SECRET, "data": encoded(SECRET)}
    await conn.reply(reply(200, json=body))


async def _secret_as_text(request: WireRequest, conn: WireConnection) -> None:
    await conn.send(200, {"Content-Type": "text/plain"}, SECRET.encode())


HOSTS = [_echo, _echo_as_header, _echo_as_chunks, _secret_in_pieces]
HOSTS += [_secret_as_another_kind, _secret_as_text, _silence]


@pytest.mark.slow
@pytest.mark.parametrize("handler", HOSTS, ids=lambda handler: handler.__name__.strip("_"))
async def test_what_a_peer_gives_back_is_not_quoted(
    handler: Callable[[WireRequest, WireConnection], Awaitable[None]],
) -> None:
    with witness() as seeing:
        async with WireServer(handler) as server:
            config = Config(server=server.url, token=TOKEN, read_timeout=0.1)
            async with kinform.connect(config) as client:
                async with asyncio.TaskGroup() as group:
                    for operation in OPERATIONS.values():
                        group.create_task(seeing.attempt(operation(client), within=1.0))
    assert len(seeing.failures) > 10


@pytest.mark.slow
@pytest.mark.parametrize("trouble", ["CA", "name", "expired", "client", "plain"])
async def test_no_failure_of_tls_shows_a_secret(trouble: str, tmp_path: Path) -> None:
    authority, other = Authority(), Authority()
    pair = authority.issue(
        "other" if trouble == "name" else "localhost", expired=trouble == "expired"
    )
    wants = other.certificate if trouble == "client" else None
    tls = None if trouble == "plain" else pair.server_context(client_ca=wants)
    trusted = other if trouble == "CA" else authority
    shown = authority.issue(common_name="me")
    with witness() as seeing:
        async with WireServer(answers(then=reply(200, json={})), tls=tls) as server:
            config = Config(
                server=server.url.replace("http://127.0.0.1", "https://localhost"),
                token=TOKEN,
                tls=TlsConfig(
                    ca_data=trusted.certificate, cert_data=shown.certificate, key_data=shown.key
                ),
                connect_timeout=2.0,
            )
            async with kinform.connect(config) as client:
                await seeing.attempt(client.version(), within=1.0)
            seeing.show(config)
            assert not server.requests
    assert len(seeing.failures) == 1
    assert shown.key.decode()[40:80] not in "".join(seeing.texts)


# --- logging in -------------------------------------------------------------------------------


def prints(text: str) -> str:
    return f"cat <<'END'\n{text}\nEND"


PLUGINS = {
    "fails": f"echo {TOKEN}; echo token {TOKEN} >&2; exit 3",
    "no JSON": f"echo {TOKEN}",
    "broken JSON": prints(credential(token=TOKEN)[:-5]),
    "wrong type": prints(credential(token=[TOKEN])),
    "wrong version": prints(credential(f"{V1}beta1", token=TOKEN)),
    "half a pair": prints(credential(token=TOKEN, clientKeyData=SECRET)),
    "bad pair": prints(credential(clientKeyData=SECRET, clientCertificateData=SECRET)),
    "a line break": prints(credential(token=f"{TOKEN}\n")),
    "killed": f"echo {TOKEN}; kill -9 $$",
    "hangs": f"echo {TOKEN}; echo {TOKEN} >&2; sleep 60",
    "endless": f"while echo {TOKEN}{TOKEN}{TOKEN}{TOKEN}; do :; done",
}


@pytest.mark.slow
@pytest.mark.parametrize("script", PLUGINS.values(), ids=PLUGINS)
async def test_no_plugin_that_fails_shows_a_secret(script: str, tmp_path: Path) -> None:
    plugin = Plugin(tmp_path)
    plugin.does(script)
    with witness() as seeing:
        run = ExecPlugin(
            command=str(plugin.path), args=[PASSWORD], env={"PASSWORD": PASSWORD}, timeout=1.0
        )
        config = Config(server="https://127.0.0.1:1", exec_plugin=run)
        async with kinform.connect(config) as client:
            await seeing.attempt(client.version(), within=10.0)
        seeing.show(config)
    assert seeing.failures in (["ConfigError"], ["TransportError"])
    assert plugin.runs == 1


@pytest.mark.parametrize(
    "token",
    [f"{TOKEN}\n{TOKEN}", f"{TOKEN}\r\nX: y", f"{TOKEN} {TOKEN}", f"{TOKEN}\x00", f"{TOKEN}é"],
)
async def test_a_token_that_no_header_can_hold_is_not_quoted(token: str, tmp_path: Path) -> None:
    """python#656: a token that ended in a line break was shown in the traceback."""
    path = tmp_path / "token"
    path.write_text(token, encoding="utf-8")
    path.chmod(0o600)
    server = "https://127.0.0.1:1"
    with witness() as seeing:
        for config in (
            Config(server=server, token=token),
            Config(server=server, token_file=str(path)),
            Config(server=server, username=f"a\n{PASSWORD}", password=token),
        ):
            try:
                async with kinform.connect(config) as client:
                    await seeing.attempt(client.version(), within=10.0)
            except ConfigError as exc:
                seeing.show(exc)
    assert len(seeing.failures) == 3


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_login_shows_nothing_of_it(status: int, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(TOKEN, encoding="utf-8")
    with witness() as seeing:
        async with WireServer(answers(then=reply(status, body=b"no"))) as server:
            ways = [
                Config(server=server.url, token=TOKEN),
                Config(server=server.url, token_file=str(path)),
                Config(server=server.url, username="jane", password=PASSWORD),
            ]
            for config in ways:
                async with kinform.connect(config) as client:
                    await seeing.attempt(client.version(), within=10.0)
                    path.unlink(missing_ok=True)
                    await seeing.attempt(client.version(), within=10.0)
    assert len(seeing.failures) == 6


async def test_a_proxy_that_fails_is_told_without_its_password() -> None:
    with witness() as seeing:
        for code in (403, 407, 502):
            async with WireServer(answers(then=reply(code, body=b"no"))) as proxy:
                url = proxy.url.replace("://", f"://user:{PASSWORD}@")
                config = Config(server="https://api.invalid:6443", token=TOKEN, proxy_url=url)
                async with kinform.connect(config) as client:
                    await seeing.attempt(client.version(), within=10.0)
                seeing.show(config)
                assert all(TOKEN.encode() not in request.head for request in proxy.requests)
        for url in (f"socks5://u:{PASSWORD}@h", f"http://u:{PASSWORD}@[", f"ftp://{PASSWORD}@h"):
            with pytest.raises(ConfigError) as caught:
                load(Config(server="https://api.example", proxy_url=url))
            seeing.show(caught.value)
    assert len(seeing.failures) == 6


# --- kubeconfigs ------------------------------------------------------------------------------

USERS: list[Entry] = [
    {"token": TOKEN, "username": "u", "password": PASSWORD},
    {"token": [TOKEN]},
    {"token": {TOKEN: TOKEN}},
    {"token": f"{TOKEN}\n\n{TOKEN}"},
    {"client-certificate-data": encoded(SECRET)},
    {"client-key-data": SECRET},
    {"client-key-data": encoded(SECRET), "client-certificate-data": encoded(SECRET)},
    {"password": [PASSWORD]},
    {"exec": {"command": "x", "apiVersion": V1, "args": [[PASSWORD]]}},
    {"exec": {"command": "x", "apiVersion": V1, "env": [{"name": "a=b", "value": PASSWORD}]}},
    {"exec": {"command": "x", "apiVersion": V1, "args": PASSWORD}},
    {"auth-provider": {"config": {"access-token": TOKEN}}},
    {"as-groups": ["x"], "token": TOKEN},
]


@pytest.mark.parametrize("user", USERS, ids=map(str, range(len(USERS))))
async def test_no_wrong_kubeconfig_shows_its_secrets(user: Entry, tmp_path: Path) -> None:
    path = write(tmp_path / "config", document(user=user))
    Path(path).chmod(0o644)
    with witness() as seeing:
        for _ in range(2):
            try:
                async with kinform.connect(path) as client:
                    seeing.show(client.config)
                    await seeing.attempt(client.version(), within=5.0)
            except ConfigError as exc:
                seeing.show(exc)
            await seeing.attempt(_from_document(document(user=user)), within=5.0)
    assert "ConfigError" in seeing.failures


async def _from_document(entry: Entry) -> Config:
    return replace(Config.from_kubeconfig(entry), token=None)


@pytest.mark.parametrize(
    "text",
    [
        f"users: [{{name: x, user: {{token: {TOKEN}}}",
        f"token: {TOKEN}\n\t- {TOKEN}",
        f"a: *{TOKEN}",
        f"? [{TOKEN}]\n: !{TOKEN} x",
        f'{{"token": "{TOKEN}"',
        f"%{TOKEN}\n---\nx: @{TOKEN}",
        f"a: 'b\n{TOKEN}: \"c",
        f"a: {TOKEN}\x01",
        f"- {TOKEN}",
        TOKEN,
        f"kind: {{{TOKEN}: x}}",
    ],
)
def test_no_broken_kubeconfig_is_quoted(text: str, tmp_path: Path) -> None:
    path = write(tmp_path / "config", text)
    with witness() as seeing:
        for load_it in (lambda: load(path), lambda: Config.from_kubeconfig(text)):
            with pytest.raises(ConfigError) as caught:
                load_it()
            seeing.show(caught.value)
