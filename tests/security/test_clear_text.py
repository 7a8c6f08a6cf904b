"""Credentials without TLS stay on this machine, with any configured proxy."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import replace

import pytest

import kinform
from kinform.clock import offload
from kinform.errors import ConfigError
from kinform.rest.clientcmd.loading import load
from kinform.rest.config import Config, ExecPlugin, Impersonation, TlsConfig
from kinform.rest.transport._sockets import Lookups
from kinform.rest.transport.proxy import Proxy, is_loopback, proxy_for
from tests.rest.support_kubeconfig import Entry, document
from tests.support.wire import WireServer, answers, reply

TOKEN = "canary-token-in-clear"
LOCAL = "http://localhost:8080"
ELSEWHERE = ["http://proxy.example:3128", "proxy.example", "https://proxy.example", "10.0.0.1:8080"]
CREDENTIALS: Mapping[str, Config] = {
    "token": Config(server=LOCAL, token=TOKEN),
    "token file": Config(server=LOCAL, token_file="/token"),
    "password": Config(server="http://127.0.0.1:8080", username="u", password=TOKEN),
    "user name": Config(server="http://[::1]:8080", username="u"),
    "plugin": Config(server="http://api.localhost", exec_plugin=ExecPlugin(command="login")),
    "impersonation": Config(server=LOCAL, token=TOKEN, impersonate=Impersonation(user="jane")),
}


@pytest.mark.parametrize("way", CREDENTIALS)
@pytest.mark.parametrize("proxy", ELSEWHERE)
def test_no_proxy_on_another_machine_reads_credentials(proxy: str, way: str) -> None:
    """For an http server the proxy reads the request itself, without a tunnel."""
    config = replace(CREDENTIALS[way], proxy_url=proxy)
    with pytest.raises(ConfigError, match="on another machine, which would read") as caught:
        load(config, environ={})
    assert caught.value.key == "proxy_url"
    assert "use an https:// server" in str(caught.value)


async def test_a_client_with_such_a_proxy_is_not_opened() -> None:
    """The check also holds for a `Config` that was changed after it was loaded."""
    loaded = await offload(load, CREDENTIALS["token"], environ={})
    with pytest.raises(ConfigError, match="which would read the credentials"):
        async with kinform.connect(replace(loaded, proxy_url="http://proxy.example:3128")):
            pass


def test_a_kubeconfig_that_asks_for_it_is_refused_with_its_key() -> None:
    cluster: Entry = {"server": LOCAL, "proxy-url": "http://proxy.example:3128"}
    with pytest.raises(ConfigError, match="which would read the credentials") as caught:
        Config.from_kubeconfig(document(cluster=cluster, user={"token": TOKEN}))
    assert caught.value.key == "clusters[dev].cluster.proxy-url"


@pytest.mark.parametrize("server", [LOCAL, "http://api.localhost", "http://127.1.2.3"])
def test_a_proxy_of_the_environment_is_not_used_for_this_machine(server: str) -> None:
    environ = {"HTTP_PROXY": "http://proxy.example:3128"}
    assert proxy_for(Config(server=server, token=TOKEN), environ=environ) is None


def test_a_proxy_of_the_environment_reads_no_credentials_either() -> None:
    environ = {"HTTP_PROXY": "http://proxy.example:3128"}
    with pytest.raises(ConfigError, match="which would read the credentials") as caught:
        proxy_for(Config(server="http://api.example", token=TOKEN), environ=environ)
    assert (caught.value.source, caught.value.key) == ("environment", "HTTP_PROXY")


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(Config(server="https://api.example", token=TOKEN), id="tunnel"),
        pytest.param(Config(server="https://localhost", token=TOKEN), id="tunnel to loopback"),
        pytest.param(Config(server=LOCAL), id="no credentials"),
        pytest.param(
            Config(server=LOCAL, impersonate=Impersonation(user="jane")), id="impersonation alone"
        ),
        pytest.param(
            Config(server=LOCAL, tls=TlsConfig(cert_file="/c", key_file="/k")), id="certificate"
        ),
    ],
)
def test_a_proxy_that_reads_no_credentials_is_used(config: Config) -> None:
    proxied = replace(config, proxy_url="http://proxy.example:3128")
    assert proxy_for(proxied, environ={}) == Proxy("http://proxy.example:3128")
    assert load(proxied, environ={}) == proxied


async def test_a_proxy_on_this_machine_may_read_them() -> None:
    version = {"major": "1", "minor": "36", "gitVersion": "v1.36.0"}
    async with WireServer(answers(reply(200, json=version))) as proxy:
        config = replace(CREDENTIALS["token"], proxy_url=f"http://127.0.0.1:{proxy.port}")
        async with kinform.connect(config) as client:
            await client.version()
    assert proxy.requests[0].headers["authorization"] == f"Bearer {TOKEN}"


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "api.localhost", "a.b.localhost"])
async def test_no_name_server_decides_where_localhost_leads(host: str) -> None:
    """RFC 6761: names below localhost are looked up as localhost, and lead here or nowhere."""
    assert is_loopback(host)
    found = await Lookups().addresses(host, 80)
    assert found
    assert all(ipaddress.ip_address(address).is_loopback for _, address in found)
