"""CustomResourceDefinitions. What kube-apiserver 1.36 answered is in ``data_crd.json``."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kinform.apiserver.apiextensions import custom_kinds, definitions, establishing
from kinform.apiserver.apiextensions.schema import patterns
from kinform.apiserver.scheme.field_errors import FieldError

RECORDED = json.loads(Path(__file__).with_name("data_crd.json").read_text(encoding="utf-8"))
NOW = "2026-11-16T01:51:01Z"


def causes(errors: list[FieldError]) -> list[list[str]]:
    """Return errors as causes, sorted: the server walks maps in no order."""
    return sorted([str(error.problem), error.field, error.text] for error in errors)


def definition(**version: Any) -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    obj = {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wg"]},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    **version,
                }
            ],
        },
    }
    definitions.default(obj)
    establishing.prepare_for_create(obj)
    return obj


@pytest.mark.parametrize("case", RECORDED["definitions"], ids=lambda case: case["name"])
def test_a_definition_is_judged_as_by_the_server(case: dict[str, Any]) -> None:
    obj = copy.deepcopy(case["object"])
    definitions.default(obj)
    assert causes(definitions.validate(obj)) == sorted(case.get("causes", []))
    if "spec" in case:
        assert obj["spec"] == case["spec"]
        ours = ("not evaluated by this server", "not called by this server")
        heard = [text for text in definitions.warnings(obj) if not any(w in text for w in ours)]
        assert heard == case.get("warnings", [])


@pytest.mark.parametrize("case", RECORDED["updates"], ids=lambda case: case["name"])
def test_a_change_of_a_definition_is_judged_as_by_the_server(case: dict[str, Any]) -> None:
    new, old = copy.deepcopy(case["new"]), case["old"]
    definitions.default(new)
    establishing.prepare_for_update(new, old)
    assert causes(definitions.validate_update(new, old)) == sorted(case["causes"])
    if not case["causes"]:
        assert new["status"] == case["status"]


def test_defaults_are_set_once() -> None:
    for case in RECORDED["definitions"]:
        once = copy.deepcopy(case["object"])
        definitions.default(once)
        twice = copy.deepcopy(once)
        definitions.default(twice)
        assert once == twice


def test_a_definition_without_rivals_is_established_at_once() -> None:
    recorded = RECORDED["established"]
    obj = copy.deepcopy(recorded)
    establishing.prepare_for_create(obj)
    establishing.establish(obj, [], NOW)
    assert obj["status"] == recorded["status"]


@pytest.mark.parametrize("index", range(len(RECORDED["conflicts"])))
def test_names_that_others_have_are_not_accepted(index: int) -> None:
    case = RECORDED["conflicts"][index]
    obj = copy.deepcopy(RECORDED["established"])
    obj["metadata"] = {"name": "gizmos.c.example.com"}
    obj["spec"]["names"] = case["names"]
    establishing.prepare_for_create(obj)
    now = case["status"]["conditions"][0]["lastTransitionTime"]
    establishing.establish(obj, [RECORDED["established"], obj], now)
    assert obj["status"] == case["status"]


def test_names_in_other_groups_are_free() -> None:
    obj = definition()
    establishing.establish(obj, [RECORDED["established"]], NOW)
    assert establishing.is_established(obj)


def test_what_is_established_stays_so_when_its_new_names_are_taken() -> None:
    rival = definition()
    rival["metadata"]["name"] = "gizmos.example.com"
    rival["status"]["acceptedNames"] = {"plural": "gizmos", "kind": "Gizmo"}
    obj = definition()
    establishing.establish(obj, [rival], NOW)
    obj["spec"]["names"]["shortNames"] = ["gizmos"]
    establishing.establish(obj, [rival], "2027-01-01T00:00:00Z")
    first, second = obj["status"]["conditions"]
    assert (first["status"], first["reason"]) == ("False", "ShortNamesConflict")
    assert (second["status"], second["lastTransitionTime"]) == ("True", NOW)
    assert obj["status"]["acceptedNames"]["shortNames"] == ["wg"]


def test_nothing_is_served_before_it_is_established() -> None:
    assert custom_kinds.kinds_of(definition()) == []


def test_a_served_version_is_a_kind_as_discovery_shows_it() -> None:
    scale = {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}
    obj = definition(
        subresources={"status": {}, "scale": scale},
        selectableFields=[{"jsonPath": ".spec.color"}],
        additionalPrinterColumns=[{"name": "N", "type": "integer", "jsonPath": ".spec.n"}],
        deprecated=True,
    )
    hidden = {**obj["spec"]["versions"][0], "name": "v0", "served": False, "storage": False}
    obj["spec"]["versions"].append(hidden)
    establishing.establish(obj, [], NOW)
    (kind,) = custom_kinds.kinds_of(obj)
    assert (kind.api_version, kind.kind, kind.plural, kind.singular, kind.list_kind) == (
        "example.com/v1", "Widget", "widgets", "widget", "WidgetList",
    )  # fmt: skip
    assert " ".join(kind.verbs) == "delete deletecollection get list patch create update watch"
    assert kind.storage == "widgets.example.com"
    assert kind.short_names == ("wg",)
    status, of_scale = kind.subresources["status"], kind.subresources["scale"]
    assert (status.kind, status.verbs) == ("Widget", ("get", "patch", "update"))
    assert (of_scale.group, of_scale.version, of_scale.kind) == ("autoscaling", "v1", "Scale")
    assert kind.custom is not None
    assert kind.custom.scale == scale
    assert kind.custom.has_status
    assert kind.custom.selectable_fields == (".spec.color",)
    assert kind.deprecation == "example.com/v1 Widget is deprecated"


def test_a_definition_that_goes_keeps_its_objects_readable() -> None:
    obj = definition()
    establishing.establish(obj, [], NOW)
    establishing.mark_deleting(obj, NOW)
    assert obj["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert obj["status"]["conditions"][-1]["reason"] == "InstanceDeletionPending"
    establishing.mark_terminating(obj, "2027-01-01T00:00:00Z")
    last = obj["status"]["conditions"][-1]
    assert (last["reason"], last["message"], last["lastTransitionTime"]) == (
        "InstanceDeletionInProgress", "CustomResource deletion is in progress", NOW,
    )  # fmt: skip
    (kind,) = custom_kinds.kinds_of(obj)
    assert kind.custom is not None
    assert kind.custom.is_terminating


def test_what_is_not_evaluated_is_named_in_a_warning() -> None:
    rule = {"rule": "self.size() > 1"}
    script = {"type": "string", "pattern": "\\pL{1000}", "x-kubernetes-validations": [rule]}
    schema = {"type": "object", "properties": {"spec": script}}
    obj = definition(schema={"openAPIV3Schema": schema})
    obj["spec"]["conversion"] = {"strategy": "Webhook"}
    place = "spec.versions[0].schema.openAPIV3Schema.properties[spec]"
    assert definitions.warnings(obj) == [
        f"{place}.x-kubernetes-validations: CEL rules are not evaluated by this server",
        f"{place}.pattern: this regular expression is not evaluated by this server",
        (
            "spec.conversion.webhook: conversion webhooks are not called by this server: "
            "objects are served in every version as they are stored"
        ),
    ]


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(a", "missing closing ): `(a`"),
        ("a)", "unexpected ): `a)`"),
        ("[a", "missing closing ]: `[a`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?<=a)", "invalid named capture: `(?<=a)`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a{2,1}", "invalid repeat count: `{2,1}`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        (r"\y", r"invalid escape sequence: `\y`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("(?P<n>a)(?P=n)", "invalid or unsupported Perl syntax: `(?P`"),
        (r"\pQ", r"invalid character class range: `\pQ`"),
        ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
        ("x{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
        ("\\", "trailing backslash at end of expression: ``"),
        (r"[a-\d]", r"invalid escape sequence: `\d`"),
        ("(?P<n", "invalid named capture: `(?P<n`"),
        (r"\Z", r"invalid escape sequence: `\Z`"),
        (r"\x{fffffffff}", r"invalid escape sequence: `\x{ffffff`"),
        (r"[\x{110000}]", r"invalid escape sequence: `\x{110000`"),
        (r"\x{}", r"invalid escape sequence: `\x{}`"),
        (r"\xg", r"invalid escape sequence: `\xg`"),
        ("((a{1000}){1000}){1000}", "invalid repeat count: `{1000}`"),
        ("((a+){500}){3}", "invalid repeat count: `{3}`"),
        ("(" * 1001 + ")" * 1001, f"expression nests too deeply: `{'(' * 1001}{')' * 1001}`"),
    ],
)
def test_a_bad_pattern_is_refused_in_the_servers_words(pattern: str, words: str) -> None:
    assert patterns.complaint(pattern) == f"error parsing regexp: {words}"


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        ("a{,3}", "a{,3}", "aaa"),
        ("(?<n>a)b", "ab", "b"),
        ("(?i)a|b", "B", "c"),
        ("^(?:(?i)a)b$", "Ab", "AB"),
        ("[]a]", "]", "b"),
        ("^[^]a]$", "b", "]"),
        (r"^\Qa.b\E$", "a.b", "axb"),
        (r"^\x{e9}$", "é", "e"),
        (r"^[\pL-]+$", "é-", "1"),
        ("^a$", "a", "a\n"),
        ("(?m)^a$", "a\nb", "ab"),
        (r"^\S\s$", "a ", "a\v"),
        (r"^[[:upper:][:digit:]_]+\z", "A1_", "a"),
    ],
)
@pytest.mark.parametrize("engine", [patterns.by_re2, patterns.by_backtracking])
def test_a_pattern_means_what_it_means_in_go(
    pattern: str, good: str, bad: str, engine: Callable[[str], Callable[[str], bool]]
) -> None:
    is_found = engine(pattern)
    assert is_found(good)
    assert not is_found(bad)


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        (r"^\p{Greek}+$", "αβγ", "abc"),
        (r"^[^\S]$", " ", "a"),
        (r"^\PL$", "1", "a"),
        (r"^[[:^alpha:]]$", "1", "a"),
        (r"^\07\101$", "\x07A", "7A"),
        ("^(a+)+$", "aaa", "aab"),
        ("^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$", "a.b-c", "a..b"),
    ],
)
def test_re2_evaluates_what_python_cannot(pattern: str, good: str, bad: str) -> None:
    is_found = patterns.by_re2(pattern)
    assert patterns.complaint(pattern) == ""
    assert is_found(good)
    assert not is_found(bad)


@pytest.mark.parametrize(
    "pattern", ["^(a+)+$", "(a|a)*", "(a?){30}a{30}", "(.*a){9}", "(a|b|ab)*c"]
)
def test_without_re2_a_pattern_that_may_explode_is_not_evaluated(pattern: str) -> None:
    with pytest.raises(patterns.Unsupported):
        patterns.by_backtracking(pattern)


def test_a_text_with_half_a_surrogate_pair_is_matched() -> None:
    assert patterns.by_re2("^a.$")("a\ud800")
