"""Clients for the kinds of authentication.k8s.io/v1. Written by ``make clientset``."""

from __future__ import annotations

from typing import ClassVar, final

from kinform.clientset import authentication_v1
from kinform.clientset.typed import GroupClient
from kinform.verbs.writing import Creates

__all__ = ["AuthenticationV1", "SelfSubjectReviewClient", "TokenReviewClient"]


@final
class SelfSubjectReviewClient(Creates[authentication_v1.SelfSubjectReview]):
    """Every SelfSubjectReview."""


@final
class TokenReviewClient(Creates[authentication_v1.TokenReview]):
    """Every TokenReview."""


@final
class AuthenticationV1(GroupClient):
    """The kinds of authentication.k8s.io/v1."""

    api_version: ClassVar[str] = "authentication.k8s.io/v1"

    def self_subject_reviews(self) -> SelfSubjectReviewClient:
        """Of the whole cluster."""
        return self._of(SelfSubjectReviewClient, authentication_v1.SelfSubjectReview)

    def token_reviews(self) -> TokenReviewClient:
        """Of the whole cluster."""
        return self._of(TokenReviewClient, authentication_v1.TokenReview)
