"""The wording of refusals: how often an error is reported, and how values are shown."""

from __future__ import annotations

from typing import Any

import pytest

from kinform.apiserver import validation
from kinform.apiserver.patch import duplicate_fields, json_patch
from kinform.apiserver.scheme import kind_registry
from kinform.apiserver.scheme.field_errors import invalid
from kinform.apiserver.serializer import decoding
from kinform.apiserver.serializer.json_values import as_list, syntax_error
from kinform.apiserver.validation import claim_diffs
from kinform.apiserver.validation.metadata import (
    validate_metadata_update,
    validate_metadata_update_again,
)

Json = dict[str, Any]

OLD: Json = {"name": "a", "namespace": "b", "uid": "one", "creationTimestamp": "then"}
NEW: Json = OLD | {
    "uid": "two",
    "labels": {"a b": "c"},
    "annotations": {"a c": "c"},
    "ownerReferences": [{"apiVersion": "v1", "kind": "A", "name": "", "uid": "x"}],
    "finalizers": ["x"],
}
LETTERS = {
    "metadata.labels": "l",
    "metadata.annotations": "a",
    "metadata.ownerReferences.name": "o",
    "metadata.uid": "U",
    "metadata.finalizers[0]": "F",
}


def kind(storage: str) -> Any:
    found = [one for one in kind_registry.builtin().all() if one.storage == storage]
    return found[0]


# What kube-apiserver 1.36 answered to a patch with all of these mistakes, cause by cause.
@pytest.mark.parametrize(
    "storage, subresource, expected",
    [
        ("configmaps", "", "laoUlaoUlaoFlaoF"),
        ("pods", "", "laoUlaoUlaoFlaoF"),
        ("deployments.apps", "", "laoUlaoUlaoF"),
        ("replicasets.apps", "status", "laoUlaoUlaoF"),
        ("jobs.batch", "status", "laoUlaoUlaoF"),
        ("cronjobs.batch", "", "laoUlaoUlaoF"),
        ("cronjobs.batch", "status", "laoUlao"),
        ("leases.coordination.k8s.io", "", "laoUlaoUlao"),
        ("events", "", "laoUlao"),
        ("endpointslices.discovery.k8s.io", "", "laoUlaolaoF"),
        ("roles.rbac.authorization.k8s.io", "", "laoUlaolaoFUlaoF"),
        ("persistentvolumeclaims", "status", "laoUlaoUlaoF"),
        ("poddisruptionbudgets.policy", "", "laoUlao"),
        ("limitranges", "", "laoUlaolaoF"),
    ],
)
def test_what_is_wrong_with_metadata_is_said_as_often_as_the_server_says_it(
    storage: str, subresource: str, expected: str
) -> None:
    new, old = {"metadata": NEW}, {"metadata": OLD}
    found = validate_metadata_update(kind(storage), new, old, subresource=subresource)
    found += validate_metadata_update_again(kind(storage), new, old, subresource=subresource)
    assert "".join(LETTERS[one.field] for one in found) == expected


def test_the_generation_of_an_update_is_not_judged() -> None:
    new, old = {"metadata": {**OLD, "generation": -1}}, {"metadata": OLD}
    assert validation.validate_update(kind("configmaps"), new, old) == []


@pytest.mark.parametrize(
    "value, expected",
    [
        ("a\tb\x01", r'"a\tb\x01"'),
        ("ä\u00a0\u200b", r'"ä\u00a0\u200b"'),
        ('a"b\\', r'"a\"b\\"'),
        ("<&>", '"<&>"'),
        ({"b": "<&>", "a": [1, None]}, r'{"b":"\u003c\u0026\u003e","a":[1,null]}'),
        (1e21, "1e+21"),
    ],
)
def test_a_value_is_shown_as_go_shows_it(value: object, expected: str) -> None:
    assert invalid("x", value, "no").text == f"Invalid value: {expected}: no"


def test_a_text_that_is_nested_too_deeply_is_refused_for_the_bracket_that_is_too_much() -> None:
    text = b'{"a":"[[[","b":' + b"[" * 10_000 + b"]" * 10_000 + b"}"
    assert syntax_error(text) == "invalid character '[' exceeded max depth"


CLAIM: Json = {
    "accessModes": ["ReadWriteOnce"],
    "resources": {"requests": {"storage": "1Gi"}},
    "volumeMode": "Filesystem",
}


def test_what_was_changed_of_a_claim_is_shown_with_what_is_around_it() -> None:
    after = CLAIM | {"resources": {"requests": {"storage": "1Gi"}, "limits": {"storage": "5Gi"}}}
    assert claim_diffs.difference(CLAIM, after).splitlines() == [
        "@@ -4,7 +4,9 @@",
        "  ],",
        '  "Selector": null,',
        '  "Resources": {',
        '-  "Limits": null,',
        '+  "Limits": {',
        '+   "storage": "5Gi"',
        "+  },",
        '   "Requests": {',
        '    "storage": "1Gi"',
        "   }",
    ]


def test_the_sources_of_a_claim_are_shown_with_all_their_fields() -> None:
    source = {"kind": "PersistentVolumeClaim", "name": "z"}
    before = CLAIM | {"dataSource": source, "dataSourceRef": source}
    after = CLAIM | {"volumeAttributesClassName": "q"}
    assert claim_diffs.difference(before, after).splitlines() == [
        "@@ -12,16 +12,7 @@",
        '  "VolumeName": "",',
        '  "StorageClassName": null,',
        '  "VolumeMode": "Filesystem",',
        '- "DataSource": {',
        '-  "APIGroup": null,',
        '-  "Kind": "PersistentVolumeClaim",',
        '-  "Name": "z"',
        "- },",
        '- "DataSourceRef": {',
        '-  "APIGroup": null,',
        '-  "Kind": "PersistentVolumeClaim",',
        '-  "Name": "z",',
        '-  "Namespace": null',
        "- },",
        '- "VolumeAttributesClassName": null',
        '+ "DataSource": null,',
        '+ "DataSourceRef": null,',
        '+ "VolumeAttributesClassName": "q"',
        " }",
    ]


def test_what_a_value_of_a_json_patch_has_twice_stays_as_it_is_written() -> None:
    body = (
        b'[{"op":"add","path":"/data","value":{"b":"1","a":[{"x":1,"x":{"y":2,"y":3}}],"b":"3"}}]'
    )
    patch, _ = decoding.decode_patch(body, "application/json-patch+json")
    result = json_patch.apply({"kind": "A"}, as_list(patch))
    written = '{"kind":"A","data":{"b":"1","a":[{"x":1,"x":{"y":2,"y":3}}],"b":"3"}}'
    assert duplicate_fields.text(result) == written
    places = [("data", "b"), ("data", "a", 0, "x"), ("data", "a", 0, "x", "y")]
    assert list(duplicate_fields.found(result)) == places
    assert duplicate_fields.plain(result) == {
        "kind": "A",
        "data": {"a": [{"x": {"y": 3}}], "b": "3"},
    }


def test_a_value_that_a_later_operation_goes_into_is_read_before() -> None:
    body = (
        b'[{"op":"add","path":"/data","value":{"b":"1","b":"3"}},'
        b'{"op":"add","path":"/data/c","value":"x"}]'
    )
    patch, _ = decoding.decode_patch(body, "application/json-patch+json")
    result = json_patch.apply({}, as_list(patch))
    assert duplicate_fields.text(result) == '{"data":{"b":"3","c":"x"}}'
