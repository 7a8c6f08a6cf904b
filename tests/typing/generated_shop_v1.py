"""Models and clients of Widget (shop.example.com/v1/widgets). Written by ``kinform gen``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, final

import msgspec

from kinform import clientset
from kinform.clientset.typed import GroupClient, HasParts, InNamespaces, Objects, Part
from kinform.clientset.wire import JSON, IntOrString, Time, WireModel
from kinform.meta import GroupVersionKind, GroupVersionResource

__all__ = [
    "ShopV1",
    "Widget",
    "WidgetClient",
    "WidgetSpec",
    "WidgetSpecMaybe",
    "WidgetSpecPod",
    "WidgetSpecSteps",
    "WidgetSpecStepsAVeryLongNameOfAFieldThatNoFormatterLikesToSeeInOneLine",
    "WidgetSpecTemplate",
    "WidgetStatus",
]


class WidgetSpecTemplate(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """WidgetSpecTemplate."""

    name: str | None = None


class WidgetSpec(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """WidgetSpec."""

    anything: JSON = None
    bag: Mapping[str, JSON] | None = None
    by_name: Mapping[str, bool] | None = msgspec.field(default=None, name="byName")
    from_: Time | None = msgspec.field(default=None, name="from")
    maybe: WidgetSpecMaybe | None = None
    open: Mapping[str, JSON] | None = None
    pod: WidgetSpecPod | None = None
    pod_ip: str | None = msgspec.field(default=None, name="podIP")
    port: IntOrString | None = None
    ratio: float | None = None
    secret: bytes | None = None
    size: int | None = None
    """How large it is."""
    steps: Sequence[WidgetSpecSteps] | None = None
    str_: str | None = msgspec.field(default=None, name="str")
    template: WidgetSpecTemplate = WidgetSpecTemplate()


class WidgetStatus(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """WidgetStatus."""

    ready: bool | None = None


class Widget(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A widget, "as is".

    With a \\ and '''quotes'''.
    """

    __resource__: ClassVar[str] = "shop.example.com/v1/widgets"
    __gvk__: ClassVar[GroupVersionKind] = GroupVersionKind("shop.example.com", "v1", "Widget")
    __gvr__: ClassVar[GroupVersionResource] = GroupVersionResource(
        "shop.example.com", "v1", "widgets"
    )
    __namespaced__: ClassVar[bool] = True

    api_version: str | None = msgspec.field(default=None, name="apiVersion")
    """The group and version of the schema."""
    kind: str | None = None
    """The kind of the object."""
    metadata: clientset.meta_v1.ObjectMeta = clientset.meta_v1.ObjectMeta()
    """What all objects have."""
    spec: WidgetSpec = WidgetSpec()
    status: WidgetStatus = WidgetStatus()


class WidgetSpecMaybe(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """WidgetSpecMaybe."""

    a: str | None = None


class WidgetSpecPod(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """WidgetSpecPod."""

    api_version: str | None = msgspec.field(default=None, name="apiVersion")
    """The group and version of the schema."""
    data: str | None = None
    kind: str | None = None
    """The kind of the object."""
    metadata: clientset.meta_v1.ObjectMeta = clientset.meta_v1.ObjectMeta()
    """What all objects have."""


class WidgetSpecSteps(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """WidgetSpecSteps."""

    a_very_long_name_of_a_field_that_no_formatter_likes_to_see_in_one_line: (
        Sequence[WidgetSpecStepsAVeryLongNameOfAFieldThatNoFormatterLikesToSeeInOneLine] | None
    ) = msgspec.field(default=None, name="aVeryLongNameOfAFieldThatNoFormatterLikesToSeeInOneLine")


class WidgetSpecStepsAVeryLongNameOfAFieldThatNoFormatterLikesToSeeInOneLine(
    WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    """WidgetSpecStepsAVeryLongNameOfAFieldThatNoFormatterLikesToSeeInOneLine."""

    x: int | None = None


@final
class WidgetClient(InNamespaces[Widget], Objects[Widget], HasParts[Widget]):
    """Every Widget, or those of one namespace."""

    @property
    def scale(self) -> Part[clientset.autoscaling_v1.Scale]:
        """The ``scale`` of an object, by itself."""
        return self._part("scale", clientset.autoscaling_v1.Scale)

    @property
    def status(self) -> Part[Widget]:
        """The ``status`` of an object, by itself."""
        return self._part("status", Widget)


@final
class ShopV1(GroupClient):
    """The kinds of shop.example.com/v1."""

    api_version: ClassVar[str] = "shop.example.com/v1"

    def widgets(self, namespace: str | None = None) -> WidgetClient:
        """In ``namespace``; by default in the client's own, with ``""`` in all."""
        return self._of(WidgetClient, Widget, namespace)
