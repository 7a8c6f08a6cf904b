"""What a type checker sees behind ``import kinform``, though nothing is loaded at run time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_type

import kinform
from kinform.clock import offload
from kinform.meta import OwnerReference, StatusCause
from kinform.testing import VirtualClock, in_virtual_time, virtual_clock, virtual_time


def names() -> None:
    name = kinform.ObjectName.parse("default/web-0")
    assert_type(name, kinform.ObjectName)
    assert_type(name.namespace, str)
    gvr = kinform.GroupVersionResource.parse("apps/v1/deployments")
    assert_type(gvr.group_version, kinform.GroupVersion)


def metadata(meta: kinform.ObjectMeta) -> None:
    assert_type(meta.key, kinform.ObjectName)
    assert_type(meta.labels, Mapping[str, str])
    assert_type(meta.controller, OwnerReference | None)


def errors() -> None:
    try:
        raise NotImplementedError
    except kinform.TooManyRequestsError as error:
        assert_type(error.retry_after, float | None)
        assert_type(error.causes, Sequence[StatusCause])
    except kinform.TransportError as error:
        assert_type(error.failure, kinform.TransportFailure)
    except kinform.errors.KinformError:
        pass


def misspelt() -> None:
    assert kinform.ObjectNmae  # type: ignore[attr-defined]  # and no object by __getattr__


def config() -> None:
    assert_type(kinform.Config(server="https://127.0.0.1:6443").namespace, str)


async def offloading() -> None:
    assert_type(await offload(divmod, 7, 2), tuple[int, int])


@in_virtual_time
async def test_in_virtual_time(seconds: float) -> str:
    assert_type(virtual_clock(), VirtualClock)
    return str(seconds)


@in_virtual_time(timeout=60)
async def test_with_options() -> None: ...


def virtual() -> None:
    assert_type(test_in_virtual_time(1.5), str)
    test_with_options()
    assert_type(virtual_time.run(offload(len, "abc")), int)
