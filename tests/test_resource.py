from __future__ import annotations

import dataclasses
import datetime
import enum
import traceback
import uuid
from collections.abc import Callable
from types import MappingProxyType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    TypedDict,
    TypeVar,
    assert_type,
    cast,
)

import attrs
import msgspec
import pydantic
import pydantic.dataclasses
import pydantic_core
import pytest
import typing_extensions
from hypothesis import example, given
from hypothesis import strategies as st

from kinform.apiserver.serializer import yaml_decoder
from kinform.errors import DecodeError, UsageError
from kinform.meta import GroupVersionResource
from kinform.objects.object import Object
from kinform.resource import (
    Resource,
    body_reader,
    encode,
    is_projection,
    model_decoder,
    resource_of,
)
from kinform.sansio.wire.heads import Body, read_head

CANARY = "hunter2"
RAW = (
    b'{"metadata":{"name":"web-0","namespace":"default","labels":{"a":"b"}},'
    b'"spec":{"replicas":2,"other":[1]},"status":{"podIP":"10.0.0.1"}}'
)
PODS = Resource.of("v1/pods", kind="Pod", namespaced=True)

T = TypeVar("T")


class Spec(msgspec.Struct):
    replicas: int
    paused: bool | None = None


class Status(msgspec.Struct):
    pod_ip: str | None = msgspec.field(name="podIP", default=None)


class StructPod(msgspec.Struct):
    __resource__: ClassVar[str] = "v1/pods"
    spec: Spec
    status: Status | None = None


class GenericPod(msgspec.Struct, Generic[T]):
    spec: T


@dataclasses.dataclass
class DataSpec:
    replicas: int
    paused: bool | None = None


@dataclasses.dataclass
class DataPod:
    __resource__ = "v1/pods"
    spec: DataSpec


class DictSpec(TypedDict):
    replicas: int


class DictPod(TypedDict):
    spec: DictSpec


class ExtensionsPod(typing_extensions.TypedDict):
    spec: DictSpec


@attrs.define
class AttrsPod:
    spec: Spec
    __resource__ = "v1/pods"


class ModelSpec(pydantic.BaseModel):
    replicas: int
    paused: bool | None = None


class ModelStatus(pydantic.BaseModel):
    pod_ip: str | None = pydantic.Field(default=None, alias="podIP")


class ModelPod(pydantic.BaseModel):
    __resource__: ClassVar[str] = "v1/pods"
    spec: ModelSpec
    status: ModelStatus | None = None


def body(raw: bytes = RAW) -> Body:
    return Body(raw, read_head(raw))


# --- models -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model, replicas",
    [
        pytest.param(StructPod, lambda pod: pod.spec.replicas, id="Struct"),
        pytest.param(GenericPod[Spec], lambda pod: pod.spec.replicas, id="generic Struct"),
        pytest.param(DataPod, lambda pod: pod.spec.replicas, id="dataclass"),
        pytest.param(DictPod, lambda pod: pod["spec"]["replicas"], id="TypedDict"),
        pytest.param(ExtensionsPod, lambda pod: pod["spec"]["replicas"], id="backported"),
        pytest.param(AttrsPod, lambda pod: pod.spec.replicas, id="attrs"),
        pytest.param(ModelPod, lambda pod: pod.spec.replicas, id="pydantic"),
        pytest.param(dict, lambda pod: pod["spec"]["replicas"], id="dict"),
        pytest.param(dict[str, Any], lambda pod: pod["spec"]["replicas"], id="dict[]"),
        pytest.param(Object, lambda pod: pod.at("spec", "replicas"), id="Object"),
    ],
)
def test_every_kind_of_model_is_read_and_skips_what_it_does_not_declare(
    model: type[Any], replicas: Callable[[Any], int]
) -> None:
    assert replicas(PODS.with_model(model).read(body())) == 2
    assert replicas(body_reader(model)(RAW, read_head(RAW))) == 2
    assert replicas(model_decoder(model)(RAW)) == 2
    assert replicas(Object.from_bytes(RAW).decode(model)) == 2


def test_reading_objects_makes_no_second_pass() -> None:
    given = body()
    for obj in (PODS.read(given), body_reader(Object)(given.raw, given.head)):
        assert obj.raw is given.raw
        assert obj.metadata is given.head.metadata


def test_renamed_members_are_found_under_their_wire_names() -> None:
    assert PODS.with_model(StructPod).read(body()).status == Status("10.0.0.1")
    assert PODS.with_model(ModelPod).read(body()).status == ModelStatus(podIP="10.0.0.1")


def test_mechanical_camel_case_misses_pod_ip() -> None:
    """The guide warns of this; if msgspec changes, the guide must change too."""

    class Mechanical(msgspec.Struct, rename="camel"):
        api_version: str = ""
        pod_ip: str = ""
        cluster_ip: str = ""
        container_id: str = ""
        pod_cidr: str = ""

    names = [field.encode_name for field in msgspec.structs.fields(Mechanical)]
    assert names == ["apiVersion", "podIp", "clusterIp", "containerId", "podCidr"]


def test_the_types_of_resources_follow_their_models() -> None:
    assert_type(PODS, Resource[Object])
    assert_type(PODS.read(body()), Object)
    struct = Resource.of("v1/pods", kind="Pod", namespaced=True, model=StructPod)
    assert_type(struct, Resource[StructPod])
    assert_type(struct.read(body()), StructPod)
    typed_dict = PODS.with_model(DictPod)
    assert_type(typed_dict, Resource[DictPod])
    assert_type(typed_dict.read(body())["spec"], DictSpec)
    assert_type(Object.from_bytes(RAW).decode(ModelPod), ModelPod)
    assert_type(model_decoder(DataPod)(RAW), DataPod)
    anything: Resource[object] = struct
    assert anything.model is StructPod


class Plain:
    spec: int


@pydantic.dataclasses.dataclass
class PydanticDataclass:
    spec: int


class Tangled(msgspec.Struct):
    spec: StructPod | Spec


class Forward(msgspec.Struct):
    spec: Nowhere  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    "model, complaint",
    [
        (Plain, "Plain is not a model; expected a msgspec.Struct, dataclass, TypedDict, attrs"),
        (int, "int is not a model"),
        (list[int], r"list\[int\] is not a model"),
        ("v1/pods", "'v1/pods' is not a model"),
        ({}, "{} is not a model"),
        (None, "None is not a model"),
        (PydanticDataclass, "PydanticDataclass is a pydantic dataclass; make it a BaseModel"),
        (Tangled, "cannot decode to Tangled: "),
        (Forward, "cannot decode to Forward: name 'Nowhere' is not defined"),
    ],
)
def test_what_is_no_model_is_refused_with_what_is(model: object, complaint: str) -> None:
    for use in (model_decoder, body_reader, PODS.with_model, Object.from_bytes(RAW).decode):
        with pytest.raises(UsageError, match=complaint):
            use(cast("type[object]", model))


# --- objects that do not fit ------------------------------------------------------------------


class Phase(enum.Enum):
    RUNNING = "Running"


class EnumPod(msgspec.Struct):
    spec: dict[str, Phase]


class StrictPod(msgspec.Struct):
    spec: dict[str, str]

    def __post_init__(self) -> None:
        raise ValueError(f"no {self.spec}")


@attrs.define
class ValidatedPod:
    spec: dict[str, str] = attrs.field(validator=attrs.validators.max_len(0))


class PickyPod(pydantic.BaseModel):
    spec: dict[str, str]

    @pydantic.field_validator("spec")
    @classmethod
    def refuse(cls, spec: dict[str, str]) -> dict[str, str]:
        raise ValueError(f"no {spec}")


class IntPod(pydantic.BaseModel):
    spec: dict[str, int]
    more: int


class BrokenPod(pydantic.BaseModel):
    spec: dict[str, str]

    @pydantic.field_validator("spec")
    @classmethod
    def crash(cls, spec: dict[str, str]) -> dict[str, str]:
        raise KeyError(len(spec))


class Small(msgspec.Struct, tag_field="phase", tag="Small"):
    size: int = 0


class Large(msgspec.Struct, tag_field="phase", tag="Large"):
    size: int = 0


class TaggedPod(msgspec.Struct):
    spec: Small | Large


class NewPod(pydantic.BaseModel):
    phase: Literal["New"]


class OldPod(pydantic.BaseModel):
    phase: Literal["Old"]


class UnionPod(pydantic.BaseModel):
    spec: Annotated[NewPod | OldPod, pydantic.Field(discriminator="phase")]


class UuidPod(pydantic.BaseModel):
    spec: dict[str, uuid.UUID]


class OwnErrorPod(pydantic.BaseModel):
    spec: dict[str, str]

    @pydantic.field_validator("spec")
    @classmethod
    def refuse(cls, spec: dict[str, str]) -> dict[str, str]:
        raise pydantic_core.PydanticCustomError("not_mine", "no {spec}", {"spec": str(spec)})


@pytest.mark.parametrize(
    "model, path, complaint",
    [
        (TaggedPod, "$.spec.phase", "Invalid value"),
        (UnionPod, "$.spec", "the model refused the value (union_tag_invalid)"),
        (UuidPod, "$.spec.phase", "the model refused the value (uuid_parsing)"),
        (OwnErrorPod, "$.spec", "the model refused the value (not_mine)"),
        (StructPod, "$.spec", "Object missing required field `replicas`"),
        (DataPod, "$.spec", "Object missing required field `replicas`"),
        (DictPod, "$.spec", "Object missing required field `replicas`"),
        (AttrsPod, "$.spec", "Object missing required field `replicas`"),
        (dict[str, int], "$[...]", "Expected `int`, got `object`"),
        (EnumPod, "$.spec[...]", "Invalid enum value"),
        (StrictPod, "$", "the model refused it with ValueError"),
        (ValidatedPod, "$", "the model refused it with ValueError"),
        (ModelPod, "$.spec.replicas", "Field required"),
        (IntPod, "$.spec.phase", "Input should be a valid integer, unable to parse string as an "),
        (PickyPod, "$.spec", "the model's validator refused the value"),
        (BrokenPod, "", "the decoder raised KeyError"),
    ],
)
def test_an_object_that_does_not_fit_is_a_decode_error_without_payload(
    model: type[object], path: str, complaint: str
) -> None:
    raw = b'{"metadata":{"namespace":"default","name":"web-0"},"spec":{"phase":"hunter2"}}'
    with pytest.raises(DecodeError) as caught:
        PODS.with_model(model).read(body(raw))
    error = caught.value
    assert (error.key, error.path) == ("default/web-0", path)
    assert error.message.startswith(complaint)
    assert CANARY not in f"{error} {error!r} {error.args}"
    if model not in {StrictPod, ValidatedPod}:  # there the model's own words are the cause
        assert CANARY not in "".join(traceback.format_exception(error))
        context = error.__context__
        while context is not None:  # error reporters read it even where tracebacks leave it out
            assert CANARY not in str(context)
            context = context.__context__


def test_a_value_that_looks_like_a_path_is_not_shown() -> None:
    raw = b'{"metadata":{"name":"web-0"},"spec":{"phase":"x\' - at `$.hunter2`"}}'
    with pytest.raises(DecodeError) as caught:
        PODS.with_model(TaggedPod).read(body(raw))
    assert (caught.value.message, caught.value.path) == ("Invalid value", "$.spec.phase")


def test_pydantics_further_complaints_are_counted() -> None:
    with pytest.raises(DecodeError, match=r"\(and 1 more\) at \$\.spec\[0\]\.a$"):
        Object.from_bytes(b'{"spec":[{"a":"x"}]}').decode(ListPod)


class ListPod(pydantic.BaseModel):
    spec: list[dict[str, int]]
    more: int


def test_what_a_models_own_code_said_is_the_cause() -> None:
    with pytest.raises(DecodeError) as caught:
        Object.from_bytes(b'{"spec":{}}').decode(StrictPod)
    assert isinstance(caught.value.__cause__, ValueError)


def test_a_class_that_only_looks_like_pydantics_may_raise_plain_value_errors() -> None:
    class Homemade:
        @classmethod
        def model_validate_json(cls, raw: bytes) -> Homemade:
            raise ValueError(raw)

    with pytest.raises(DecodeError, match="the decoder raised ValueError"):
        PODS.with_model(Homemade).read(body())


def test_a_decoder_of_your_own_may_raise_what_it_likes() -> None:
    def decode(raw: bytes) -> str:
        raise LookupError(raw)

    resource = Resource(gvr=PODS.gvr, kind="Pod", namespaced=True, model=str, decode=decode)
    with pytest.raises(
        DecodeError, match="default/web-0: the decoder raised LookupError"
    ) as caught:
        resource.read(body())
    assert isinstance(caught.value.__cause__, LookupError)


def test_a_decode_error_of_a_decoder_keeps_its_words_and_gets_the_key() -> None:
    def decode(raw: bytes) -> str:
        raise DecodeError("no color", path="$.spec.color")

    resource = Resource(gvr=PODS.gvr, kind="Pod", namespaced=True, model=str, decode=decode)
    with pytest.raises(DecodeError, match=r"^default/web-0: no color at \$\.spec\.color$"):
        resource.read(body())


def test_too_deep_for_a_model_is_a_decode_error() -> None:
    raw = b'{"spec":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    for model in (dict[str, Any], ModelPod):
        with pytest.raises(DecodeError, match=r"nests deeper|recursion limit"):
            PODS.with_model(model).read(Body(raw, read_head(b"{}")))


# --- the resource itself ----------------------------------------------------------------------


def test_a_resource_knows_its_place() -> None:
    resource = Resource.of("apps/v1/deployments", kind="Deployment", namespaced=True)
    assert resource.gvr == GroupVersionResource("apps", "v1", "deployments")
    assert (str(resource), resource.kind, resource.namespaced) == (
        "apps/v1/deployments",
        "Deployment",
        True,
    )
    assert "decode" not in repr(resource)


def test_resources_of_the_same_model_are_equal() -> None:
    assert PODS == Resource.of("v1/pods", kind="Pod", namespaced=True)
    assert PODS.with_model(ModelPod) == PODS.with_model(ModelPod)
    assert len({PODS.with_model(StructPod), PODS.with_model(StructPod), PODS}) == 2


@pytest.mark.parametrize("name", ["", "pods", "v1/", "/v1/pods", "a/b/c/d"])
def test_a_resource_is_named_in_full(name: str) -> None:
    with pytest.raises(UsageError, match=r"v1/pods|apps/v1"):
        Resource.of(name, kind="Pod", namespaced=True)


@pytest.mark.parametrize("model", [StructPod, DataPod, AttrsPod, ModelPod])
def test_a_model_may_say_which_resource_it_is(model: type[object]) -> None:
    assert resource_of(model) == "v1/pods"


@pytest.mark.parametrize("model", [Spec, DictPod, dict, dict[str, int], Object])
def test_a_model_need_not_say_which_resource_it_is(model: type[object]) -> None:
    assert resource_of(model) is None


@pytest.mark.parametrize("name", ["", 5, GroupVersionResource("", "v1", "pods")])
def test_a_resource_name_that_is_none_is_refused(name: object) -> None:
    class Odd:
        __resource__ = name

    with pytest.raises(UsageError, match=r"__resource__ of .*Odd is .*, expected text like"):
        resource_of(Odd)


# --- writing ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "written, expected",
    [
        pytest.param(StructPod(Spec(2), Status("10.0.0.1")), True, id="Struct"),
        pytest.param(DataPod(DataSpec(2)), False, id="dataclass"),
        pytest.param(AttrsPod(Spec(2)), False, id="attrs"),
        pytest.param(
            ModelPod(spec=ModelSpec(replicas=2), status=ModelStatus(podIP="10.0.0.1")),
            True,
            id="pydantic",
        ),
    ],
)
def test_a_model_writes_what_it_declares_under_wire_names_without_nulls(
    written: object, expected: bool
) -> None:
    status = b',"status":{"podIP":"10.0.0.1"}' if expected else b""
    assert encode(written) == b'{"spec":{"replicas":2}' + status + b"}"
    assert encode({"a": [written]}) == b'{"a":[' + encode(written) + b"]}"


def test_a_dict_writes_what_it_holds_and_null_is_null() -> None:
    patch = {"spec": {"replicas": None, "list": (1, None)}}
    assert encode(patch) == b'{"spec":{"replicas":null,"list":[1,null]}}'


def test_defaults_of_a_model_are_written() -> None:
    class Typed(pydantic.BaseModel):
        kind: str = "Pod"

    @dataclasses.dataclass
    class Data:
        kind: str = "Pod"

    assert encode(Typed()) == encode(Data()) == b'{"kind":"Pod"}'


def test_an_object_is_sent_as_it_came() -> None:
    raw = b'{"metadata":{}, "x" : 1e3}'
    assert encode(Object.from_bytes(raw)) is raw


def test_views_and_objects_inside_bodies_are_written() -> None:
    obj = Object.from_bytes(RAW)
    assert encode(obj["spec"]) == b'{"replicas":2,"other":[1]}'
    assert encode({"x": obj["spec"]["other"]}) == b'{"x":[1]}'
    assert msgspec.json.decode(encode({"template": obj})) == {"template": obj.to_dict()}
    assert encode(MappingProxyType({"a": 1})) == b'{"a":1}'


@given(st.text())
@example("a\x85b\x7fc\u2028d\ufeff\ufffe")
def test_what_is_written_reads_the_same_as_json_and_as_yaml(text: str) -> None:
    """The body of an apply is YAML to the server, and there some characters are line ends."""
    written = encode({text: [text]})
    assert msgspec.json.decode(written) == {text: [text]}
    assert yaml_decoder.load(written)[0] == {text: [text]}


def test_models_may_hold_views_and_other_models() -> None:
    @dataclasses.dataclass
    class Mixed:
        spec: object
        model: object

    mixed = Mixed(Object.from_bytes(RAW)["spec"], ModelSpec(replicas=1))
    expected = b'{"spec":{"replicas":2,"other":[1]},"model":{"replicas":1}}'
    assert encode(mixed) == expected


def test_a_json_patch_is_a_list() -> None:
    operations = [{"op": "replace", "path": "/a", "value": None}]
    assert encode(operations) == b'[{"op":"replace","path":"/a","value":null}]'


def test_bytes_and_times_are_written_as_kubernetes_wants_them() -> None:
    when = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
    assert encode({"data": {"k": b"hi"}, "at": when}) == (
        b'{"data":{"k":"aGk="},"at":"2026-01-02T03:04:05Z"}'
    )


def itself() -> dict[str, object]:
    loop: dict[str, object] = {}
    loop["me"] = loop
    return loop


@pytest.mark.parametrize(
    "written, complaint",
    [
        ({"a": float("nan")}, "dict has no JSON form: nan is not a JSON number"),
        ({"a": [float("-inf")]}, "-inf is not a JSON number"),
        (Spec(cast("int", float("inf"))), "Spec has no JSON form: inf is not a JSON number"),
        ({"a": 1j}, "complex"),
        (DataPod(cast("DataSpec", object())), "DataPod has no JSON form: objects of type object"),
        ({"a": "\ud800"}, "surrogates not allowed"),
        ({("a", "b"): 1}, "keys"),
        ({"a": 10**5000}, "4300 digits"),
        (itself(), "dict holds itself or nests too deep to write"),
        ("text", "str is not a body to write; expected an Object, a mapping, a list or a model"),
        (b"{}", "bytes is not a body to write"),
        (None, "NoneType is not a body to write"),
        (StructPod, "type|StructMeta"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_has_no_json_form_is_refused(written: object, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        encode(written)


def test_models_are_projections_and_whole_objects_are_not() -> None:
    models = (StructPod(Spec(1)), DataPod(DataSpec(1)), AttrsPod(Spec(1)), ModelSpec(replicas=1))
    for model in models:
        assert is_projection(model)
    whole: list[object] = [
        Object.from_bytes(RAW),
        {},
        Object.from_bytes(RAW)["spec"],
        None,
        DataPod,
    ]
    assert not any(is_projection(body) for body in whole)
