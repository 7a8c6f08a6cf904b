"""Kubernetes v1.36.4: the models of authorization/v1. Written by ``make clientset``."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import msgspec

from kinform import clientset
from kinform.clientset.wire import WireModel
from kinform.meta import GroupVersionKind, GroupVersionResource

__all__ = [
    "FieldSelectorAttributes",
    "LabelSelectorAttributes",
    "LocalSubjectAccessReview",
    "NonResourceAttributes",
    "NonResourceRule",
    "ResourceAttributes",
    "ResourceRule",
    "SelfSubjectAccessReview",
    "SelfSubjectAccessReviewSpec",
    "SelfSubjectRulesReview",
    "SelfSubjectRulesReviewSpec",
    "SubjectAccessReview",
    "SubjectAccessReviewSpec",
    "SubjectAccessReviewStatus",
    "SubjectRulesReviewStatus",
    "apply",
]


class FieldSelectorAttributes(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """FieldSelectorAttributes indicates a field limited access. Webhook authors are encouraged
    to * ensure rawSelector and requirements are not both set * consider the requirements
    field if set * not try to parse or consider the rawSelector field if set. This is to avoid
    another CVE-2022-2880 (i.e. getting different systems to agree on how exactly to parse a
    query is not something we want), see
    https://www.oxeye.io/resources/golang-parameter-smuggling-attack for more details. For the
    *SubjectAccessReview endpoints of the kube-apiserver: * If rawSelector is empty and
    requirements are empty, the request is not limited. * If rawSelector is present and
    requirements are empty, the rawSelector will be parsed and limited if the parsing
    succeeds. * If rawSelector is empty and requirements are present, the requirements should
    be honored * If rawSelector is present and requirements are present, the request is
    invalid.
    """

    raw_selector: str | None = msgspec.field(default=None, name="rawSelector")
    """rawSelector is the serialization of a field selector that would be included in a query
    parameter. Webhook implementations are encouraged to ignore rawSelector. The
    kube-apiserver's *SubjectAccessReview will parse the rawSelector as long as the
    requirements are not present.
    """
    requirements: Sequence[clientset.meta_v1.FieldSelectorRequirement] | None = None
    """requirements is the parsed interpretation of a field selector. All requirements must be
    met for a resource instance to match the selector. Webhook implementations should handle
    requirements, but how to handle them is up to the webhook. Since requirements can only
    limit the request, it is safe to authorize as unlimited request if the requirements are
    not understood.
    """


class LabelSelectorAttributes(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """LabelSelectorAttributes indicates a label limited access. Webhook authors are encouraged
    to * ensure rawSelector and requirements are not both set * consider the requirements
    field if set * not try to parse or consider the rawSelector field if set. This is to avoid
    another CVE-2022-2880 (i.e. getting different systems to agree on how exactly to parse a
    query is not something we want), see
    https://www.oxeye.io/resources/golang-parameter-smuggling-attack for more details. For the
    *SubjectAccessReview endpoints of the kube-apiserver: * If rawSelector is empty and
    requirements are empty, the request is not limited. * If rawSelector is present and
    requirements are empty, the rawSelector will be parsed and limited if the parsing
    succeeds. * If rawSelector is empty and requirements are present, the requirements should
    be honored * If rawSelector is present and requirements are present, the request is
    invalid.
    """

    raw_selector: str | None = msgspec.field(default=None, name="rawSelector")
    """rawSelector is the serialization of a field selector that would be included in a query
    parameter. Webhook implementations are encouraged to ignore rawSelector. The
    kube-apiserver's *SubjectAccessReview will parse the rawSelector as long as the
    requirements are not present.
    """
    requirements: Sequence[clientset.meta_v1.LabelSelectorRequirement] | None = None
    """requirements is the parsed interpretation of a label selector. All requirements must be
    met for a resource instance to match the selector. Webhook implementations should handle
    requirements, but how to handle them is up to the webhook. Since requirements can only
    limit the request, it is safe to authorize as unlimited request if the requirements are
    not understood.
    """


class SubjectAccessReviewSpec(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """SubjectAccessReviewSpec is a description of the access request.  Exactly one of
    resourceAttributes and nonResourceAttributes must be set
    """

    extra: Mapping[str, Sequence[str]] | None = None
    """extra corresponds to the user.Info.GetExtra() method from the authenticator.  Since that
    is input to the authorizer it needs a reflection here.
    """
    groups: Sequence[str] | None = None
    """groups is the groups you're testing for."""
    non_resource_attributes: NonResourceAttributes | None = msgspec.field(
        default=None, name="nonResourceAttributes"
    )
    """nonResourceAttributes describes information for a non-resource access request"""
    resource_attributes: ResourceAttributes | None = msgspec.field(
        default=None, name="resourceAttributes"
    )
    """resourceAttributes describes information for a resource access request"""
    uid: str | None = None
    """uid information about the requesting user."""
    user: str | None = None
    """user is the user you're testing for. If you specify "User" but not "Groups", then is it
    interpreted as "What if User were not a member of any groups
    """


class SubjectAccessReviewStatus(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """SubjectAccessReviewStatus"""

    allowed: bool | None = None
    """allowed is required. True if the action would be allowed, false otherwise."""
    denied: bool | None = None
    """denied is optional. True if the action would be denied, otherwise false. If both allowed
    is false and denied is false, then the authorizer has no opinion on whether to authorize
    the action. Denied may not be true if Allowed is true.
    """
    evaluation_error: str | None = msgspec.field(default=None, name="evaluationError")
    """evaluationError is an indication that some error occurred during the authorization check.
    It is entirely possible to get an error and be able to continue determine authorization
    status in spite of it. For instance, RBAC can be missing a role, but enough roles are
    still present and bound to reason about the request.
    """
    reason: str | None = None
    """reason is optional.  It indicates why a request was allowed or denied."""


class LocalSubjectAccessReview(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """LocalSubjectAccessReview checks whether or not a user or group can perform an action in a
    given namespace. Having a namespace scoped resource makes it much easier to grant
    namespace scoped policy that includes permissions checking.
    """

    __resource__: ClassVar[str] = "authorization.k8s.io/v1/localsubjectaccessreviews"
    __gvk__: ClassVar[GroupVersionKind] = GroupVersionKind(
        "authorization.k8s.io", "v1", "LocalSubjectAccessReview"
    )
    __gvr__: ClassVar[GroupVersionResource] = GroupVersionResource(
        "authorization.k8s.io", "v1", "localsubjectaccessreviews"
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
    """metadata is the standard list metadata. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata
    """
    spec: SubjectAccessReviewSpec = SubjectAccessReviewSpec()
    """spec holds information about the request being evaluated.  spec.namespace must be equal to
    the namespace you made the request against.  If empty, it is defaulted.
    """
    status: SubjectAccessReviewStatus = SubjectAccessReviewStatus()
    """status is filled in by the server and indicates whether the request is allowed or not"""


class NonResourceAttributes(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """NonResourceAttributes includes the authorization attributes available for non-resource
    requests to the Authorizer interface
    """

    path: str | None = None
    """path is the URL path of the request"""
    verb: str | None = None
    """verb is the standard HTTP verb"""


class NonResourceRule(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """NonResourceRule holds information that describes a rule for the non-resource"""

    non_resource_urls: Sequence[str] | None = msgspec.field(default=None, name="nonResourceURLs")
    """nonResourceURLs is a set of partial urls that a user should have access to.  *s are
    allowed, but only as the full, final step in the path.  "*" means all.
    """
    verbs: Sequence[str] | None = None
    """verbs is a list of kubernetes non-resource API verbs, like: get, post, put, delete, patch,
    head, options.  "*" means all.
    """


class ResourceAttributes(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """ResourceAttributes includes the authorization attributes available for resource requests
    to the Authorizer interface
    """

    field_selector: FieldSelectorAttributes | None = msgspec.field(
        default=None, name="fieldSelector"
    )
    """fieldSelector describes the limitation on access based on field.  It can only limit
    access, not broaden it.
    """
    group: str | None = None
    """group is the API Group of the Resource.  "*" means all."""
    label_selector: LabelSelectorAttributes | None = msgspec.field(
        default=None, name="labelSelector"
    )
    """labelSelector describes the limitation on access based on labels.  It can only limit
    access, not broaden it.
    """
    name: str | None = None
    """name is the name of the resource being requested for a "get" or deleted for a "delete". ""
    (empty) means all.
    """
    namespace: str | None = None
    """namespace is the namespace of the action being requested.  Currently, there is no
    distinction between no namespace and all namespaces "" (empty) is defaulted for
    LocalSubjectAccessReviews "" (empty) is empty for cluster-scoped resources "" (empty)
    means "all" for namespace scoped resources from a SubjectAccessReview or
    SelfSubjectAccessReview
    """
    resource: str | None = None
    """resource is one of the existing resource types.  "*" means all."""
    subresource: str | None = None
    """subresource is one of the existing resource types.  "" means none."""
    verb: str | None = None
    """verb is a kubernetes resource API verb, like: get, list, watch, create, update, delete,
    proxy.  "*" means all.
    """
    version: str | None = None
    """version is the API Version of the Resource.  "*" means all."""


class ResourceRule(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """ResourceRule is the list of actions the subject is allowed to perform on resources. The
    list ordering isn't significant, may contain duplicates, and possibly be incomplete.
    """

    api_groups: Sequence[str] | None = msgspec.field(default=None, name="apiGroups")
    """apiGroups is the name of the APIGroup that contains the resources.  If multiple API groups
    are specified, any action requested against one of the enumerated resources in any API
    group will be allowed.  "*" means all.
    """
    resource_names: Sequence[str] | None = msgspec.field(default=None, name="resourceNames")
    """resourceNames is an optional white list of names that the rule applies to.  An empty set
    means that everything is allowed.  "*" means all.
    """
    resources: Sequence[str] | None = None
    """resources is a list of resources this rule applies to.  "*" means all in the specified
    apiGroups.
    "*/foo" represents the subresource 'foo' for all resources in the specified apiGroups.
    """
    verbs: Sequence[str] | None = None
    """verbs is a list of kubernetes resource API verbs, like: get, list, watch, create, update,
    delete, proxy.  "*" means all.
    """


class SelfSubjectAccessReviewSpec(
    WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    """SelfSubjectAccessReviewSpec is a description of the access request.  Exactly one of
    resourceAttributes and nonResourceAttributes must be set
    """

    non_resource_attributes: NonResourceAttributes | None = msgspec.field(
        default=None, name="nonResourceAttributes"
    )
    """nonResourceAttributes describes information for a non-resource access request"""
    resource_attributes: ResourceAttributes | None = msgspec.field(
        default=None, name="resourceAttributes"
    )
    """resourceAttributes describes information for a resource access request"""


class SelfSubjectAccessReview(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """SelfSubjectAccessReview checks whether or the current user can perform an action.  Not
    filling in a spec.namespace means "in all namespaces".  Self is a special case, because
    users should always be able to check whether they can perform an action
    """

    __resource__: ClassVar[str] = "authorization.k8s.io/v1/selfsubjectaccessreviews"
    __gvk__: ClassVar[GroupVersionKind] = GroupVersionKind(
        "authorization.k8s.io", "v1", "SelfSubjectAccessReview"
    )
    __gvr__: ClassVar[GroupVersionResource] = GroupVersionResource(
        "authorization.k8s.io", "v1", "selfsubjectaccessreviews"
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
    """metadata is the standard list metadata. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata
    """
    spec: SelfSubjectAccessReviewSpec = SelfSubjectAccessReviewSpec()
    """spec holds information about the request being evaluated.  user and groups must be empty"""
    status: SubjectAccessReviewStatus = SubjectAccessReviewStatus()
    """status is filled in by the server and indicates whether the request is allowed or not"""


class SelfSubjectRulesReviewSpec(
    WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    """SelfSubjectRulesReviewSpec defines the specification for SelfSubjectRulesReview."""

    namespace: str | None = None
    """namespace to evaluate rules for. Required."""


class SubjectRulesReviewStatus(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """SubjectRulesReviewStatus contains the result of a rules check. This check can be
    incomplete depending on the set of authorizers the server is configured with and any
    errors experienced during evaluation. Because authorization rules are additive, if a rule
    appears in a list it's safe to assume the subject has that permission, even if that list
    is incomplete.
    """

    evaluation_error: str | None = msgspec.field(default=None, name="evaluationError")
    """evaluationError can appear in combination with Rules. It indicates an error occurred
    during rule evaluation, such as an authorizer that doesn't support rule evaluation, and
    that ResourceRules and/or NonResourceRules may be incomplete.
    """
    incomplete: bool | None = None
    """incomplete is true when the rules returned by this call are incomplete. This is most
    commonly encountered when an authorizer, such as an external authorizer, doesn't support
    rules evaluation.
    """
    non_resource_rules: Sequence[NonResourceRule] | None = msgspec.field(
        default=None, name="nonResourceRules"
    )
    """nonResourceRules is the list of actions the subject is allowed to perform on
    non-resources. The list ordering isn't significant, may contain duplicates, and possibly
    be incomplete.
    """
    resource_rules: Sequence[ResourceRule] | None = msgspec.field(
        default=None, name="resourceRules"
    )
    """resourceRules is the list of actions the subject is allowed to perform on resources. The
    list ordering isn't significant, may contain duplicates, and possibly be incomplete.
    """


class SelfSubjectRulesReview(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """SelfSubjectRulesReview enumerates the set of actions the current user can perform within a
    namespace. The returned list of actions may be incomplete depending on the server's
    authorization mode, and any errors experienced during the evaluation.
    SelfSubjectRulesReview should be used by UIs to show/hide actions, or to quickly let an
    end user reason about their permissions. It should NOT Be used by external systems to
    drive authorization decisions as this raises confused deputy, cache lifetime/revocation,
    and correctness concerns. SubjectAccessReview, and LocalAccessReview are the correct way
    to defer authorization decisions to the API server.
    """

    __resource__: ClassVar[str] = "authorization.k8s.io/v1/selfsubjectrulesreviews"
    __gvk__: ClassVar[GroupVersionKind] = GroupVersionKind(
        "authorization.k8s.io", "v1", "SelfSubjectRulesReview"
    )
    __gvr__: ClassVar[GroupVersionResource] = GroupVersionResource(
        "authorization.k8s.io", "v1", "selfsubjectrulesreviews"
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
    """metadata is the standard list metadata. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata
    """
    spec: SelfSubjectRulesReviewSpec = SelfSubjectRulesReviewSpec()
    """spec holds information about the request being evaluated."""
    status: SubjectRulesReviewStatus = SubjectRulesReviewStatus()
    """status is filled in by the server and indicates the set of actions a user can perform."""


class SubjectAccessReview(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """SubjectAccessReview checks whether or not a user or group can perform an action."""

    __resource__: ClassVar[str] = "authorization.k8s.io/v1/subjectaccessreviews"
    __gvk__: ClassVar[GroupVersionKind] = GroupVersionKind(
        "authorization.k8s.io", "v1", "SubjectAccessReview"
    )
    __gvr__: ClassVar[GroupVersionResource] = GroupVersionResource(
        "authorization.k8s.io", "v1", "subjectaccessreviews"
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
    """metadata is the standard list metadata. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata
    """
    spec: SubjectAccessReviewSpec = SubjectAccessReviewSpec()
    """spec holds information about the request being evaluated"""
    status: SubjectAccessReviewStatus = SubjectAccessReviewStatus()
    """status is filled in by the server and indicates whether the request is allowed or not"""


if TYPE_CHECKING:
    from kinform.clientset import authorization_v1 as apply
else:
    apply = sys.modules[__name__]
"""What to apply: every field of a model may be left out, so it is the models themselves."""
