"""Controllers and what they need: sources, a manager, leader election, events, helpers.

controller-runtime, for asyncio. Names are loaded when they are first used, as those of `kinform`
itself. What decides is pure and lives in `kinform.sansio`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kinform._lazy import lazy_exports

if TYPE_CHECKING:
    from kinform.runtime.controller.caches import Caches
    from kinform.runtime.controller.context import Context
    from kinform.runtime.controller.controller import Controller
    from kinform.runtime.controller.reconciler import Reconcile, Result
    from kinform.runtime.controller.statistics import ControllerStatistics, Outcome
    from kinform.runtime.events.recorder import EventRecorder, RecorderStatistics
    from kinform.runtime.finalizer import Finalizer
    from kinform.runtime.leader_election import ElectionStatistics, LeaderElector
    from kinform.runtime.manager import Manager
    from kinform.runtime.map_functions import (
        MapFunc,
        to_all,
        to_annotation,
        to_itself,
        to_label,
        to_owner,
    )
    from kinform.runtime.owner_references import (
        AlreadyOwnedError,
        is_controlled_by,
        owner_reference,
        set_controller_reference,
        set_owner_reference,
    )
    from kinform.runtime.predicate import (
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
    from kinform.runtime.server_side_apply import apply, apply_status
    from kinform.runtime.source.kind import KindSource
    from kinform.runtime.source.triggers import (
        ChannelSource,
        Source,
        StreamSource,
        TimerSource,
    )
    from kinform.runtime.status_conditions import (
        conditions_of,
        find_condition,
        is_condition_true,
        set_condition,
        with_condition,
    )
    from kinform.sansio.election.config import LeaderElection

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
    "AlreadyOwnedError": "kinform.runtime.owner_references",
    "conditions_of": "kinform.runtime.status_conditions",
    "Caches": "kinform.runtime.controller.caches",
    "ChannelSource": "kinform.runtime.source.triggers",
    "Context": "kinform.runtime.controller.context",
    "Controller": "kinform.runtime.controller.controller",
    "ControllerStatistics": "kinform.runtime.controller.statistics",
    "ElectionStatistics": "kinform.runtime.leader_election",
    "EventRecorder": "kinform.runtime.events.recorder",
    "Finalizer": "kinform.runtime.finalizer",
    "KindSource": "kinform.runtime.source.kind",
    "LeaderElection": "kinform.sansio.election.config",
    "LeaderElector": "kinform.runtime.leader_election",
    "Manager": "kinform.runtime.manager",
    "MapFunc": "kinform.runtime.map_functions",
    "Outcome": "kinform.runtime.controller.statistics",
    "Predicate": "kinform.runtime.predicate",
    "Reconcile": "kinform.runtime.controller.reconciler",
    "RecorderStatistics": "kinform.runtime.events.recorder",
    "Result": "kinform.runtime.controller.reconciler",
    "Source": "kinform.runtime.source.triggers",
    "StreamSource": "kinform.runtime.source.triggers",
    "TimerSource": "kinform.runtime.source.triggers",
    "all_of": "kinform.runtime.predicate",
    "annotations_changed": "kinform.runtime.predicate",
    "any_of": "kinform.runtime.predicate",
    "apply": "kinform.runtime.server_side_apply",
    "apply_status": "kinform.runtime.server_side_apply",
    "find_condition": "kinform.runtime.status_conditions",
    "generation_changed": "kinform.runtime.predicate",
    "has_labels": "kinform.runtime.predicate",
    "in_namespaces": "kinform.runtime.predicate",
    "is_condition_true": "kinform.runtime.status_conditions",
    "is_controlled_by": "kinform.runtime.owner_references",
    "labels_changed": "kinform.runtime.predicate",
    "not_": "kinform.runtime.predicate",
    "owner_reference": "kinform.runtime.owner_references",
    "resource_version_changed": "kinform.runtime.predicate",
    "set_condition": "kinform.runtime.status_conditions",
    "set_controller_reference": "kinform.runtime.owner_references",
    "set_owner_reference": "kinform.runtime.owner_references",
    "to_all": "kinform.runtime.map_functions",
    "to_annotation": "kinform.runtime.map_functions",
    "to_itself": "kinform.runtime.map_functions",
    "to_label": "kinform.runtime.map_functions",
    "to_owner": "kinform.runtime.map_functions",
    "with_condition": "kinform.runtime.status_conditions",
}


if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
