"""Recorded answers of a real kube-apiserver 1.36 for pods and the kinds that run them.

``creates`` has bodies and outcomes, ``updates`` the object before, the body and the outcome. An
outcome is a code with the object as it was stored, the causes of a refusal, or its message.
"""

from __future__ import annotations

import copy
import functools
import json
import lzma
from pathlib import Path
from typing import Any

from kinform.apiserver import defaults, validation
from kinform.apiserver.scheme import kind_registry
from kinform.apiserver.scheme.field_errors import FieldError
from kinform.apiserver.scheme.kind_registry import Kind

Json = dict[str, Any]

WORKLOADS = frozenset(
    "podtemplates replicationcontrollers deployments.apps replicasets.apps statefulsets.apps "
    "daemonsets.apps controllerrevisions.apps jobs.batch cronjobs.batch".split()
)


@functools.cache
def _recorded() -> Json:
    packed = Path(__file__).with_name("data_workloads.json.xz").read_bytes()
    return json.loads(lzma.decompress(packed))


def cases(table: str, storages: frozenset[str], *codes: int) -> list[Json]:
    """Return the recorded cases of some kinds with some outcomes."""
    return [
        case for case in _recorded()[table] if case["storage"] in storages and case["code"] in codes
    ]


def name_of(case: Json) -> str:
    return case["name"]


@functools.cache
def _kinds() -> dict[str, Kind]:
    return {kind.storage: kind for kind in kind_registry.builtin().all() if kind.version == "v1"}


def kind_of(storage: str) -> Kind:
    return _kinds()[storage]


def created(case: Json) -> tuple[Json, list[FieldError]]:
    """Do what the server does with a new object: return it, and what is wrong with it."""
    kind, obj = kind_of(case["storage"]), copy.deepcopy(case["body"])
    defaults.prepare_create(kind, obj)
    defaults.default(kind, obj)
    return obj, validation.validate(kind, obj)


def updated(case: Json) -> tuple[Json, list[FieldError]]:
    """Do what the server does with a changed object."""
    kind = kind_of(case["storage"])
    new, old = copy.deepcopy(case["new"]), copy.deepcopy(case["old"])
    defaults.prepare_update(kind, new, old)
    defaults.default(kind, new)
    return new, validation.validate_update(kind, new, old)


def causes(errors: list[FieldError]) -> list[tuple[str, str, str]]:
    """Return errors as the causes of a refusal, in order, each once."""
    return list(dict.fromkeys((str(one.problem), one.field, one.text) for one in errors))


def expected(case: Json) -> list[tuple[str, str, str]]:
    """Return the recorded causes, each once: the server repeats some."""
    return list(dict.fromkeys((reason, field, text) for reason, field, text in case["causes"]))


def assert_same_causes(case: Json, errors: list[FieldError]) -> None:
    """Compare causes; in maps the server has no order, so there only what is said counts."""
    ours, theirs = causes(errors), expected(case)
    in_maps = ("resources", "labels", "nodeSelector", "annotations")
    if any(word in field for _, field, _ in theirs for word in in_maps):
        ours, theirs = sorted(ours), sorted(theirs)
    assert ours == theirs
