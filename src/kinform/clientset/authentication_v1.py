"""Kubernetes v1.36.4: the models of authentication/v1. Written by ``make clientset``."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import msgspec

from kinform import clientset
from kinform.clientset.wire import Time, WireModel
from kinform.meta import GroupVersionKind, GroupVersionResource

__all__ = [
    "BoundObjectReference",
    "SelfSubjectReview",
    "SelfSubjectReviewStatus",
    "TokenRequest",
    "TokenRequestSpec",
    "TokenRequestStatus",
    "TokenReview",
    "TokenReviewSpec",
    "TokenReviewStatus",
    "UserInfo",
    "apply",
]


class BoundObjectReference(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """BoundObjectReference is a reference to an object that a token is bound to."""

    api_version: str | None = msgspec.field(default=None, name="apiVersion")
    """apiVersion is API version of the referent."""
    kind: str | None = None
    """kind of the referent. Valid kinds are 'Pod' and 'Secret'."""
    name: str | None = None
    """name of the referent."""
    uid: str | None = None
    """uid of the referent."""


class UserInfo(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """UserInfo holds the information about the user needed to implement the user.Info interface."""

    extra: Mapping[str, Sequence[str]] | None = None
    """extra is any additional information provided by the authenticator."""
    groups: Sequence[str] | None = None
    """groups is the names of groups this user is a part of."""
    uid: str | None = None
    """uid is a unique value that identifies this user across time. If this user is deleted and
    another user by the same name is added, they will have different UIDs.
    """
    username: str | None = None
    """username is the name that uniquely identifies this user among all active users."""


class SelfSubjectReviewStatus(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """SelfSubjectReviewStatus is filled by the kube-apiserver and sent back to a user."""

    user_info: UserInfo = msgspec.field(default=UserInfo(), name="userInfo")
    """userInfo is a set of attributes belonging to the user making this request."""


class SelfSubjectReview(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """SelfSubjectReview contains the user information that the kube-apiserver has about the user
    making this request. When using impersonation, users will receive the user info of the
    user being impersonated.  If impersonation or request header authentication is used, any
    extra keys will have their case ignored and returned as lowercase.
    """

    __resource__: ClassVar[str] = "authentication.k8s.io/v1/selfsubjectreviews"
    __gvk__: ClassVar[GroupVersionKind] = GroupVersionKind(
        "authentication.k8s.io", "v1", "SelfSubjectReview"
    )
    __gvr__: ClassVar[GroupVersionResource] = GroupVersionResource(
        "authentication.k8s.io", "v1", "selfsubjectreviews"
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
    """metadata is standard object's metadata. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata
    """
    status: SelfSubjectReviewStatus = SelfSubjectReviewStatus()
    """status is filled in by the server with the user attributes."""


class TokenRequestSpec(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """TokenRequestSpec contains client provided parameters of a token request."""

    audiences: Sequence[str] | None = None
    """audiences are the intendend audiences of the token. A recipient of a token must identify
    themself with an identifier in the list of audiences of the token, and otherwise should
    reject the token. A token issued for multiple audiences may be used to authenticate
    against any of the audiences listed but implies a high degree of trust between the target
    audiences.
    """
    bound_object_ref: BoundObjectReference | None = msgspec.field(
        default=None, name="boundObjectRef"
    )
    """boundObjectRef is a reference to an object that the token will be bound to. The token will
    only be valid for as long as the bound object exists. NOTE: The API server's TokenReview
    endpoint will validate the BoundObjectRef, but other audiences may not. Keep
    ExpirationSeconds small if you want prompt revocation.
    """
    expiration_seconds: int | None = msgspec.field(default=None, name="expirationSeconds")
    """expirationSeconds is the requested duration of validity of the request. The token issuer
    may return a token with a different validity duration so a client needs to check the
    'expiration' field in a response.
    """


class TokenRequestStatus(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """TokenRequestStatus is the result of a token request."""

    expiration_timestamp: Time | None = msgspec.field(default=None, name="expirationTimestamp")
    """expirationTimestamp is the time of expiration of the returned token."""
    token: str | None = None
    """token is the opaque bearer token."""


class TokenRequest(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """TokenRequest requests a token for a given service account."""

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
    """metadata is the standard object's metadata. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata
    """
    spec: TokenRequestSpec = TokenRequestSpec()
    """spec holds information about the request being evaluated"""
    status: TokenRequestStatus = TokenRequestStatus()
    """status is filled in by the server and indicates whether the token can be authenticated."""


class TokenReviewSpec(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """TokenReviewSpec is a description of the token authentication request."""

    audiences: Sequence[str] | None = None
    """audiences is a list of the identifiers that the resource server presented with the token
    identifies as. Audience-aware token authenticators will verify that the token was intended
    for at least one of the audiences in this list. If no audiences are provided, the audience
    will default to the audience of the Kubernetes apiserver.
    """
    token: str | None = None
    """token is the opaque bearer token."""


class TokenReviewStatus(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """TokenReviewStatus is the result of the token authentication request."""

    audiences: Sequence[str] | None = None
    """audiences are audience identifiers chosen by the authenticator that are compatible with
    both the TokenReview and token. An identifier is any identifier in the intersection of the
    TokenReviewSpec audiences and the token's audiences. A client of the TokenReview API that
    sets the spec.audiences field should validate that a compatible audience identifier is
    returned in the status.audiences field to ensure that the TokenReview server is audience
    aware. If a TokenReview returns an empty status.audience field where status.authenticated
    is "true", the token is valid against the audience of the Kubernetes API server.
    """
    authenticated: bool | None = None
    """authenticated indicates that the token was associated with a known user."""
    error: str | None = None
    """error indicates that the token couldn't be checked"""
    user: UserInfo = UserInfo()
    """user is the UserInfo associated with the provided token."""


class TokenReview(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """TokenReview attempts to authenticate a token to a known user. Note: TokenReview requests
    may be cached by the webhook token authenticator plugin in the kube-apiserver.
    """

    __resource__: ClassVar[str] = "authentication.k8s.io/v1/tokenreviews"
    __gvk__: ClassVar[GroupVersionKind] = GroupVersionKind(
        "authentication.k8s.io", "v1", "TokenReview"
    )
    __gvr__: ClassVar[GroupVersionResource] = GroupVersionResource(
        "authentication.k8s.io", "v1", "tokenreviews"
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
    """metadata is the standard object's metadata. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata
    """
    spec: TokenReviewSpec = TokenReviewSpec()
    """spec holds information about the request being evaluated"""
    status: TokenReviewStatus = TokenReviewStatus()
    """status is filled in by the server and indicates whether the request can be authenticated."""


if TYPE_CHECKING:
    from kinform.clientset import authentication_v1 as apply
else:
    apply = sys.modules[__name__]
"""What to apply: every field of a model may be left out, so it is the models themselves."""
