"""Kubernetes v1.36.4: the models of rbac/v1. Written by ``make clientset``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import msgspec

from kinform import clientset
from kinform.clientset.wire import WireModel
from kinform.meta import GroupVersionKind, GroupVersionResource

__all__ = [
    "AggregationRule",
    "ClusterRole",
    "ClusterRoleBinding",
    "PolicyRule",
    "Role",
    "RoleBinding",
    "RoleRef",
    "Subject",
    "apply",
]


class AggregationRule(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """AggregationRule describes how to locate ClusterRoles to aggregate into the ClusterRole"""

    cluster_role_selectors: Sequence[clientset.meta_v1.LabelSelector] | None = msgspec.field(
        default=None, name="clusterRoleSelectors"
    )
    """ClusterRoleSelectors holds a list of selectors which will be used to find ClusterRoles and
    create the rules. If any of the selectors match, then the ClusterRole's permissions will
    be added
    """


class ClusterRole(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """ClusterRole is a cluster level, logical grouping of PolicyRules that can be referenced as
    a unit by a RoleBinding or ClusterRoleBinding.
    """

    __resource__: ClassVar[str] = "rbac.authorization.k8s.io/v1/clusterroles"
    __gvk__: ClassVar[GroupVersionKind] = GroupVersionKind(
        "rbac.authorization.k8s.io", "v1", "ClusterRole"
    )
    __gvr__: ClassVar[GroupVersionResource] = GroupVersionResource(
        "rbac.authorization.k8s.io", "v1", "clusterroles"
    )
    __namespaced__: ClassVar[bool] = False

    aggregation_rule: AggregationRule | None = msgspec.field(default=None, name="aggregationRule")
    """AggregationRule is an optional field that describes how to build the Rules for this
    ClusterRole. If AggregationRule is set, then the Rules are controller managed and direct
    changes to Rules will be stomped by the controller.
    """
    api_version: str | None = msgspec.field(default=None, name="apiVersion")
    """APIVersion defines the versioned schema of this representation of an object. Servers
    should convert recognized schemas to the latest internal value, and may reject
    unrecognized values. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources
    """
    kind: str | None = None
    """Kind is a string value representing the REST resource this object represents. Servers may
    infer this from the endpoint the client submits requests to. Cannot be updated. In
    CamelCase. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds
    """
    metadata: clientset.meta_v1.ObjectMeta = clientset.meta_v1.ObjectMeta()
    """Standard object's metadata."""
    rules: Sequence[PolicyRule] | None = None
    """Rules holds all the PolicyRules for this ClusterRole"""


class RoleRef(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """RoleRef contains information that points to the role being used"""

    api_group: str | None = msgspec.field(default=None, name="apiGroup")
    """APIGroup is the group for the resource being referenced"""
    kind: str | None = None
    """Kind is the type of resource being referenced"""
    name: str | None = None
    """Name is the name of resource being referenced"""


class ClusterRoleBinding(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """ClusterRoleBinding references a ClusterRole, but not contain it.  It can reference a
    ClusterRole in the global namespace, and adds who information via Subject.
    """

    __resource__: ClassVar[str] = "rbac.authorization.k8s.io/v1/clusterrolebindings"
    __gvk__: ClassVar[GroupVersionKind] = GroupVersionKind(
        "rbac.authorization.k8s.io", "v1", "ClusterRoleBinding"
    )
    __gvr__: ClassVar[GroupVersionResource] = GroupVersionResource(
        "rbac.authorization.k8s.io", "v1", "clusterrolebindings"
    )
    __namespaced__: ClassVar[bool] = False

    api_version: str | None = msgspec.field(default=None, name="apiVersion")
    """APIVersion defines the versioned schema of this representation of an object. Servers
    should convert recognized schemas to the latest internal value, and may reject
    unrecognized values. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources
    """
    kind: str | None = None
    """Kind is a string value representing the REST resource this object represents. Servers may
    infer this from the endpoint the client submits requests to. Cannot be updated. In
    CamelCase. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds
    """
    metadata: clientset.meta_v1.ObjectMeta = clientset.meta_v1.ObjectMeta()
    """Standard object's metadata."""
    role_ref: RoleRef = msgspec.field(default=RoleRef(), name="roleRef")
    """RoleRef can only reference a ClusterRole in the global namespace. If the RoleRef cannot be
    resolved, the Authorizer must return an error. This field is immutable.
    """
    subjects: Sequence[Subject] | None = None
    """Subjects holds references to the objects the role applies to."""


class PolicyRule(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """PolicyRule holds information that describes a policy rule, but does not contain
    information about who the rule applies to or which namespace the rule applies to.
    """

    api_groups: Sequence[str] | None = msgspec.field(default=None, name="apiGroups")
    """APIGroups is the name of the APIGroup that contains the resources.  If multiple API groups
    are specified, any action requested against one of the enumerated resources in any API
    group will be allowed. "" represents the core API group and "*" represents all API groups.
    """
    non_resource_urls: Sequence[str] | None = msgspec.field(default=None, name="nonResourceURLs")
    """NonResourceURLs is a set of partial urls that a user should have access to.  *s are
    allowed, but only as the full, final step in the path Since non-resource URLs are not
    namespaced, this field is only applicable for ClusterRoles referenced from a
    ClusterRoleBinding. Rules can either apply to API resources (such as "pods" or "secrets")
    or non-resource URL paths (such as "/api"),  but not both.
    """
    resource_names: Sequence[str] | None = msgspec.field(default=None, name="resourceNames")
    """ResourceNames is an optional white list of names that the rule applies to.  An empty set
    means that everything is allowed.
    """
    resources: Sequence[str] | None = None
    """Resources is a list of resources this rule applies to. '*' represents all resources."""
    verbs: Sequence[str] | None = None
    """Verbs is a list of Verbs that apply to ALL the ResourceKinds contained in this rule. '*'
    represents all verbs.
    """


class Role(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Role is a namespaced, logical grouping of PolicyRules that can be referenced as a unit by
    a RoleBinding.
    """

    __resource__: ClassVar[str] = "rbac.authorization.k8s.io/v1/roles"
    __gvk__: ClassVar[GroupVersionKind] = GroupVersionKind(
        "rbac.authorization.k8s.io", "v1", "Role"
    )
    __gvr__: ClassVar[GroupVersionResource] = GroupVersionResource(
        "rbac.authorization.k8s.io", "v1", "roles"
    )
    __namespaced__: ClassVar[bool] = True

    api_version: str | None = msgspec.field(default=None, name="apiVersion")
    """APIVersion defines the versioned schema of this representation of an object. Servers
    should convert recognized schemas to the latest internal value, and may reject
    unrecognized values. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources
    """
    kind: str | None = None
    """Kind is a string value representing the REST resource this object represents. Servers may
    infer this from the endpoint the client submits requests to. Cannot be updated. In
    CamelCase. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds
    """
    metadata: clientset.meta_v1.ObjectMeta = clientset.meta_v1.ObjectMeta()
    """Standard object's metadata."""
    rules: Sequence[PolicyRule] | None = None
    """Rules holds all the PolicyRules for this Role"""


class RoleBinding(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """RoleBinding references a role, but does not contain it.  It can reference a Role in the
    same namespace or a ClusterRole in the global namespace. It adds who information via
    Subjects and namespace information by which namespace it exists in.  RoleBindings in a
    given namespace only have effect in that namespace.
    """

    __resource__: ClassVar[str] = "rbac.authorization.k8s.io/v1/rolebindings"
    __gvk__: ClassVar[GroupVersionKind] = GroupVersionKind(
        "rbac.authorization.k8s.io", "v1", "RoleBinding"
    )
    __gvr__: ClassVar[GroupVersionResource] = GroupVersionResource(
        "rbac.authorization.k8s.io", "v1", "rolebindings"
    )
    __namespaced__: ClassVar[bool] = True

    api_version: str | None = msgspec.field(default=None, name="apiVersion")
    """APIVersion defines the versioned schema of this representation of an object. Servers
    should convert recognized schemas to the latest internal value, and may reject
    unrecognized values. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources
    """
    kind: str | None = None
    """Kind is a string value representing the REST resource this object represents. Servers may
    infer this from the endpoint the client submits requests to. Cannot be updated. In
    CamelCase. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds
    """
    metadata: clientset.meta_v1.ObjectMeta = clientset.meta_v1.ObjectMeta()
    """Standard object's metadata."""
    role_ref: RoleRef = msgspec.field(default=RoleRef(), name="roleRef")
    """RoleRef can reference a Role in the current namespace or a ClusterRole in the global
    namespace. If the RoleRef cannot be resolved, the Authorizer must return an error. This
    field is immutable.
    """
    subjects: Sequence[Subject] | None = None
    """Subjects holds references to the objects the role applies to."""


class Subject(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Subject contains a reference to the object or user identities a role binding applies to.
    This can either hold a direct API object reference, or a value for non-objects such as
    user and group names.
    """

    api_group: str | None = msgspec.field(default=None, name="apiGroup")
    """APIGroup holds the API group of the referenced subject. Defaults to "" for ServiceAccount
    subjects. Defaults to "rbac.authorization.k8s.io" for User and Group subjects.
    """
    kind: str | None = None
    """Kind of object being referenced. Values defined by this API group are "User", "Group", and
    "ServiceAccount". If the Authorizer does not recognized the kind value, the Authorizer
    should report an error.
    """
    name: str | None = None
    """Name of the object being referenced."""
    namespace: str | None = None
    """Namespace of the referenced object.  If the object kind is non-namespace, such as "User"
    or "Group", and this value is not empty the Authorizer should report an error.
    """


if TYPE_CHECKING:
    from kinform.clientset import rbac_v1 as apply
else:
    apply = sys.modules[__name__]
"""What to apply: every field of a model may be left out, so it is the models themselves."""
