from __future__ import annotations

import copy
import ipaddress
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.apiserver import defaults
from kinform.apiserver.defaults import services
from tests.apiserver.recorded_objects import created, kind_at, recorded, updated

Json = dict[str, Any]


def accepted(what: str) -> list[Any]:
    return [
        pytest.param(*case, id=f"{case[0].rpartition('/')[2]}-{index}")
        for index, case in enumerate(recorded()[what])
        if isinstance(case[-1], dict)
    ]


def comparable(obj: Json) -> Json:
    """Leave out what is drawn by lot, and what the caller of the defaults sets."""
    shown = copy.deepcopy(obj)
    shown["metadata"].pop("generation", None)
    if shown["kind"] == "PersistentVolume":
        shown["status"].pop("lastPhaseTransitionTime", None)
    if shown["kind"] == "Service":
        spec = shown["spec"]
        for port in spec.get("ports", ()):
            port.pop("nodePort", None)
        spec.pop("healthCheckNodePort", None)
        if spec.get("clusterIP") != "None":
            spec.pop("clusterIP", None)
            spec.pop("clusterIPs", None)
    return shown


@pytest.mark.parametrize("path, body, expected", accepted("creates"))
def test_a_new_object_is_completed_as_the_real_server_does_it(
    path: str, body: Json, expected: Json
) -> None:
    obj, errors = created(path, body)

    assert errors == []
    assert comparable(expected) == comparable(obj)


@pytest.mark.parametrize("path, old, new, expected", accepted("updates"))
def test_a_change_is_completed_as_the_real_server_does_it(
    path: str, old: Json, new: Json, expected: Json
) -> None:
    obj, errors = updated(path, old, new)

    assert errors == []
    assert comparable(expected) == comparable(obj)


@pytest.mark.parametrize("path, body, expected", accepted("creates"))
def test_defaults_twice_are_the_same_as_once(path: str, body: Json, expected: Json) -> None:
    kind, _ = kind_at(path)
    once, _ = created(path, body)
    twice = json.loads(json.dumps(once))

    defaults.default(kind, twice)

    assert once == twice


def test_a_volume_is_pending_since_it_was_made() -> None:
    meta = {"name": "x", "creationTimestamp": "2026-01-01T00:00:00Z"}

    obj, _ = created("/api/v1/persistentvolumes", {"apiVersion": "v1", "metadata": meta})

    assert obj["status"]["lastPhaseTransitionTime"] == "2026-01-01T00:00:00Z"


def service(**spec: Any) -> Json:
    body = {"apiVersion": "v1", "metadata": {"name": "x"}, "spec": spec}
    return created("/api/v1/namespaces/objects/services", body)[0]


def test_a_service_is_given_an_address_and_the_ports_it_needs() -> None:
    obj = service(type="LoadBalancer", ports=[{"port": 80}], externalTrafficPolicy="Local")

    errors = services.assign(obj, addresses=["10.0.1.1"], ports=[30000])

    assert errors == []
    assert obj["spec"]["clusterIP"] == "10.0.1.2"
    assert obj["spec"]["clusterIPs"] == ["10.0.1.2"]
    assert obj["spec"]["ports"][0]["nodePort"] == 30001
    assert obj["spec"]["healthCheckNodePort"] == 30002


@pytest.mark.parametrize("spec", [{"clusterIP": "None"}, {"type": "ExternalName"}])
def test_some_services_have_no_address(spec: Json) -> None:
    obj = service(**spec)

    assert services.assign(obj, addresses=[], ports=[]) == []
    assert obj["spec"].get("clusterIP") in {None, "None"}


@pytest.mark.parametrize(
    "spec, expected",
    [
        (
            {"clusterIP": "10.0.0.1"},
            (
                'spec.clusterIPs: Invalid value: ["10.0.0.1"]: failed to allocate IP 10.0.0.1: '
                "provided IP is already allocated"
            ),
        ),
        (
            {"clusterIP": "1.2.3.4"},
            (
                'spec.clusterIPs: Invalid value: ["1.2.3.4"]: failed to allocate IP 1.2.3.4: '
                "the provided network does not match the current range"
            ),
        ),
        (
            {"clusterIP": "10.0.255.255"},
            (
                'spec.clusterIPs: Invalid value: ["10.0.255.255"]: '
                "failed to allocate IP 10.0.255.255: "
                "the provided network does not match the current range"
            ),
        ),
        (
            {"type": "NodePort", "ports": [{"port": 80, "nodePort": 20000}]},
            (
                "spec.ports[0].nodePort: Invalid value: 20000: provided port is not in the valid "
                "range. The range of valid ports is 30000-32767"
            ),
        ),
        (
            {"type": "NodePort", "ports": [{"port": 80, "nodePort": 32755}]},
            "spec.ports[0].nodePort: Invalid value: 32755: provided port is already allocated",
        ),
    ],
)
def test_an_address_or_port_that_cannot_be_had_is_refused(spec: Json, expected: str) -> None:
    obj = service(**{"ports": [{"port": 80}], **spec})

    errors = services.assign(obj, addresses=["10.0.0.1"], ports=[32755])

    assert [expected] == [str(error) for error in errors]


@given(st.sets(st.integers(min_value=1, max_value=254), max_size=253))
def test_an_allocated_address_is_free_and_in_the_range(used: set[int]) -> None:
    taken = {f"10.0.1.{number}" for number in used} | {"10.0.0.1"}

    address = services.allocate(taken)

    assert address not in taken
    assert ipaddress.ip_address(address) in ipaddress.ip_network(services.RANGE)


def test_more_services_than_a_small_range_has_get_addresses_each_its_own() -> None:
    taken = {"10.0.0.1"}

    for number in range(1000):
        taken.add(services.allocate(taken, start=number))

    assert len(taken) == 1001


def test_addresses_for_those_who_ask_are_given_last_and_then_none_is_left() -> None:
    network = ipaddress.ip_network(services.RANGE)
    taken = {str(host) for host in network.hosts()} - {"10.0.0.9"}

    assert services.allocate(taken) == "10.0.0.9"
    with pytest.raises(LookupError):
        services.allocate({*taken, "10.0.0.9"})
