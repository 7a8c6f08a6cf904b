"""kubectl and kinds of one's own: defined, explained, listed with their columns, removed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.kubectl.support_kubectl import Kubectl

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

SPEC: dict[str, Any] = {
    "type": "object",
    "description": "What the widget should be.",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1, "description": "How big it is."},
        "colour": {"type": "string", "default": "red", "enum": ["red", "blue"]},
        "replicas": {"type": "integer"},
    },
}
VERSION: dict[str, Any] = {
    "name": "v1",
    "served": True,
    "storage": True,
    "schema": {
        "openAPIV3Schema": {
            "type": "object",
            "description": "A thing of no use.",
            "properties": {
                "spec": SPEC,
                "status": {
                    "type": "object",
                    "properties": {
                        "replicas": {"type": "integer"},
                        "phase": {"type": "string"},
                    },
                },
            },
        }
    },
    "subresources": {
        "status": {},
        "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
    },
    "additionalPrinterColumns": [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Colour", "type": "string", "jsonPath": ".spec.colour", "priority": 1},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ],
}


@pytest.fixture
def widgets(kubectl: Kubectl) -> Iterator[str]:
    """A kind Widget in a group of this test's own; the group is returned."""
    group = f"{kubectl.namespace}.example.test"
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [VERSION],
        },
    }
    kubectl("create", "-f", "-", given=definition)
    kubectl("wait", f"crd/widgets.{group}", "--for=condition=Established", "--timeout=20s")
    yield group
    kubectl("delete", "crd", f"widgets.{group}", "--timeout=20s")


def widget(group: str, name: str, **spec: object) -> dict[str, Any]:
    kind = {"apiVersion": f"{group}/v1", "kind": "Widget"}
    return {**kind, "metadata": {"name": name}, "spec": spec}


def test_custom_objects_are_listed_with_their_columns(kubectl: Kubectl, widgets: str) -> None:
    kind = f"widgets.{widgets}"
    out = kubectl("apply", "-f", "-", given=widget(widgets, "one", size=3))
    assert out == f"widget.{widgets}/one created\n"
    kubectl("apply", "-f", "-", given=widget(widgets, "two", size=5, colour="blue"))
    header, *rows = kubectl("get", kind).splitlines()
    assert header.split() == ["NAME", "SIZE", "AGE"]
    assert [row.split()[:2] for row in rows] == [["one", "3"], ["two", "5"]]
    wide = kubectl("get", f"wd.{widgets}", "-o", "wide").splitlines()
    assert wide[0].split() == ["NAME", "SIZE", "COLOUR", "AGE"]
    assert wide[1].split()[:3] == ["one", "3", "red"]
    text = kubectl("describe", kind, "one")
    assert "Kind:         Widget" in text
    assert "Size:    3" in text
    assert kubectl.rows("get", "crd", kind)[0][0] == kind
    assert "Established" in kubectl("describe", "crd", kind)


def test_custom_objects_are_changed_in_every_way(kubectl: Kubectl, widgets: str) -> None:
    kind = f"widgets.{widgets}"
    given = widget(widgets, "one", size=3, colour="blue")
    kubectl("apply", "-f", "-", given=given)
    assert kubectl("apply", "-f", "-", given=given).endswith("/one unchanged\n")
    del given["spec"]["colour"]
    given["spec"]["size"] = 4
    assert kubectl("apply", "-f", "-", given=given).endswith("/one configured\n")
    assert kubectl.object(kind, "one")["spec"] == {"size": 4, "colour": "red"}
    kubectl("apply", "--server-side", "-f", "-", given=given | {"spec": {"size": 6}})
    assert kubectl.value(kind, "one", ".spec.size") == "6"
    kubectl("patch", kind, "one", "--type=merge", "-p", '{"spec": {"size": 7}}')
    status = ("--subresource=status", "--type=merge", "-p", '{"status": {"phase": "Ready"}}')
    kubectl("patch", kind, "one", *status)
    kubectl("scale", f"{kind}/one", "--replicas=9")
    kubectl("label", kind, "one", "a=1")
    met = kubectl("wait", f"{kind}/one", "--for=jsonpath={.status.phase}=Ready", "--timeout=20s")
    assert met.endswith("condition met\n")
    found = kubectl.object(kind, "one")
    assert found["spec"] == {"size": 7, "colour": "red", "replicas": 9}
    assert found["status"] == {"phase": "Ready"}
    assert found["metadata"]["labels"] == {"a": "1"}
    kubectl("delete", kind, "--all")
    assert kubectl("get", kind, "-o", "name") == ""


def test_the_schema_is_held_and_explained(kubectl: Kubectl, widgets: str) -> None:
    said = kubectl.refused("create", "-f", "-", given=widget(widgets, "small", size=0))
    assert "spec.size: Invalid value: 0: spec.size in body should be greater than" in said
    said = kubectl.refused("create", "-f", "-", given=widget(widgets, "none"))
    assert "spec.size: Required value" in said
    said = kubectl.refused("create", "-f", "-", given=widget(widgets, "odd", size=1, smell="bad"))
    assert 'unknown field "spec.smell"' in said
    kind = f"widgets.{widgets}"
    text = kubectl("explain", f"{kind}.spec")
    assert "What the widget should be." in text
    assert "size\t<integer> -required-" in text
    text = kubectl("explain", kind, "--recursive")
    assert "colour\t<string>" in text
    listed = kubectl.rows("api-resources", f"--api-group={widgets}")
    assert listed == [["widgets", "wd", f"{widgets}/v1", "true", "Widget"]]


def test_a_watch_sees_custom_objects(kubectl: Kubectl, widgets: str) -> None:
    kubectl("create", "-f", "-", given=widget(widgets, "one", size=3))
    with kubectl.started("get", f"widgets.{widgets}", "-w", "--output-watch-events") as watch:
        assert watch.line("one").split()[:3] == ["ADDED", "one", "3"]
        kubectl("create", "-f", "-", given=widget(widgets, "two", size=4))
        assert watch.line("two").split()[:3] == ["ADDED", "two", "4"]
        kubectl("delete", f"widgets.{widgets}", "one")
        assert watch.line("one").split()[:3] == ["DELETED", "one", "3"]
