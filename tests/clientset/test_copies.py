"""Models that were copied, or were in another process, are written like the originals."""

from __future__ import annotations

import copy

import msgspec
import pytest

from kinform.clientset import apps_v1, core_v1, meta_v1
from kinform.clientset.wire import WireModel

RAW = b'[{"manager":"kubectl"}]'


@pytest.mark.parametrize(
    "model",
    [
        core_v1.ConfigMap(metadata=meta_v1.ObjectMeta(name="a"), data={"k": "v"}),
        apps_v1.Deployment(metadata=meta_v1.ObjectMeta(name="a")),
        core_v1.Pod(metadata=meta_v1.ObjectMeta(name="a", managed_fields=msgspec.Raw(RAW))),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_copy_sends_what_the_original_does(model: WireModel) -> None:
    """What is absent stays absent: an apply would claim a field that is merely empty."""
    wire = msgspec.json.encode(model)
    make, arguments = model.__reduce__()  # how it goes to another process
    for other in (copy.copy(model), copy.deepcopy(model), make(*arguments)):
        assert other == model
        assert msgspec.json.encode(other) == wire


def test_managed_fields_can_be_cleared() -> None:
    read = meta_v1.ObjectMeta(name="a", managed_fields=msgspec.Raw(RAW))
    for nothing in (msgspec.UNSET, msgspec.Raw()):
        cleared = msgspec.structs.replace(read, managed_fields=nothing)
        assert msgspec.json.encode(cleared) == b'{"name":"a"}'
