"""Bodies: the texts are those that a real server answered."""

from __future__ import annotations

import copy
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinform.apiserver.endpoints.status import StatusError
from kinform.apiserver.scheme import schemas
from kinform.apiserver.scheme.kind_registry import CustomVersion, Kind
from kinform.apiserver.serializer import decoding
from kinform.apiserver.serializer.json_values import Json, syntax_error

JSON = "application/json"
YAML = "application/yaml"


def builtin(kind: str, plural: str, package: str = "core.v1", group: str = "") -> Kind:
    return Kind(
        group=group,
        version="v1",
        kind=kind,
        plural=plural,
        singular=kind.lower(),
        namespaced=True,
        verbs=(),
        storage=f"{plural}.{group}" if group else plural,
        definition=f"io.k8s.api.{package}.{kind}",
    )


POD = builtin("Pod", "pods")
CONFIG_MAP = builtin("ConfigMap", "configmaps")
SECRET = builtin("Secret", "secrets")
LEASE = builtin("Lease", "leases", "coordination.v1", "coordination.k8s.io")
DEPLOYMENT = builtin("Deployment", "deployments", "apps.v1", "apps")
SCHEMA: Json = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "a": {"type": "string"},
                "open": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": True,
                    "properties": {
                        "in": {"type": "object", "properties": {"x": {"type": "string"}}}
                    },
                },
                "emb": {
                    "type": "object",
                    "x-kubernetes-embedded-resource": True,
                    "properties": {"spec": {"type": "object"}},
                },
                "m": {
                    "type": "object",
                    "additionalProperties": {
                        "type": "object",
                        "properties": {"k": {"type": "string"}},
                    },
                },
                "l": {
                    "type": "array",
                    "items": {"type": "object", "properties": {"k": {"type": "string"}}},
                },
            },
        }
    },
}
CUSTOM = Kind(
    group="example.com",
    version="v1",
    kind="Patcher",
    plural="patchers",
    singular="patcher",
    namespaced=True,
    verbs=(),
    custom=CustomVersion(definition="patchers.example.com", schema=SCHEMA),
)


def schema_of(kind: Kind) -> schemas.Schema:
    if kind.custom is not None:
        return schemas.custom(kind.custom.schema)
    return schemas.builtin(kind.definition)


def read(kind: Kind, body: object, media: str = JSON) -> tuple[Json, list[str]]:
    """Decode and check as for a create; return the object and the complaints."""
    raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
    is_custom = kind.custom is not None
    obj, duplicates = decoding.decode(raw, media, kind=kind.kind, is_custom=is_custom)
    checked = decoding.check(kind, schema_of(kind), obj, duplicates=duplicates)
    return obj, checked.complaints


def refusal(kind: Kind, body: object, media: str = JSON) -> StatusError:
    with pytest.raises(StatusError) as caught:
        read(kind, body, media)
    return caught.value


def pod(**spec: object) -> Json:
    return {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c"}], **spec}}


def container(**fields: object) -> Json:
    return pod(containers=[{"name": "c", **fields}])


@pytest.mark.parametrize(
    ("body", "problem", "shown"),
    [
        (b"", "unexpected end of JSON input", "<empty>"),
        (b"  ", "unexpected end of JSON input", "2020"),
        (b"{", "unexpected end of JSON input", "{"),
        (b'{"a":1,}', "invalid character '}' looking for beginning of object key string", None),
        (b"{} {}", "invalid character '{' after top-level value", None),
        (b'{"a":tru}', "invalid character '}' in literal true (expecting 'e')", None),
        (b'{"a":01}', "invalid character '1' after object key:value pair", None),
        (b'{"a":1e}', "invalid character '}' in exponent of numeric literal", None),
        (b'{"a":"x', "unexpected end of JSON input", None),
        (b'{"a":"\\q"}', "invalid character 'q' in string escape code", None),
        (b'{"a":"\x01"}', "invalid character '\\x01' in string literal", None),
        (b'{"a":[1,2}', "invalid character '}' after array element", None),
        (b'{"a" 1}', "invalid character '1' after object key", None),
        (b'{"a":-}', "invalid character '}' in numeric literal", None),
        (b'{"a":1.}', "invalid character '}' after decimal point in numeric literal", None),
        (b'{"a":nul', "invalid character ' ' in literal null (expecting 'l')", None),
        (b"{\"a\":'x'}", "invalid character '\\'' looking for beginning of value", None),
        (b"xyz", "invalid character 'x' looking for beginning of value", "78797a"),
    ],
)
def test_invalid_json_is_refused_in_gos_words(body: bytes, problem: str, shown: str | None) -> None:
    shown = body.decode() if shown is None else shown
    before = "the object provided is unrecognized (must be of type ConfigMap): "
    before += "couldn't get version/kind; json parse error: "
    assert refusal(CONFIG_MAP, body).message == f"{before}{problem} ({shown})"


@settings(max_examples=40)
@given(st.binary(max_size=12) | st.text('{}[]",:0123456789.eE+-truefalsn \\u', max_size=14))
def test_gos_words_agree_with_a_decoder_on_what_is_json(given: bytes | str) -> None:
    body = given if isinstance(given, bytes) else given.encode()
    try:
        json.loads(body.decode("utf-8", "surrogateescape"), parse_constant=int)
    except ValueError:
        assert syntax_error(body)
    else:
        assert not syntax_error(body)


def test_a_long_body_is_shown_by_its_beginning() -> None:
    body = b'{"apiVersion":1,"kind":"ConfigMap"}'
    assert refusal(CONFIG_MAP, body).message.endswith(
        "json: cannot unmarshal number into Go struct field .apiVersion of type string "
        '({"apiVersion":1,"kind":"Config ...)'
    )


def test_a_list_is_refused_as_an_object() -> None:
    assert refusal(CONFIG_MAP, b"[]").message == (
        "the object provided is unrecognized (must be of type ConfigMap): couldn't get "
        "version/kind; json parse error: json: cannot unmarshal array into Go value of type "
        'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
        'Kind string "json:\\"kind,omitempty\\"" } (5b5d)'
    )


def test_options_are_refused_without_their_kind() -> None:
    with pytest.raises(StatusError, match=r"^couldn't get version/kind; json parse error: un"):
        decoding.decode(b"{", JSON)


def test_null_is_an_empty_object() -> None:
    assert decoding.decode(b"null", JSON) == ({}, [])


@pytest.mark.parametrize("media", ["", JSON, "APPLICATION/JSON; charset=latin1"])
def test_json_is_read_by_any_of_its_names(media: str) -> None:
    assert decoding.decode(b'{"a": 1}', media) == ({"a": 1}, [])


@pytest.mark.parametrize("media", ["text/yaml", "*/*", "application/cbor"])
def test_another_form_is_refused(media: str) -> None:
    with pytest.raises(StatusError) as caught:
        decoding.decode(b"{}", media)
    assert caught.value.code == 415
    assert caught.value.message == (
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    )


def test_bytes_that_are_no_text_are_replaced() -> None:
    obj, _ = decoding.decode(b'{"data":{"a":"\xff\xfex\\ud800"}}', JSON)
    assert obj["data"]["a"].startswith("\ufffd\ufffdx")


def test_complaints_are_in_the_order_of_the_document() -> None:
    body = (
        b'{"metadata":{"name":"a","labels":{"a":"1","a":"2"},"lab":1},'
        b'"spec":{"containers":[{"name":"c","image":"i","image":"j","imag":1,"imag":2}]}}'
    )
    obj, complaints = read(POD, body)
    assert complaints == [
        'duplicate field "metadata.labels.a"',
        'unknown field "metadata.lab"',
        'duplicate field "spec.containers[0].image"',
        'unknown field "spec.containers[0].imag"',
    ]
    assert obj["spec"] == {"containers": [{"name": "c", "image": "j"}]}


def test_maps_that_are_there_twice_are_one() -> None:
    obj, complaints = read(CONFIG_MAP, b'{"data":{"a":"1"},"data":{"b":"2"}}')
    assert (obj["data"], complaints) == ({"a": "1", "b": "2"}, ['duplicate field "data"'])


def test_raw_json_is_not_validated() -> None:
    body = b'{"metadata":{"managedFields":[{"fieldsV1":{"f:a":{},"f:a":{}}}]}}'
    assert read(POD, body)[1] == []


@pytest.mark.parametrize(
    "body", [b'{"d":1,"d":2}', b'{"d": 1, "d": 2}', b'{"d" :1,"d":2}', b'{"d":"\\u0022:","d":2}']
)
def test_duplicates_are_seen_in_any_spelling(body: bytes) -> None:
    assert decoding.decode(body, JSON) == ({"d": 2}, ['duplicate field "d"'])


def test_names_with_quotes_are_escaped() -> None:
    assert read(POD, pod(**{'x"y': 1}))[1] == ['unknown field "spec.x\\"y"']


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (pod(containers="x"), "string|PodSpec.spec.containers|[]v1.Container"),
        (pod(containers=[[]]), "array|PodSpec.spec.containers|v1.Container"),
        (
            container(ports=[{"containerPort": "80"}]),
            "string|ContainerPort.spec.containers.ports.containerPort|int32",
        ),
        (
            container(ports=[{"containerPort": 1.5}]),
            "number 1.5|ContainerPort.spec.containers.ports.containerPort|int32",
        ),
        (
            pod(terminationGracePeriodSeconds=2**63),
            "number 9223372036854775808|PodSpec.spec.terminationGracePeriodSeconds|int64",
        ),
        (pod(hostNetwork=1), "number|PodSpec.spec.hostNetwork|bool"),
        (pod(restartPolicy=1), "number|PodSpec.spec.restartPolicy|v1.RestartPolicy"),
        (pod(nodeSelector=[]), "array|PodSpec.spec.nodeSelector|map[string]string"),
        (pod(nodeSelector={"a": 1}), "number|PodSpec.spec.nodeSelector|string"),
        ({"metadata": {"uid": 1}}, "number|ObjectMeta.metadata.uid|types.UID"),
        ({"metadata": {"creationTimestamp": {}}}, ("object|ObjectMeta.metadata.creationTimestamp|"
         "string")),
        ({"metadata": "x"}, "string|Pod.metadata|v1.ObjectMeta"),
        (container(command=[1]), "number|Container.spec.containers.command|string"),
        (
            container(resources={"requests": "x"}),
            "string|ResourceRequirements.spec.containers.resources.requests|v1.ResourceList",
        ),
        (
            container(livenessProbe={"httpGet": {"port": True}}),
            "bool|HTTPGetAction.spec.containers.livenessProbe.ProbeHandler.httpGet.port|int32",
        ),
        (
            pod(volumes=[{"configMap": {"name": 1}}]),
            ("number|ConfigMapVolumeSource.spec.volumes.VolumeSource.configMap."
            "LocalObjectReference.name|string"),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_value_of_a_wrong_type_is_refused_in_gos_words(body: Json, why: str) -> None:
    given, place, expected = why.split("|")
    assert refusal(POD, body).message == (
        'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal '
        f"{given} into Go struct field {place} of type {expected}"
    )


@pytest.mark.parametrize(
    ("kind", "body", "why"),
    [
        (
            POD,
            {"metadata": {"name": 1, "creationTimestamp": "x"}},
            'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"',
        ),
        (
            POD,
            {"metadata": {"creationTimestamp": "2020-02-30T00:00:00Z"}},
            'parsing time "2020-02-30T00:00:00Z": day out of range',
        ),
        (
            POD,
            {"metadata": {"creationTimestamp": "2020-01-01T00:00:00Zx"}},
            'parsing time "2020-01-01T00:00:00Zx": extra text: "x"',
        ),
        (
            LEASE,
            {"spec": {"renewTime": "2020-01-01T00:00:00Z"}},
            (
                'parsing time "2020-01-01T00:00:00Z" as "2006-01-02T15:04:05.000000Z07:00": '
                'cannot parse "Z" as ".000000"'
            ),
        ),
        (
            POD,
            container(resources={"limits": {"cpu": True}}),
            (
                "quantities must match the regular expression "
                "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            ),
        ),
        (SECRET, {"data": {"a": "YWJj!"}}, "illegal base64 data at input byte 4"),
        (SECRET, {"data": {"a": "YWJjYQ"}}, "illegal base64 data at input byte 4"),
        (SECRET, {"data": {"a": "YQ="}}, "illegal base64 data at input byte 3"),
    ],
)
def test_times_quantities_and_bytes_have_their_own_words(kind: Kind, body: Json, why: str) -> None:
    before = f'{kind.kind} in version "v1" cannot be handled as a {kind.kind}: '
    assert refusal(kind, body).message == before + why


def test_values_get_the_spelling_of_the_server() -> None:
    obj, complaints = read(POD, container(resources={"limits": {"cpu": 0.5, "memory": "1024Mi"}}))
    assert obj["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "500m", "memory": "1Gi"}
    lease, _ = read(LEASE, {"spec": {"renewTime": "2020-01-01T00:00:00.123456+02:00"}})
    assert lease["spec"]["renewTime"] == "2019-12-31T22:00:00.123456Z"
    secret, _ = read(SECRET, {"data": {"a": None, "b": [1, 2], "c": "Y\nQ==", "d": "YR=="}})
    assert secret["data"] == {"a": "", "b": "AQI=", "c": "YQ==", "d": "YQ=="}
    assert complaints == []


def test_null_is_nothing_in_a_struct_and_a_zero_elsewhere() -> None:
    spec = pod(containers=[None, {"command": [None], "args": None}], nodeSelector={"a": None})
    obj, _ = read(POD, spec)
    assert obj["spec"] == {"containers": [{}, {"command": [""]}], "nodeSelector": {"a": ""}}


def test_what_an_object_does_not_say_it_is_is_filled_in() -> None:
    obj, _ = read(DEPLOYMENT, {"metadata": {}})
    assert (obj["apiVersion"], obj["kind"]) == ("apps/v1", "Deployment")


@pytest.mark.parametrize(
    ("kind", "api_version", "name", "message"),
    [
        (
            CONFIG_MAP,
            "v1",
            "Pod",
            (
                'Pod in version "v1" cannot be handled as a ConfigMap: '
                "converting (v1.Pod) to (core.ConfigMap): unknown conversion"
            ),
        ),
        (
            CONFIG_MAP,
            "apps/v9",
            "Foo",
            (
                'Foo in version "v9" cannot be handled as a ConfigMap: no kind "Foo" is registered '
                'for version "apps/v9" in scheme "pkg/runtime/scheme.go:111"'
            ),
        ),
        (
            DEPLOYMENT,
            "apps/v1beta1",
            "Deployment",
            (
                "the API version in the data (apps/v1beta1) does not match the expected API "
                "version "
                "(apps/v1)"
            ),
        ),
        (
            CUSTOM,
            "example.com/v2",
            "Patcher",
            (
                "the API version in the data (example.com/v2) does not match the expected API "
                "version "
                "(example.com/v1)"
            ),
        ),
        (
            CUSTOM,
            "example.com/v1",
            "Foo",
            'Foo.example.com "a" is invalid: kind: Invalid value: "Foo": must be Patcher',
        ),
    ],
)
def test_another_kind_is_refused(kind: Kind, api_version: str, name: str, message: str) -> None:
    body = {"apiVersion": api_version, "kind": name, "metadata": {"name": "a"}}
    assert refusal(kind, body).message == message


def custom(spec: Json, **metadata: object) -> Json:
    named = {"name": "a", **metadata}
    return {"apiVersion": "example.com/v1", "kind": "Patcher", "metadata": named, "spec": spec}


def test_a_custom_object_is_looked_at_but_kept() -> None:
    spec = {
        "foo": 1,
        "bar": {"b": 1},
        "m": {"q": {"k": "1", "z": 1}},
        "l": [{"z": 2}, {"y": 1}],
        "open": {"any": 1, "in": {"q": 1}},
        "emb": {"apiVersion": "v1", "kind": "Pod", "metadata": {"foo": 1}, "foo": 1, "spec": {}},
    }
    kept = copy.deepcopy(spec)
    del kept["emb"]["metadata"]["foo"]  # type: ignore[index]
    obj, complaints = read(CUSTOM, custom(spec, zed=1) | {"top": 1})
    assert complaints == [
        f'unknown field "{path}"'
        for path in (
            "metadata.zed",
            "spec.bar",
            "spec.emb.foo",
            "spec.foo",
            "spec.l[0].z",
            "spec.l[1].y",
            "spec.m.q.z",
            "spec.open.in.q",
            "top",
            "spec.emb.metadata.foo",
        )
    ]
    assert obj["spec"] == kept


def test_duplicates_of_a_custom_object_come_first() -> None:
    body = json.dumps(custom({"foo": 1})).replace('"foo": 1', '"foo": 1, "foo": 2').encode()
    obj, complaints = read(CUSTOM, body)
    assert complaints == ['duplicate field "spec.foo"', 'unknown field "spec.foo"']
    assert obj["spec"] == {"foo": 2}


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (custom({}, labels={"a": 1}), ("number into Go struct field ObjectMeta.labels of type "
         "string")),
        (custom({}) | {"metadata": 1}, "number into Go value of type v1.ObjectMeta"),
    ],
)  # fmt: skip
def test_metadata_of_a_custom_object_has_types(body: Json, why: str) -> None:
    assert refusal(CUSTOM, body).message == (
        f'Patcher in version "v1" cannot be handled as a Patcher: json: cannot unmarshal {why}'
    )


def test_metadata_of_an_embedded_object_has_types() -> None:
    body = custom({"emb": {"metadata": {"labels": {"a": 1}}}})
    assert refusal(CUSTOM, body).message == (
        'Patcher in version "v1" cannot be handled as a Patcher: spec.emb.metadata: Invalid value: '
        '{"labels":{"a":1}}: json: cannot unmarshal number into Go struct field '
        "ObjectMeta.labels of type string"
    )


def test_a_custom_object_must_name_its_kind() -> None:
    assert refusal(CUSTOM, b'{"metadata":{"name":"a"}}').message == (
        "the object provided is unrecognized (must be of type Patcher): Object 'Kind' is missing "
        'in \'{"metadata":{"name":"a"}}\' ({"metadata":{"name":"a"}})'
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", True),
        ("N", False),
        ("0x1F", 31),
        ("0o17", 15),
        ("-017", -15),
        ("1_000", 1000),
        ("2020-01-01", "2020-01-01"),
        ("1.0", 1),
        ("1e3", 1000),
        ("08", 8),
        (".5", 0.5),
        ("1:20", "1:20"),
        ("!!binary aGk=", "hi"),
        ("!!str 1", "1"),
        ('"1"', "1"),
        ("!foo bar", "bar"),
        ("~", None),
        ("tRue", "tRue"),
        ("{1: x, true: z}", {"1": "x", "true": "z"}),
        ("[&x {k: 1}, {<<: *x, z: 1}]", [{"k": 1}, {"k": 1, "z": 1}]),
    ],
)
def test_yaml_means_what_it_means_to_the_server(text: str, value: object) -> None:
    found = decoding.decode(f"a: {text}\n".encode(), YAML)[0]["a"]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: b: c", "yaml: mapping values are not allowed in this context"),
        ("a: *x", "yaml: unknown anchor 'x' referenced"),
        ("@x", "yaml: found character that cannot start any token"),
        ("metadata:\n  name: a\n foo: 1", "yaml: line 2: did not find expected key"),
        ("a: .inf", "json: unsupported value: +Inf"),
        ("a: !!null x", "yaml: cannot decode !!str `x` as a !!null"),
    ],
)
def test_yaml_that_cannot_be_read_is_refused(text: str, problem: str) -> None:
    before = "the object provided is unrecognized (must be of type ConfigMap): "
    message = refusal(CONFIG_MAP, text.encode(), YAML).message
    assert message.startswith(f"{before}{problem} (")


def test_yaml_names_the_lines_of_duplicates() -> None:
    body = b"metadata: {name: a}\nfoo: 1\ndata:\n  x: a\n  x: b\n"
    obj, complaints = read(CONFIG_MAP, body, YAML)
    assert complaints == ['line 5: key "x" already set in map', 'unknown field "foo"']
    assert obj["data"] == {"x": "b"}
    with pytest.raises(StatusError) as caught:
        decoding.complain("Strict", complaints, CONFIG_MAP)
    assert caught.value.message.endswith(
        'strict decoding error: yaml: unmarshal errors:\n  line 5: key "x" already set in map, '
        'unknown field "foo"'
    )


COMPLAINTS = ['unknown field "spec.foo"', 'unknown field "z"']


@pytest.mark.parametrize(("level", "count"), [("", 2), ("Warn", 2), ("Ignore", 0)])
def test_complaints_become_warnings(level: str, count: int) -> None:
    assert decoding.complain(level, COMPLAINTS, POD) == COMPLAINTS[:count]


def test_complaints_are_refusals_where_the_client_is_strict() -> None:
    with pytest.raises(StatusError) as caught:
        decoding.complain("Strict", COMPLAINTS, POD)
    assert (caught.value.code, caught.value.message) == (
        400,
        (
            'Pod in version "v1" cannot be handled as a Pod: strict decoding error: '
            'unknown field "spec.foo", unknown field "z"'
        ),
    )
    patched = decoding.Patched(msgspec.json.encode({"z": 1, "data": {}}))
    with pytest.raises(StatusError) as caught:
        decoding.complain("Strict", COMPLAINTS[1:], POD, patched=patched)
    why = 'Invalid value: "{\\"data\\":{},\\"z\\":1}": strict decoding error: unknown field "z"'
    assert caught.value.message == f' "" is invalid: patch: {why}'
    assert caught.value.details == {
        "causes": [{"reason": "FieldValueInvalid", "message": why, "field": "patch"}]
    }


def test_a_refusal_shows_what_came_out_before_it_was_checked() -> None:
    obj: Json = {"metadata": {"name": "a", "foo": 1}}
    patched = decoding.Patched(msgspec.json.encode(obj))
    complaints = decoding.check(POD, schema_of(POD), obj, patched=patched).complaints
    with pytest.raises(StatusError, match=r'\\"foo\\":1'):
        decoding.complain("Strict", complaints, POD, patched=patched)


@pytest.mark.parametrize(
    ("patch", "why"),
    [
        ({"spec": {"replicas": "x"}}, "unrecognized type: int32"),
        ({"spec": {"replicas": 1.5}}, "cannot convert float64 to int32"),
        ({"spec": {"paused": 1}}, "unrecognized type: bool"),
        ({"metadata": {"name": 1}}, "cannot convert int64 to string"),
        ({"metadata": {"labels": True}}, "cannot restore map from bool"),
        ({"metadata": {"finalizers": "x"}}, "cannot restore slice from string"),
        ({"spec": 1.5}, "cannot restore struct from: float64"),
        (
            {"metadata": {"creationTimestamp": 1}},
            "json: cannot unmarshal number into Go value of type string",
        ),
    ],
)
def test_the_result_of_a_strategic_merge_is_refused_in_other_words(patch: Json, why: str) -> None:
    patched = decoding.Patched(msgspec.json.encode(patch), is_strategic=True)
    with pytest.raises(StatusError) as caught:
        decoding.check(DEPLOYMENT, schema_of(DEPLOYMENT), copy.deepcopy(patch), patched=patched)
    assert caught.value.message.startswith(' "" is invalid: patch: Invalid value: "map[')
    assert caught.value.message.endswith(f']": {why}')


STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"
OPERATIONS = "application/json-patch+json"


@pytest.mark.parametrize(
    ("media", "body", "message"),
    [
        (MERGE, b"x", "error decoding patch: invalid character 'x' looking for beginning of value"),
        (STRATEGIC, b"x", "invalid character 'x' looking for beginning of value"),
        (STRATEGIC, b"[]", ("json: cannot unmarshal array into Go value of type "
         "map[string]interface {}")),
        (MERGE, b"null", "Invalid JSON Patch"),
        (
            OPERATIONS,
            b"{}",
            ("error decoding patch: json: cannot unmarshal object into Go value of type "
            "[]handlers.jsonPatchOp"),
        ),
        (
            OPERATIONS,
            b'[{"op":1}]',
            ("error decoding patch: json: cannot unmarshal number into Go struct field "
            "jsonPatchOp.op of type string"),
        ),
    ],
)  # fmt: skip
def test_an_invalid_patch_is_refused(media: str, body: bytes, message: str) -> None:
    with pytest.raises(StatusError) as caught:
        decoding.decode_patch(body, media)
    assert (caught.value.code, caught.value.message) == (400, message)


def test_a_patch_has_no_more_than_ten_thousand_operations() -> None:
    body = msgspec.json.encode([{"op": "test", "path": "/a"}] * 10_001)
    with pytest.raises(StatusError) as caught:
        decoding.decode_patch(body, OPERATIONS)
    assert (caught.value.code, caught.value.message) == (
        413,
        (
            "Request entity too large: The allowed maximum operations in a JSON patch is 10000, "
            "got 10001"
        ),
    )


def test_complaints_about_patches_are_reported_too() -> None:
    merge = decoding.decode_patch(b'{"data":{"a":"x","a":"y"}}', MERGE)
    assert merge == ({"data": {"a": "y"}}, ['duplicate field "data.a"'])
    _, complaints = decoding.decode_patch(
        b'[{"op":"add","path":"/d","value":1,"value":2,"foo":1},'
        b'{"op":"add","path":"/e","value":{"a":1,"a":2}}]',
        OPERATIONS,
    )
    assert complaints == [
        'json patch duplicate field "[0].value"',
        'json patch unknown field "[0].foo"',
        'json patch duplicate field "[1].value.a"',
    ]
    assert decoding.decode_patch(b"null", OPERATIONS) == ([], [])
    assert decoding.decode_patch(b"null", STRATEGIC) == ({}, [])


names = st.sampled_from(["a", "b", "metadata", "spec", "containers", "name", "image"])
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=40)
@given(st.dictionaries(names, values, max_size=4))
def test_what_was_checked_once_passes_again_unchanged(obj: Json) -> None:
    try:
        decoding.check(POD, schema_of(POD), obj)
    except StatusError as exc:
        assert exc.code == 400  # noqa: PT017 (either outcome is right, neither may crash)
        return
    once = copy.deepcopy(obj)
    assert decoding.check(POD, schema_of(POD), obj).complaints == []
    assert obj == once


@settings(max_examples=40)
@given(values)
def test_json_of_any_form_is_read_as_it_is(value: object) -> None:
    body = json.dumps({"data": value}, indent=1).encode()
    assert decoding.decode(body, JSON) == ({"data": value}, [])
