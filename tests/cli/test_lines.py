from __future__ import annotations

import json

import pytest
import yaml

from kinform.cli.cluster.informer_feed import RowChange
from kinform.cli.output.formats import parse_output
from kinform.cli.output.lines import Lines
from tests.cli.support_rows import PODS, WALL, added, deleted, modified, row, target


def lines(form: str, *, with_namespace: bool = False, with_kind: bool = False) -> Lines:
    return Lines(parse_output(form), with_namespace=with_namespace, with_kind=with_kind)


def test_a_header_comes_once_and_each_change_is_one_aligned_line() -> None:
    shown = lines("table")
    shown.measure(PODS, [row("web-0"), row("a-longer-name")], wall=WALL)
    text = "".join(
        shown.text(change, wall=WALL)
        for change in (added("web-0"), modified("a-longer-name", "Failed"), deleted("web-0"))
    )
    assert text.splitlines() == [
        "EVENT      NAME            STATUS    AGE",
        "ADDED      web-0           Running   60s",
        "MODIFIED   a-longer-name   Failed    60s",
        "DELETED    web-0           Running   60s",
    ]


def test_wide_shows_all_columns() -> None:
    assert "node-1" in lines("wide").text(added("web"), wall=WALL)
    assert "node-1" not in lines("table").text(added("web"), wall=WALL)


def test_several_kinds_and_namespaces_can_be_distinguished() -> None:
    shown = lines("table", with_namespace=True, with_kind=True)
    jobs = target("jobs", "Job", "batch")
    first = shown.text(added("web"), wall=WALL)
    second = shown.text(RowChange("ADDED", jobs, row("import")), wall=WALL)
    assert "NAMESPACE   NAME" in first
    assert "shop        pods/web" in first
    assert "shop        jobs/import" in second
    assert len(second.splitlines()) == 2, "each kind has its own header"


def test_a_name_is_kubectls() -> None:
    jobs = target("jobs", "Job", "batch")
    assert lines("name").text(added("web"), wall=WALL) == "pod/web\n"
    assert lines("name").text(RowChange("ADDED", jobs, row("x")), wall=WALL) == "job.batch/x\n"


def test_json_is_one_event_in_one_line_without_managed_fields() -> None:
    text = lines("json").text(modified("web", "Failed"), wall=WALL)
    assert text.endswith("\n")
    assert text.count("\n") == 1
    event = json.loads(text)
    assert (event["type"], event["object"]["metadata"]["name"]) == ("MODIFIED", "web")
    assert "managedFields" not in event["object"]["metadata"]


def test_yaml_is_one_document_for_each_change() -> None:
    shown = lines("yaml")
    text = "".join(shown.text(change, wall=WALL) for change in (added("a"), deleted("b")))
    assert "# DELETED pods shop/b\n" in text
    documents = list(yaml.safe_load_all(text))
    assert [document["metadata"]["name"] for document in documents] == ["a", "b"]


def test_a_template_gives_a_line() -> None:
    shown = lines("jsonpath={.metadata.namespace}/{.metadata.name}")
    assert shown.text(added("web"), wall=WALL) == "shop/web\n"


@pytest.mark.parametrize("text", ["tabel", "jsonpath", ""])
def test_other_forms_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is none of table, wide"):
        parse_output(text)
