"""Clients for the kinds of batch/v1. Written by ``make clientset``."""

from __future__ import annotations

from typing import ClassVar, final

from kinform.clientset import batch_v1
from kinform.clientset.typed import GroupClient, HasParts, InNamespaces, Objects, Part

__all__ = ["BatchV1", "CronJobClient", "JobClient"]


@final
class CronJobClient(
    InNamespaces[batch_v1.CronJob], Objects[batch_v1.CronJob], HasParts[batch_v1.CronJob]
):
    """Every CronJob, or those of one namespace."""

    @property
    def status(self) -> Part[batch_v1.CronJob]:
        """The ``status`` of an object, by itself."""
        return self._part("status", batch_v1.CronJob)


@final
class JobClient(InNamespaces[batch_v1.Job], Objects[batch_v1.Job], HasParts[batch_v1.Job]):
    """Every Job, or those of one namespace."""

    @property
    def status(self) -> Part[batch_v1.Job]:
        """The ``status`` of an object, by itself."""
        return self._part("status", batch_v1.Job)


@final
class BatchV1(GroupClient):
    """The kinds of batch/v1."""

    api_version: ClassVar[str] = "batch/v1"

    def cron_jobs(self, namespace: str | None = None) -> CronJobClient:
        """In ``namespace``; by default in the client's own, with ``""`` in all."""
        return self._of(CronJobClient, batch_v1.CronJob, namespace)

    def jobs(self, namespace: str | None = None) -> JobClient:
        """In ``namespace``; by default in the client's own, with ``""`` in all."""
        return self._of(JobClient, batch_v1.Job, namespace)
