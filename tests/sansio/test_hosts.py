"""Which Host headers are answered: no name that a web page can own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.sansio.hosts import is_known_host

LABEL = st.text("abcdefghijklmnopqrstuvwxyz0123456789-", min_size=1, max_size=8)
PORT = st.one_of(st.just(""), st.integers(0, 65535).map(lambda port: f":{port}"))


@given(st.ip_addresses(), PORT)
def test_every_address_is_known(address: object, port: str) -> None:
    text = str(address)
    assert is_known_host(f"[{text}]{port}" if ":" in text else f"{text}{port}")


@given(st.lists(LABEL, min_size=1, max_size=4), PORT, st.booleans())
def test_no_name_of_public_dns_is_known_unless_it_is_given(
    labels: list[str], port: str, in_cluster: bool
) -> None:
    name = ".".join([*labels, "example"])
    assert not is_known_host(f"{name}{port}", in_cluster=in_cluster)
    assert not is_known_host(f"{name}.{port}", in_cluster=in_cluster)
    assert not is_known_host(f"{name}{port}", in_cluster=in_cluster, known=["other.invalid"])
    assert is_known_host(f"{name.upper()}{port}", in_cluster=in_cluster, known=[name])


@given(LABEL, LABEL, PORT)
def test_names_of_services_are_known_in_a_cluster_alone(name: str, space: str, port: str) -> None:
    for host in (f"{name}.{space}.svc", f"{name}.{space}.svc.cluster.local", f"x{name}"):
        assert is_known_host(f"{host}{port}", in_cluster=True)
        assert not is_known_host(f"{host}{port}")


@pytest.mark.parametrize(
    "header", ["[name]", "[name.svc]:1", "a b", "::1", "a:b", "[::1", "a,b:1:"]
)
def test_what_is_no_host_is_unknown(header: str) -> None:
    assert not is_known_host(header, known=["name"])


@given(st.text(max_size=30))
def test_any_text_is_decided_on(header: str) -> None:
    assert is_known_host(header) in {True, False}
