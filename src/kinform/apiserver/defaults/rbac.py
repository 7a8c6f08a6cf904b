"""Defaults of the group ``rbac.authorization.k8s.io``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kinform.apiserver.serializer.json_values import Json, as_dict, as_list

__all__ = ["DEFAULTS", "PREPARE_CREATE", "PREPARE_UPDATE", "default_owned_role"]

_GROUP: Final = "rbac.authorization.k8s.io"


def default_owned_role(obj: Json) -> None:
    """Leave an empty list of rules as it is: the writer owns the rules."""
    obj.setdefault("rules", None)


def _role(obj: Json) -> None:
    obj["rules"] = obj.get("rules") or None


def _binding(obj: Json) -> None:
    role = as_dict(obj.get("roleRef"))
    role["apiGroup"] = role.get("apiGroup") or _GROUP
    obj["roleRef"] = role
    for subject in as_list(obj.get("subjects")):
        if subject.get("kind") in {"User", "Group"}:
            subject["apiGroup"] = subject.get("apiGroup") or _GROUP
    if not obj.get("subjects"):
        obj.pop("subjects", None)


DEFAULTS: Final[dict[str, Callable[[Json], None]]] = {
    f"roles.{_GROUP}": _role,
    f"clusterroles.{_GROUP}": _role,
    f"rolebindings.{_GROUP}": _binding,
    f"clusterrolebindings.{_GROUP}": _binding,
}
PREPARE_CREATE: Final[dict[str, Callable[[Json], None]]] = {}
PREPARE_UPDATE: Final[dict[str, Callable[[Json, Json], None]]] = {}
