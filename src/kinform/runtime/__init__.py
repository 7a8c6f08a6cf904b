"""Controllers and what they need: sources, a manager, leader election, events, helpers.

controller-runtime, for asyncio. Names are loaded when they are first used, as those of `kinform`
itself. What decides is pure and lives in `kinform.sansio`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kinform._lazy import lazy_exports

if TYPE_CHECKING:
    from kinform.runtime.applying import apply, apply_status
    from kinform.runtime.caches import Caches
    from kinform.runtime.conditions import (
        conditions_of,
        find_condition,
        is_condition_true,
        set_condition,
        with_condition,
    )
    from kinform.runtime.context import Context
    from kinform.runtime.controller import Controller
    from kinform.runtime.finalizers import Finalizer
    from kinform.runtime.kind_source import KindSource
    from kinform.runtime.leader_election import ElectionStatistics, LeaderElector
    from kinform.runtime.manager import Manager
    from kinform.runtime.mapping import (
        MapFunc,
        to_all,
        to_annotation,
        to_itself,
        to_label,
        to_owner,
    )
    from kinform.runtime.owners import (
        AlreadyOwnedError,
        is_controlled_by,
        owner_reference,
        set_controller_reference,
        set_owner_reference,
    )
    from kinform.runtime.predicates import (
        Predicate,
        all_of,
        annotations_changed,
        any_of,
        generation_changed,
        has_labels,
        in_namespaces,
        labels_changed,
        not_,
        resource_version_changed,
    )
    from kinform.runtime.reconciling import Reconcile, Result
    from kinform.runtime.recorder import EventRecorder, RecorderStatistics
    from kinform.runtime.sources import (
        ChannelSource,
        Source,
        StreamSource,
        TimerSource,
    )
    from kinform.runtime.statistics import ControllerStatistics, Outcome
    from kinform.sansio.election_config import LeaderElection

__all__ = [
    "AlreadyOwnedError",
    "Caches",
    "ChannelSource",
    "Context",
    "Controller",
    "ControllerStatistics",
    "ElectionStatistics",
    "EventRecorder",
    "Finalizer",
    "KindSource",
    "LeaderElection",
    "LeaderElector",
    "Manager",
    "MapFunc",
    "Outcome",
    "Predicate",
    "Reconcile",
    "RecorderStatistics",
    "Result",
    "Source",
    "StreamSource",
    "TimerSource",
    "all_of",
    "annotations_changed",
    "any_of",
    "apply",
    "apply_status",
    "conditions_of",
    "find_condition",
    "generation_changed",
    "has_labels",
    "in_namespaces",
    "is_condition_true",
    "is_controlled_by",
    "labels_changed",
    "not_",
    "owner_reference",
    "resource_version_changed",
    "set_condition",
    "set_controller_reference",
    "set_owner_reference",
    "to_all",
    "to_annotation",
    "to_itself",
    "to_label",
    "to_owner",
    "with_condition",
]

_HOMES: Final[dict[str, str]] = {
    "AlreadyOwnedError": "kinform.runtime.owners",
    "conditions_of": "kinform.runtime.conditions",
    "Caches": "kinform.runtime.caches",
    "ChannelSource": "kinform.runtime.sources",
    "Context": "kinform.runtime.context",
    "Controller": "kinform.runtime.controller",
    "ControllerStatistics": "kinform.runtime.statistics",
    "ElectionStatistics": "kinform.runtime.leader_election",
    "EventRecorder": "kinform.runtime.recorder",
    "Finalizer": "kinform.runtime.finalizers",
    "KindSource": "kinform.runtime.kind_source",
    "LeaderElection": "kinform.sansio.election_config",
    "LeaderElector": "kinform.runtime.leader_election",
    "Manager": "kinform.runtime.manager",
    "MapFunc": "kinform.runtime.mapping",
    "Outcome": "kinform.runtime.statistics",
    "Predicate": "kinform.runtime.predicates",
    "Reconcile": "kinform.runtime.reconciling",
    "RecorderStatistics": "kinform.runtime.recorder",
    "Result": "kinform.runtime.reconciling",
    "Source": "kinform.runtime.sources",
    "StreamSource": "kinform.runtime.sources",
    "TimerSource": "kinform.runtime.sources",
    "all_of": "kinform.runtime.predicates",
    "annotations_changed": "kinform.runtime.predicates",
    "any_of": "kinform.runtime.predicates",
    "apply": "kinform.runtime.applying",
    "apply_status": "kinform.runtime.applying",
    "find_condition": "kinform.runtime.conditions",
    "generation_changed": "kinform.runtime.predicates",
    "has_labels": "kinform.runtime.predicates",
    "in_namespaces": "kinform.runtime.predicates",
    "is_condition_true": "kinform.runtime.conditions",
    "is_controlled_by": "kinform.runtime.owners",
    "labels_changed": "kinform.runtime.predicates",
    "not_": "kinform.runtime.predicates",
    "owner_reference": "kinform.runtime.owners",
    "resource_version_changed": "kinform.runtime.predicates",
    "set_condition": "kinform.runtime.conditions",
    "set_controller_reference": "kinform.runtime.owners",
    "set_owner_reference": "kinform.runtime.owners",
    "to_all": "kinform.runtime.mapping",
    "to_annotation": "kinform.runtime.mapping",
    "to_itself": "kinform.runtime.mapping",
    "to_label": "kinform.runtime.mapping",
    "to_owner": "kinform.runtime.mapping",
    "with_condition": "kinform.runtime.conditions",
}


if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
