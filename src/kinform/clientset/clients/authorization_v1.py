"""Clients for the kinds of authorization.k8s.io/v1. Written by ``make clientset``."""

from __future__ import annotations

from typing import ClassVar, final

from kinform.clientset import authorization_v1
from kinform.clientset.typed import GroupClient, InNamespaces
from kinform.verbs.writing import Creates

__all__ = [
    "AuthorizationV1",
    "LocalSubjectAccessReviewClient",
    "SelfSubjectAccessReviewClient",
    "SelfSubjectRulesReviewClient",
    "SubjectAccessReviewClient",
]


@final
class LocalSubjectAccessReviewClient(
    InNamespaces[authorization_v1.LocalSubjectAccessReview],
    Creates[authorization_v1.LocalSubjectAccessReview],
):
    """Every LocalSubjectAccessReview, or those of one namespace."""


@final
class SelfSubjectAccessReviewClient(Creates[authorization_v1.SelfSubjectAccessReview]):
    """Every SelfSubjectAccessReview."""


@final
class SelfSubjectRulesReviewClient(Creates[authorization_v1.SelfSubjectRulesReview]):
    """Every SelfSubjectRulesReview."""


@final
class SubjectAccessReviewClient(Creates[authorization_v1.SubjectAccessReview]):
    """Every SubjectAccessReview."""


@final
class AuthorizationV1(GroupClient):
    """The kinds of authorization.k8s.io/v1."""

    api_version: ClassVar[str] = "authorization.k8s.io/v1"

    def local_subject_access_reviews(
        self, namespace: str | None = None
    ) -> LocalSubjectAccessReviewClient:
        """In ``namespace``; by default in the client's own, with ``""`` in all."""
        return self._of(
            LocalSubjectAccessReviewClient, authorization_v1.LocalSubjectAccessReview, namespace
        )

    def self_subject_access_reviews(self) -> SelfSubjectAccessReviewClient:
        """Of the whole cluster."""
        return self._of(SelfSubjectAccessReviewClient, authorization_v1.SelfSubjectAccessReview)

    def self_subject_rules_reviews(self) -> SelfSubjectRulesReviewClient:
        """Of the whole cluster."""
        return self._of(SelfSubjectRulesReviewClient, authorization_v1.SelfSubjectRulesReview)

    def subject_access_reviews(self) -> SubjectAccessReviewClient:
        """Of the whole cluster."""
        return self._of(SubjectAccessReviewClient, authorization_v1.SubjectAccessReview)
