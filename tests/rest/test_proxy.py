"""The choice of the proxy: proxy-url, HTTPS_PROXY and NO_PROXY, by Go's rules."""

from __future__ import annotations

import base64
import ipaddress
import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.errors import ConfigError
from kinform.rest.config import Config, Origin
from kinform.rest.transport.proxy import Proxy, bypasses, proxy_for

PROXY = "http://proxy.example:3128"
PASSWORD = "pa55word-of-the-proxy"
SERVER = Config(server="https://api.example:6443")


def test_without_any_setting_there_is_no_proxy() -> None:
    assert proxy_for(SERVER, environ={}) is None


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "https_proxy"])
def test_an_https_server_is_reached_through_https_proxy(name: str) -> None:
    assert proxy_for(SERVER, environ={name: PROXY}) == Proxy(PROXY)


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy"])
def test_http_proxy_is_for_http_servers_alone(name: str) -> None:
    environ = {name: PROXY}
    assert proxy_for(SERVER, environ=environ) is None
    assert proxy_for(Config(server="http://api.example"), environ=environ) == Proxy(PROXY)


def test_capitals_come_first() -> None:
    environ = {"https_proxy": "http://small:1", "HTTPS_PROXY": "http://large:1"}
    assert proxy_for(SERVER, environ=environ) == Proxy("http://large:1")


def test_the_kubeconfigs_proxy_wins_and_no_proxy_does_not_apply_to_it() -> None:
    """client-go: ``http.ProxyURL``, unconditionally, even for loopback."""
    config = Config(server="https://127.0.0.1:6443", proxy_url=PROXY)
    environ = {"HTTPS_PROXY": "http://other:1", "NO_PROXY": "*"}
    assert proxy_for(config, environ=environ) == Proxy(PROXY)


@pytest.mark.parametrize(
    "text, url",
    [
        ("proxy.example:3128", "http://proxy.example:3128"),
        ("https://proxy.example", "https://proxy.example"),
        ("http://[::1]:3128/", "http://[::1]:3128"),
        (" http://proxy.example:3128 ", "http://proxy.example:3128"),
    ],
)
def test_forms_of_a_proxy_url(text: str, url: str) -> None:
    assert proxy_for(SERVER, environ={"HTTPS_PROXY": text}) == Proxy(url)


def test_credentials_leave_the_url_and_never_show() -> None:
    proxy = proxy_for(SERVER, environ={"HTTPS_PROXY": f"http://me%40x:{PASSWORD}@proxy:3128"})
    assert proxy is not None
    assert proxy.url == "http://proxy:3128"
    assert proxy.authorization is not None
    assert base64.b64decode(proxy.authorization.removeprefix("Basic ")).decode() == (
        f"me@x:{PASSWORD}"
    )
    assert PASSWORD not in repr(proxy)
    assert proxy.authorization not in repr(proxy)


@pytest.mark.parametrize(
    "text",
    [
        f"socks5://me:{PASSWORD}@proxy:1080",
        f"socks5h://me:{PASSWORD}@proxy",
        f"socks4://me:{PASSWORD}@proxy",
    ],
)
def test_socks_is_refused_with_the_variable_named(text: str) -> None:
    with pytest.raises(ConfigError, match=r"HTTPS_PROXY: names a SOCKS proxy.*give an http") as e:
        proxy_for(SERVER, environ={"HTTPS_PROXY": text})
    assert PASSWORD not in "".join(traceback.format_exception(e.value))


def test_socks_in_a_kubeconfig_is_refused_with_the_key_named() -> None:
    place = Origin(
        cluster_source="/a", cluster_key="clusters[dev].cluster", user_source="/b", user_key="u"
    )
    config = Config(server="https://x", proxy_url=f"socks5://me:{PASSWORD}@p", origin=place)
    with pytest.raises(ConfigError, match=r"clusters\[dev\]\.cluster\.proxy-url: names a SOCKS"):
        proxy_for(config, environ={})


@pytest.mark.parametrize(
    "text",
    [
        f"ftp://me:{PASSWORD}@proxy",
        f"http://me:{PASSWORD}@proxy:port",
        f"http://me:{PASSWORD}@[::1",
        f"me:{PASSWORD}@:80",
        "http://",
    ],
)
def test_what_is_no_proxy_url_is_refused_and_not_quoted(text: str) -> None:
    with pytest.raises(ConfigError, match=r"HTTPS_PROXY: is not a proxy URL like") as caught:
        proxy_for(SERVER, environ={"HTTPS_PROXY": text})
    assert PASSWORD not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__context__ is None


def test_http_proxy_is_not_trusted_in_a_cgi_program() -> None:
    """There it may be a header of the request. As Go does."""
    config, environ = Config(server="http://api.example"), {"HTTP_PROXY": PROXY}
    with pytest.raises(ConfigError, match="CGI"):
        proxy_for(config, environ={**environ, "REQUEST_METHOD": "GET"})


def test_a_broken_proxy_does_not_matter_where_it_is_not_used() -> None:
    environ = {"HTTPS_PROXY": "socks5://x", "NO_PROXY": "api.example"}
    assert proxy_for(SERVER, environ=environ) is None


# --- NO_PROXY ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "no_proxy, host, port, direct",
    [
        ("", "api.example", 443, False),
        ("*", "api.example", 443, True),
        ("x, *", "10.0.0.1", 443, True),
        ("example", "api.example", 443, True),
        ("example", "example", 443, True),
        ("example", "counterexample", 443, False),
        (".example", "api.example", 443, True),
        (".example", "example", 443, False),
        ("*.example", "api.example", 443, True),
        ("*.example", "example", 443, False),
        ("API.Example", "api.EXAMPLE", 443, True),
        (" a , api.example ,", "api.example", 443, True),
        ("api.example:6443", "api.example", 6443, True),
        ("api.example:6443", "api.example", 443, False),
        ("api.example:", "api.example", 443, True),
        ("10.0.0.1", "10.0.0.1", 443, True),
        ("10.0.0.1:6443", "10.0.0.1", 6443, True),
        ("10.0.0.1:6443", "10.0.0.1", 443, False),
        ("10.0.0.1", "10.0.0.11", 443, False),
        ("10.0.0.0/8", "10.255.0.1", 443, True),
        ("10.1.2.3/8", "10.255.0.1", 443, True),
        ("10.0.0.0/8", "11.0.0.1", 443, False),
        ("10.0.0.0/8", "api.example", 443, False),
        ("fd00::/8", "fd00::1", 443, True),
        ("fd00::/8", "fe80::1", 443, False),
        ("2001:db8::1", "2001:DB8::1", 443, True),
        ("[2001:db8::1]:443", "2001:db8::1", 443, True),
        ("[2001:db8::1]:80", "2001:db8::1", 443, False),
        ("10.0.0.1", "::ffff:10.0.0.1", 443, True),
        ("10.0.0.0/255.0.0.0", "10.0.0.1", 443, False),
        ("10.0.0.0/99,/8,:443,.,*.", "10.0.0.1", 443, False),
        ("bücher.example", "xn--bcher-kva.example", 443, True),
        ("", "localhost", 443, True),
        ("", "LOCALHOST", 443, True),
        ("", "127.0.0.1", 443, True),
        ("", "127.8.8.8", 443, True),
        ("", "::1", 443, True),
        ("", "::ffff:127.0.0.1", 443, True),
    ],
)
def test_no_proxy(no_proxy: str, host: str, port: int, direct: bool) -> None:
    assert bypasses(no_proxy, host, port=port) is direct


@pytest.mark.parametrize("name", ["NO_PROXY", "no_proxy"])
def test_no_proxy_is_read_from_the_environment(name: str) -> None:
    assert proxy_for(SERVER, environ={"HTTPS_PROXY": PROXY, name: "example:6443"}) is None
    assert proxy_for(SERVER, environ={"HTTPS_PROXY": PROXY, name: "example:443"}) is not None


def test_the_port_of_a_url_without_one_is_its_schemes() -> None:
    config = Config(server="https://api.example")
    assert proxy_for(config, environ={"HTTPS_PROXY": PROXY, "NO_PROXY": "api.example:443"}) is None


ADDRESSES = (
    st.ip_addresses()
    .map(lambda address: getattr(address, "ipv4_mapped", None) or address)
    .filter(lambda address: not address.is_loopback)
)
LABELS = st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=5)
HOSTS = st.lists(LABELS, min_size=1, max_size=4).map(".".join).filter(lambda h: h != "localhost")


@given(ADDRESSES, st.data())
def test_a_range_covers_exactly_its_addresses(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address, data: st.DataObject
) -> None:
    length = data.draw(st.integers(0, address.max_prefixlen))
    network = ipaddress.ip_network(f"{address}/{length}", strict=False)
    assert bypasses(str(network), str(address), port=443)
    other = data.draw(ADDRESSES)
    assert bypasses(str(network), str(other), port=443) is (other in network)


@given(HOSTS, HOSTS, st.integers(1, 65535))
def test_a_name_covers_itself_and_what_is_below(name: str, host: str, port: int) -> None:
    below = host.split(".")[-len(name.split(".")) :] == name.split(".")
    assert bypasses(name, host, port=port) is below
    assert bypasses(f".{name}", host, port=port) is (below and host != name)
    assert bypasses(f"{name}:{port}", host, port=port) is below
    assert not bypasses(f"{name}:{port}", host, port=port % 65535 + 1)


@given(st.lists(st.text(max_size=12), max_size=4), HOSTS)
def test_any_text_can_be_read_and_adding_an_entry_only_exempts_more(
    entries: list[str], host: str
) -> None:
    some, more = ",".join(entries), ",".join([*entries, host])
    assert bypasses(some, host, port=443) in {True, False}
    assert bypasses(more, host, port=443)
