"""No single request holds the embedded server for more than a second, or ends in a traceback."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from kinform.apiserver._cluster import Cluster
from kinform.apiserver.endpoints.application import Application
from kinform.apiserver.endpoints.messages import BODY_LIMIT, ServerRequest
from kinform.apiserver.server import preload

JSON = "application/json"
YAML = "application/yaml"
APPLY = "application/apply-patch+yaml"
JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
CORE = "/api/v1/namespaces/default"
MAPS, PODS, SECRETS = f"{CORE}/configmaps", f"{CORE}/pods", f"{CORE}/secrets"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CUSTOM = "/apis/x.io/v1/namespaces/default/as"
MOST = 1.0
"""Seconds of CPU time that a request may take."""


class Step(NamedTuple):
    """One request."""

    method: str
    path: str
    body: object = None
    form: str = JSON


class Answer(NamedTuple):
    code: int
    body: bytes
    spent: float

    @property
    def message(self) -> str:
        return str(json.loads(self.body).get("message", ""))


def application() -> Application:
    preload()
    made = Application(Cluster(history=10, seed=1))
    made.start()
    return made


def send(server: Application, step: Step) -> Answer:
    """Return the answer, and the CPU time that it took."""
    body = step.body
    if not isinstance(body, bytes):
        body = b"" if body is None else json.dumps(body).encode()
    headers = {"content-type": step.form, "accept": TABLE if step.method == "GET" else JSON}
    request = ServerRequest.of(step.method, step.path, headers=headers, body=body)
    began = time.process_time()
    response = asyncio.run(server.handle(request))
    spent = time.process_time() - began
    assert isinstance(response.body, bytes)
    return Answer(response.status, response.body, spent)


def definition(schema: object, **version: object) -> dict[str, Any]:
    names = {"plural": "as", "singular": "a", "kind": "A", "listKind": "AList"}
    served = {"name": "v1", "served": True, "storage": True, **version}
    spec = {
        "group": "x.io",
        "names": names,
        "scope": "Namespaced",
        "versions": [served | {"schema": {"openAPIV3Schema": schema}}],
    }
    return {"metadata": {"name": "as.x.io"}, "spec": spec}


def with_field(schema: object) -> dict[str, Any]:
    return definition({"type": "object", "properties": {"s": schema}})


def custom(value: object) -> dict[str, Any]:
    return {"apiVersion": "x.io/v1", "kind": "A", "metadata": {"name": "a"}, "s": value}


def containers(count: int, prefix: str, value: str) -> list[Any]:
    env = [{"name": f"{prefix}{n}", "value": value} for n in range(count)]
    return [{"name": "c", "image": "i", "env": env}]


def pod(count: int, prefix: str = "E", value: str = "v") -> dict[str, Any]:
    spec = {"containers": containers(count, prefix, value)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


def deployment(count: int, prefix: str = "E", value: str = "v") -> dict[str, Any]:
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": containers(count, prefix, value)},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "p"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
    }


def finalizers(count: int, group: str = "a.b") -> list[str]:
    return [f"{group}/{n}" for n in range(count)]


def applied(path: str, manager: str) -> str:
    return f"{path}?fieldManager={manager}&force=true"


def column(path: str) -> list[Any]:
    return [{"name": "x", "type": "string", "jsonPath": path}]


ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
NESTED: dict[str, Any] = {}
for _ in range(100):
    NESTED = {"a": NESTED}
ALTERNATIVES = [{"items": {"anyOf": [{"minimum": n} for n in range(100)]}} for _ in range(100)]
FINALIZED = {"metadata": {"name": "c", "finalizers": finalizers(19_000)}}
MATCHES = {f"k{n}": "v" for n in range(19_000)}
CONFIGURATION = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}

CASES: dict[str, tuple[list[Step], int]] = {
    "nested repetition in a pattern": (
        [
            Step("POST", DEFINITIONS, with_field({"type": "string", "pattern": "^(a+)+$"})),
            Step("POST", CUSTOM, custom("a" * 40 + "!")),
        ],
        422,
    ),
    "alternatives in a pattern": (
        [
            Step("POST", DEFINITIONS, with_field({"type": "string", "pattern": "^(a|a)*$"})),
            Step("POST", CUSTOM, custom("a" * 40 + "!")),
        ],
        422,
    ),
    "several repetitions in a pattern": (
        [
            Step("POST", DEFINITIONS, with_field({"type": "string", "pattern": "^.*.*.*=$"})),
            Step("POST", CUSTOM, custom("a" * 100_000)),
        ],
        422,
    ),
    "a pattern of many states": (
        [
            Step(
                "POST",
                DEFINITIONS,
                with_field({"type": "string", "pattern": "[ab]*a[ab]{900}c"}),
            ),
            Step("POST", CUSTOM, custom("".join(random.Random(1).choices("ab", k=1_000_000)))),
        ],
        422,
    ),
    "a pattern that does not match a default": (
        [
            Step(
                "POST",
                DEFINITIONS,
                with_field({"type": "string", "pattern": "^(a+)+$", "default": "a" * 40 + "!"}),
            ),
        ],
        422,
    ),
    "a pattern of many escapes": (
        [Step("POST", DEFINITIONS, with_field({"type": "string", "pattern": r"\d" * 1_000_000}))],
        422,
    ),
    "alternatives within alternatives": (
        [
            Step(
                "POST",
                DEFINITIONS,
                with_field({"type": "array", "items": {"type": "integer"}, "anyOf": ALTERNATIVES}),
            ),
            Step("POST", CUSTOM, custom([-1] * 3000)),
        ],
        422,
    ),
    "a long enumeration": (
        [
            Step(
                "POST",
                DEFINITIONS,
                with_field(
                    {
                        "type": "array",
                        "items": {"type": "string", "enum": [str(n) for n in range(20_000)]},
                    }
                ),
            ),
            Step("POST", CUSTOM, custom(["x"] * 20_000)),
        ],
        422,
    ),
    "many required fields": (
        [
            Step(
                "POST",
                DEFINITIONS,
                with_field(
                    {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": [f"f{n}" for n in range(10_000)],
                            "x-kubernetes-preserve-unknown-fields": True,
                        },
                    }
                ),
            ),
            Step("POST", CUSTOM, custom([{}] * 20_000)),
        ],
        422,
    ),
    "descents in a printer column": (
        [
            Step(
                "POST",
                DEFINITIONS,
                definition(ANYTHING, additionalPrinterColumns=column("..a" * 6)),
            ),
            Step("POST", CUSTOM, custom(NESTED)),
            Step("GET", CUSTOM),
        ],
        200,
    ),
    "filters in a printer column": (
        [
            Step(
                "POST",
                DEFINITIONS,
                definition(
                    ANYTHING, additionalPrinterColumns=column(".s[?(@..a)][?(@..b)][?(@..c)]")
                ),
            ),
            Step("POST", CUSTOM, custom([[[1] * 30] * 30] * 30)),
            Step("GET", CUSTOM),
        ],
        200,
    ),
    "YAML of many collections": (
        [Step("POST", MAPS, b"a: [" + b"[]," * (BODY_LIMIT // 4) + b"]", YAML)],
        413,
    ),
    "YAML of many scalars": (
        [Step("POST", MAPS, b"a: [" + b"1," * (BODY_LIMIT // 3) + b"]", YAML)],
        413,
    ),
    "YAML of many repeated keys": (
        [Step("POST", MAPS, b"a: 1\n" * (BODY_LIMIT // 6), YAML)],
        413,
    ),
    "YAML of many aliases": (
        [
            Step(
                "POST",
                MAPS,
                b"x: &a [" + b"a," * 30_000 + b"]\ny: [" + b",".join([b"*a"] * 98) + b"]\n",
                YAML,
            )
        ],
        400,
    ),
    "a strategic merge of many items, refused": (
        [Step("POST", PODS, pod(9000)), Step("PATCH", f"{PODS}/p", pod(9000, "F"), STRATEGIC)],
        422,
    ),
    "a strategic merge of many items": (
        [
            Step("POST", DEPLOYMENTS, deployment(9000)),
            Step("PATCH", f"{DEPLOYMENTS}/p", deployment(9000, "F"), STRATEGIC),
        ],
        200,
    ),
    "a strategic merge that deletes many items": (
        [
            Step("POST", DEPLOYMENTS, deployment(9000)),
            Step(
                "PATCH",
                f"{DEPLOYMENTS}/p",
                {
                    "spec": {
                        "template": {
                            "spec": {
                                "containers": [
                                    {
                                        "name": "c",
                                        "env": [
                                            {"name": f"E{n}", "$patch": "delete"}
                                            for n in range(9000)
                                        ],
                                    }
                                ]
                            }
                        }
                    }
                },
                STRATEGIC,
            ),
        ],
        200,
    ),
    "a strategic merge of many plain values": (
        [
            Step("POST", MAPS, FINALIZED),
            Step(
                "PATCH",
                f"{MAPS}/c",
                {"metadata": {"finalizers": finalizers(19_000, "c.d")}},
                STRATEGIC,
            ),
        ],
        200,
    ),
    "a strategic merge that deletes many plain values": (
        [
            Step("POST", MAPS, FINALIZED),
            Step(
                "PATCH",
                f"{MAPS}/c",
                {"metadata": {"$deleteFromPrimitiveList/finalizers": finalizers(19_000)}},
                STRATEGIC,
            ),
        ],
        200,
    ),
    "an apply of many items, refused": (
        [
            Step("PATCH", applied(f"{PODS}/p", "a"), pod(9000), APPLY),
            Step("PATCH", applied(f"{PODS}/p", "b"), pod(9000, value="w"), APPLY),
        ],
        422,
    ),
    "an apply of many items": (
        [
            Step("PATCH", applied(f"{DEPLOYMENTS}/p", "a"), deployment(9000), APPLY),
            Step("PATCH", applied(f"{DEPLOYMENTS}/p", "b"), deployment(9000, value="w"), APPLY),
        ],
        200,
    ),
    "an apply of many fields that conflict": (
        [
            Step("PATCH", f"{MAPS}/c?fieldManager=a", CONFIGURATION | {"data": MATCHES}, APPLY),
            Step(
                "PATCH",
                f"{MAPS}/c?fieldManager=b",
                CONFIGURATION | {"data": dict.fromkeys(MATCHES, "w")},
                APPLY,
            ),
        ],
        409,
    ),
    "a definition of many fields": (
        [
            Step(
                "POST",
                DEFINITIONS,
                definition(
                    {
                        "type": "object",
                        "properties": {f"p{n}": {"type": "string"} for n in range(12_000)},
                    }
                ),
            )
        ],
        201,
    ),
    "an object of too many values": ([Step("POST", PODS, pod(40_000))], 413),
    "JSON that ends too early": (
        [Step("POST", MAPS, b"[" + b"1," * (BODY_LIMIT // 2 - 10))],
        400,
    ),
    "a number of very many digits": (
        [Step("POST", MAPS, b'{"metadata":{"generation":' + b"9" * (BODY_LIMIT - 100) + b"}}")],
        400,
    ),
    "a patch of operations on ever deeper paths": (
        [
            Step("POST", MAPS, {"metadata": {"name": "c"}}),
            Step(
                "PATCH",
                f"{MAPS}/c",
                [{"op": "add", "path": "/data" + "/a" * n, "value": {}} for n in range(600)],
                JSON_PATCH,
            ),
        ],
        422,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_no_request_takes_longer_than_a_second(name: str) -> None:
    steps, code = CASES[name]
    server = application()

    answers = [send(server, step) for step in steps]

    assert answers[-1].code == code, answers[-1].body[:300]
    assert max(answer.spent for answer in answers) < MOST


def test_an_object_as_large_as_real_ones_is_taken() -> None:
    """A long text counts as one value, with any content."""
    text = "a,b,{}\n" * 100_000

    created = send(application(), Step("POST", MAPS, CONFIGURATION | {"data": {"a": text}}))

    assert created.code == 201


@pytest.mark.slow
def test_alternatives_that_cost_too_much_are_refused_as_cel_rules_are() -> None:
    steps, _ = CASES["alternatives within alternatives"]
    server = application()

    answer = [send(server, step) for step in steps][-1]

    assert answer.message == (
        "validation failed due to running out of cost budget, "
        "no further validation rules will be run"
    )


def test_a_cell_whose_path_costs_too_much_is_empty_and_the_list_is_shown() -> None:
    steps, _ = CASES["descents in a printer column"]
    server = application()

    answer = [send(server, step) for step in steps][-1]

    assert [row["cells"] for row in json.loads(answer.body)["rows"]] == [["a", None]]


# --- what used to be a 500


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"apiVersion": [None]}, "cannot unmarshal array into Go struct field .apiVersion of type"),
        ({"apiVersion": -1}, "cannot unmarshal number into Go struct field .apiVersion of type"),
        ({"apiVersion": {"a": 1}}, "cannot unmarshal object into Go struct field .apiVersion of"),
        ({"kind": [{}]}, "cannot unmarshal array into Go struct field .kind of type string"),
        ({"kind": True}, "cannot unmarshal bool into Go struct field .kind of type string"),
        (
            {"kind": 1.5, "apiVersion": 2},
            "cannot unmarshal number into Go struct field .apiVersion",
        ),
        ({"apiVersion": "/a"}, 'no kind "Secret" is registered for version "a"'),
        ({"apiVersion": "a/b/c"}, "unexpected GroupVersion string: a/b/c"),
        ({"apiVersion": "a/"}, "Object 'apiVersion' is missing in '{"),
    ],
)
@pytest.mark.parametrize("form", [MERGE, JSON_PATCH])
def test_a_patch_that_breaks_version_or_kind_is_refused_as_by_the_real_server(
    change: dict[str, object], why: str, form: str
) -> None:
    server = application()
    send(server, Step("POST", SECRETS, {"metadata": {"name": "a"}, "stringData": {"p": "x"}}))
    before = send(server, Step("GET", f"{SECRETS}/a")).body
    operations = [{"op": "add", "path": f"/{name}", "value": it} for name, it in change.items()]

    answer = send(
        server, Step("PATCH", f"{SECRETS}/a", change if form == MERGE else operations, form)
    )

    assert answer.code == 422
    assert why in answer.message
    assert send(server, Step("GET", f"{SECRETS}/a")).body == before


def test_a_strategic_merge_that_breaks_the_version_is_refused_as_by_the_real_server() -> None:
    server = application()
    send(server, Step("POST", MAPS, {"metadata": {"name": "a"}}))

    answer = send(server, Step("PATCH", f"{MAPS}/a", {"apiVersion": [None]}, STRATEGIC))

    shown = 'patch: Invalid value: "map[apiVersion:[<nil>]]": unrecognized type: string'
    assert (answer.code, answer.message) == (422, f' "" is invalid: {shown}')


@pytest.mark.parametrize(
    ("schema", "code", "why"),
    [
        ({"type": "string", "pattern": r"\x{fffffffff}"}, 422, r"sequence: `\x{ffffff`"),
        (
            {"type": "string", "pattern": r"\x{fffffffff}", "default": "a"},
            422,
            r"sequence: `\x{ffffff`",
        ),
        ({"type": "string", "minimum": "*", "default": "x"}, 400, "minimum of type float64"),
    ],
)
def test_a_definition_that_cannot_be_evaluated_is_refused_and_not_stored(
    schema: object, code: int, why: str
) -> None:
    server = application()

    answer = send(server, Step("POST", DEFINITIONS, with_field(schema)))

    assert answer.code == code
    assert why in answer.message
    assert send(server, Step("GET", f"{DEFINITIONS}/as.x.io")).code == 404


ODD: list[object] = [
    None, 0, -1, 1.5, 2**63, 2**64, 1e300, True, "", "x", "*", "a/b", "..", "\0", "9" * 30, "1Ki",
    [], {}, [None], [[]], [{}], {"a": None}, {"": ""}, ["a", 1], {"$patch": "delete"},
    [{"$patch": "delete"}], {"$retainKeys": ["a"]}, [{"name": "a"}, {"name": "a"}], "127.0.0.1",
]  # fmt: skip


def odd_object(pick: random.Random, schema: Any, depth: int) -> object:
    """Return something like an object of a schema, with odd values in odd places."""
    if depth == 0 or schema is None or pick.random() < 0.12:
        return pick.choice(ODD)
    below: Callable[[Any], object] = lambda it: odd_object(pick, it, depth - 1)  # noqa: E731
    if schema.type == "array":
        return [below(schema.items) for _ in range(pick.randint(0, 3))]
    if schema.type == "object" and schema.values is not None:
        return {pick.choice("abc"): below(schema.values) for _ in range(2)}
    if schema.type == "object" and schema.properties:
        names = pick.sample(list(schema.properties), min(len(schema.properties), 5))
        names += schema.raw.get("required", [])
        return {name: below(schema.properties[name]) for name in names}
    return pick.choice(["a", "b", "TCP", "1", "100m", "50%", 0, 1, 80, False])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_odd_objects_of_every_kind_end_in_no_traceback(
    seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    """A 500 of the server's own making is logged with its traceback; there is none."""
    from kinform.apiserver.scheme.kind_registry import schema_of

    pick, server = random.Random(seed), application()
    kinds = [kind for kind in server.cluster.kinds.all() if "create" in kind.verbs]
    for kind in kinds:
        root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
        path = f"{root}{'/namespaces/default' if kind.namespaced else ''}/{kind.plural}"
        identity = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "a"}}
        for method in ("POST", "PUT", JSON_PATCH, MERGE, STRATEGIC, APPLY):
            body = odd_object(pick, schema_of(kind), 6)
            if isinstance(body, dict) and pick.random() < 0.8:
                body |= identity
            form = JSON if method in {"POST", "PUT"} else method
            if form == JSON_PATCH:
                where = f"/{pick.choice(['spec', 'kind', 'apiVersion', 'metadata', 'data', ''])}"
                body = [{"op": pick.choice(["add", "replace"]), "path": where, "value": body}]
            target = path if method == "POST" else f"{path}/a?fieldManager=x&force=true"
            target = target if form == APPLY else target.partition("?")[0]
            verb = method if form == JSON else "PATCH"
            assert send(server, Step(verb, target, body, form)).spent < MOST

    assert [record.getMessage() for record in caplog.records if record.exc_info] == []
