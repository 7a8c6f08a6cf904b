"""Recorded answers of a kube-apiserver 1.36 to sequences of writes, and their replay.

Each step of a sequence is one request: its ``answer`` is the object or the Status that came back,
without what the server sets only after it has assigned the fields (uid, addresses, tolerations of
the admission). A plain write is replayed by giving the answer, without its managedFields, as the
object to be stored; an apply by applying what was ``applied`` to the answer before it.
"""

from __future__ import annotations

import copy
import functools
import json
import lzma
from pathlib import Path
from typing import Any

from kinform.apiserver.endpoints.status import StatusError
from kinform.apiserver.fieldmanager import apply, managed_fields
from kinform.apiserver.scheme import kind_registry, schemas
from kinform.apiserver.scheme.kind_registry import CustomVersion, Kind, Subresource
from kinform.apiserver.scheme.schemas import Schema
from kinform.apiserver.serializer import decoding

_FILE = Path(__file__).parent / "data_apply.json.xz"

Step = dict[str, Any]


@functools.cache
def recording() -> dict[str, Any]:
    """Return the whole file."""
    found: dict[str, Any] = json.loads(lzma.decompress(_FILE.read_bytes()))
    return found


def names(*, applying: bool) -> list[str]:
    """Return the names of the sequences that apply somewhere, or of those that do not."""
    return [
        sequence["name"]
        for sequence in recording()["sequences"]
        if any("applied" in step for step in sequence["steps"]) == applying
    ]


def steps(name: str) -> list[Step]:
    """Return copies of the steps of a sequence."""
    found = next(one for one in recording()["sequences"] if one["name"] == name)
    return copy.deepcopy(found["steps"])


@functools.cache
def kind_of(path: str) -> tuple[Kind, Schema]:
    """Return a kind by ``apps/v1/deployments``, or a custom one by its plural."""
    if path in {"widgets", "looses"}:
        return _custom(path, recording()[path])
    *group, version, plural = path.split("/")
    kind = kind_registry.builtin().find("".join(group), version, plural)
    assert kind is not None
    return kind, schemas.builtin(kind.definition)


def _custom(plural: str, schema: dict[str, object]) -> tuple[Kind, Schema]:
    name = plural[:-1].capitalize()
    kind = Kind(
        group="apply.example.com",
        version="v1",
        kind=name,
        plural=plural,
        singular=name.lower(),
        namespaced=True,
        verbs=(),
        subresources={"status": Subresource(name="status", verbs=(), kind=name)},
        custom=CustomVersion(definition=f"{plural}.apply.example.com", schema=schema),
    )
    return kind, schemas.custom(schema)


def replay(step: Step, live: dict[str, Any] | None) -> dict[str, Any]:
    """Do one step and return the object that would be stored, or the Status of the refusal."""
    kind, schema = kind_of(step["kind"])
    now = _time(step["answer"])
    subresource = step.get("subresource", "")
    if "applied" in step:
        try:
            new = apply.apply(
                kind,
                schema,
                step["applied"],
                live=live,
                manager=step["manager"],
                force=step.get("force", False),
                now=now,
                subresource=subresource,
            )
            new = copy.deepcopy(new)
            decoding.convert(kind, schema, new)
        except StatusError as error:
            return error.to_dict()
    else:
        new = copy.deepcopy(step["answer"])
        new["metadata"].pop("managedFields", None)
        if "sent" in step:
            new["metadata"]["managedFields"] = step["sent"]
        if step.get("creates"):
            managed_fields.on_create(kind, schema, new, manager=step["manager"], now=now)
        else:
            assert live is not None
            managed_fields.on_update(
                kind,
                schema,
                new,
                old=live,
                manager=step["manager"],
                now=now,
                subresource=subresource,
            )
    if live is not None:
        managed_fields.restore_times(new, live)
    return new


def _time(answer: dict[str, Any]) -> str:
    """Return when the server says that it happened: nothing in an answer is later."""
    entries = answer["metadata"].get("managedFields", [])
    return max((entry.get("time", "") for entry in entries), default="2024-01-01T00:00:00Z")


def is_refusal(answer: dict[str, Any]) -> bool:
    """Tell whether an answer is a Status."""
    return bool(answer["kind"] == "Status")


def owners(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the managedFields of an object."""
    found: list[dict[str, Any]] = answer["metadata"].get("managedFields", [])
    return found
