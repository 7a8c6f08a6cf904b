"""kubectl's reads: get in all its forms, describe, watches, waiting."""

from __future__ import annotations

import json
import re

import pytest
import yaml

from tests.kubectl.support_kubectl import Kubectl, config_map, deployment, pod

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.fixture
def maps(kubectl: Kubectl) -> Kubectl:
    """Three config maps: red and green are of the web, blue is of the database."""
    made = [
        config_map("red", {"app": "web"}, a="1", b="2"),
        config_map("green", {"app": "web"}, a="3"),
        config_map("blue", {"app": "db"}),
    ]
    kubectl("create", "-f", "-", given=made)
    return kubectl


def test_a_table_has_the_servers_columns(maps: Kubectl) -> None:
    header, *rows = maps("get", "configmaps").splitlines()
    assert header.split() == ["NAME", "DATA", "AGE"]
    assert [row.split()[:2] for row in rows] == [["blue", "0"], ["green", "1"], ["red", "2"]]
    assert maps.rows("get", "cm", "red", "--show-labels")[0][-1] == "app=web"
    assert [row[-1] for row in maps.rows("get", "cm", "-L", "app")] == ["db", "web", "web"]
    assert maps("get", "cm", "--no-headers").count("\n") == 3
    assert maps.rows("get", "cm", "--show-kind")[0][0] == "configmap/blue"


def test_selectors_choose(maps: Kubectl) -> None:
    def names(*args: str) -> list[str]:
        return maps("get", "cm", "-o", "name", *args).split()

    assert names() == ["configmap/blue", "configmap/green", "configmap/red"]
    assert names("-l", "app=web") == ["configmap/green", "configmap/red"]
    assert names("-l", "app in (db, cache)") == ["configmap/blue"]
    assert names("-l", "!app") == []
    assert names("--field-selector", "metadata.name=red") == ["configmap/red"]
    assert names("--field-selector", "metadata.name!=red", "-l", "app=web") == ["configmap/green"]
    assert names("--chunk-size=1") == names()
    said = maps.refused("get", "cm", "--field-selector", "data.a=1")
    assert '"data.a" is not a known field selector' in said
    assert "unable to parse requirement" in maps.refused("get", "cm", "-l", "app in web")


def test_every_output_format_is_understood(maps: Kubectl) -> None:
    found = maps.object("cm")
    assert found["kind"] == "List"
    assert [item["metadata"]["name"] for item in found["items"]] == ["blue", "green", "red"]
    shown = yaml.safe_load(maps("get", "cm", "red", "-o", "yaml"))
    assert (shown["kind"], shown["data"]) == ("ConfigMap", {"a": "1", "b": "2"})
    assert "managedFields" not in shown["metadata"]
    text = maps("get", "cm", "red", "-o", "json", "--show-managed-fields")
    (managed,) = json.loads(text)["metadata"]["managedFields"]
    assert (managed["manager"], managed["operation"]) == ("kubectl-create", "Update")
    assert maps("get", "cm", "-o", "jsonpath={.items[*].data.a}") == "3 1"
    assert maps("get", "cm", "red", "-o", "go-template={{.data.b}}") == "2"
    columns = maps.rows("get", "cm", "-o", "custom-columns=N:.metadata.name,V:.data.a")
    assert columns == [["blue", "<none>"], ["green", "3"], ["red", "1"]]
    by_age = maps.rows("get", "cm", "--sort-by=.data.a")
    assert [row[0] for row in by_age] == ["blue", "red", "green"]


def test_all_namespaces_have_a_column_of_their_own(maps: Kubectl) -> None:
    header, *rows = maps("get", "cm", "-A", "-l", "app").splitlines()
    assert header.split() == ["NAMESPACE", "NAME", "DATA", "AGE"]
    mine = [row.split()[1] for row in rows if row.split()[0] == maps.namespace]
    assert mine == ["blue", "green", "red"]


def test_all_is_what_runs(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=[pod("one"), deployment("web")])
    assert kubectl("get", "all", "-o", "name").split() == ["pod/one", "deployment.apps/web"]
    wide = kubectl("get", "pod,deploy", "-o", "wide")
    assert "NOMINATED NODE" in wide
    assert "CONTAINERS" in wide
    assert ["pod/one", "0/1", "Pending"] == wide.splitlines()[1].split()[:3]


def test_a_missing_object_is_reported_as_by_a_real_server(kubectl: Kubectl) -> None:
    said = kubectl.refused("get", "cm", "missing")
    assert said == 'Error from server (NotFound): configmaps "missing" not found\n'
    assert kubectl("get", "cm", "missing", "--ignore-not-found") == ""
    said = kubectl.refused("get", "unicorns")
    assert said == 'error: the server doesn\'t have a resource type "unicorns"\n'
    empty = kubectl.run("get", "secrets")
    assert (empty.code, empty.out) == (0, "")
    assert empty.err == f"No resources found in {kubectl.namespace} namespace.\n"


def test_raw_paths_are_answered(kubectl: Kubectl) -> None:
    assert kubectl("get", "--raw", "/healthz") == "ok"
    assert kubectl("get", "--raw", "/readyz?verbose").endswith("readyz check passed\n")
    path = f"/api/v1/namespaces/{kubectl.namespace}/configmaps?limit=1"
    assert json.loads(kubectl("get", "--raw", path))["kind"] == "ConfigMapList"


def lines(text: str) -> dict[str, str]:
    """Return the ``Name:  value`` lines of a description."""
    pairs = (line.split(":", 1) for line in text.splitlines() if ":" in line)
    return {name.strip(): value.strip() for name, value in pairs}


def test_describe_tells_of_a_pod_and_its_events(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=pod("one", app="web"))
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "one.1"},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": kubectl.namespace,
            "name": "one",
            "uid": kubectl.value("pod", "one", ".metadata.uid"),
        },
        "type": "Warning",
        "reason": "TooHot",
        "message": "it melts",
    }
    kubectl("create", "-f", "-", given=event)
    text = kubectl("describe", "pod", "one")
    described = lines(text)
    assert (described["Name"], described["Namespace"]) == ("one", kubectl.namespace)
    assert (described["Labels"], described["Status"], described["Image"]) == (
        "app=web",
        "Pending",
        "nginx",
    )
    assert described["QoS Class"] == "BestEffort"
    assert "TooHot" in text
    assert kubectl.rows("events", "--for", "pod/one")[0][-2:] == ["it", "melts"]
    assert kubectl.rows("get", "events", "--field-selector", "reason=TooHot")[0][2] == "TooHot"
    assert kubectl("events", "--types=Normal") == ""


def test_describe_tells_of_workloads_and_services(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=deployment("web"))
    kubectl("expose", "deployment", "web", "--port=80", "--target-port=8080")
    described = lines(kubectl("describe", "deployment", "web"))
    assert described["Selector"] == "app=web"
    assert described["Replicas"].startswith("2 desired")
    assert described["StrategyType"] == "RollingUpdate"
    described = lines(kubectl("describe", "service", "web"))
    assert (described["Type"], described["TargetPort"]) == ("ClusterIP", "8080/TCP")
    assert described["IP"].startswith("10.")


def test_describe_tells_of_config_maps_and_namespaces(maps: Kubectl) -> None:
    text = maps("describe", "configmap", "red")
    assert "Data\n====\na:\n----\n1\n" in text
    text = maps("describe", "cm", "-l", "app=web")
    assert re.findall(r"^Name: +(\w+)$", text, re.MULTILINE) == ["green", "red"]
    assert lines(maps("describe", "namespace", maps.namespace))["Status"] == "Active"


def test_a_watch_sees_what_comes_changes_and_goes(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "old")
    with kubectl.started("get", "cm", "-w", "--output-watch-events") as watch:
        assert watch.line("old").split()[:3] == ["ADDED", "old", "0"]
        kubectl("create", "configmap", "new", "--from-literal=a=1")
        assert watch.line("new").split()[:3] == ["ADDED", "new", "1"]
        kubectl("patch", "cm", "new", "-p", '{"data": {"b": "2"}}')
        assert watch.line("new").split()[:3] == ["MODIFIED", "new", "2"]
        kubectl("delete", "cm", "new")
        assert watch.line("new").split()[:3] == ["DELETED", "new", "2"]


def test_a_watch_of_one_object_prints_it_again_when_it_changes(maps: Kubectl) -> None:
    with maps.started("get", "cm", "red", "--watch-only", "-o", "jsonpath={.data.a}{'\\n'}") as w:
        # The watch may begin before or after any of these: the last one it must see.
        with maps.started("get", "cm", "red", "-w", "-o", "jsonpath={.data.a}{'\\n'}") as all_of_it:
            assert all_of_it.line() == "1\n"
            maps("patch", "cm", "red", "-p", '{"data": {"a": "5"}}')
            assert all_of_it.line() == "5\n"
        maps("patch", "cm", "red", "-p", '{"data": {"a": "6"}}')
        assert w.line("6") == "6\n"


def test_wait_ends_when_a_condition_holds(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=pod("one"))
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}], "phase": "Running"}}
    args = ("--subresource=status", "--type=merge", "-p", json.dumps(ready))
    with kubectl.started("wait", "pod/one", "--for=condition=Ready", "--timeout=20s") as ready_soon:
        kubectl("patch", "pod", "one", *args)
        assert ready_soon.end() == (0, "pod/one condition met\n")
    met = kubectl("wait", "pod/one", "--for=jsonpath={.status.phase}=Running", "--timeout=20s")
    assert met == "pod/one condition met\n"
    said = kubectl.refused("wait", "pod/one", "--for=condition=Burning", "--timeout=100ms")
    assert "timed out waiting for the condition on pods/one" in said


def test_wait_ends_when_the_object_is_gone_or_there(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "red")
    with kubectl.started("wait", "cm/red", "--for=delete", "--timeout=20s") as gone:
        kubectl("delete", "cm", "red")
        assert gone.end()[0] == 0
    with kubectl.started("wait", "cm/late", "--for=create", "--timeout=20s") as there:
        kubectl("create", "configmap", "late")
        assert there.end() == (0, "configmap/late condition met\n")
