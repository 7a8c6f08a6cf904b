"""Kubernetes' list/watch machinery for Python.

This module is the public API and nothing else. Every name is loaded when it is first used, so
``import kinform`` costs next to nothing and loads neither aiohttp nor yaml.

To add a name: import it for the type checkers, say in ``_HOMES`` where it lives, and list it in
``__all__``. ``tests/test_public_api.py`` fails until all three agree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kinform._lazy import lazy_exports

if TYPE_CHECKING:
    from kinform import (
        cache,
        clientset,
        clock,
        errors,
        meta,
        rest,
        runtime,
        selectors,
        sync,
        testing,
        workqueue,
    )
    from kinform.cache._informer.state_waiters import wait_for_cache_sync
    from kinform.cache.factory import SharedInformerFactory
    from kinform.cache.lister import Lister
    from kinform.cache.processor.events import Added, Deleted, Updated
    from kinform.cache.processor.processor import Registration
    from kinform.cache.reflector_options import ReflectorOptions
    from kinform.cache.shared_informer import SharedInformer
    from kinform.cache.store.indexes import index_by
    from kinform.client import Client, VersionInfo, connect
    from kinform.errors import (
        AlreadyExistsError,
        AmbiguousResourceError,
        ApiError,
        ConfigError,
        ConflictError,
        DecodeError,
        ForbiddenError,
        InvalidError,
        KinformError,
        LeadershipLost,
        NotFoundError,
        QueueShutDown,
        ResourceExpiredError,
        ResourceVersionRegressed,
        ServerTimeoutError,
        SourceError,
        TerminalError,
        TooManyRequestsError,
        TransportError,
        TransportFailure,
        UnauthorizedError,
        UnavailableError,
        UnknownResourceError,
        UsageError,
    )
    from kinform.meta import (
        Entry,
        GroupVersion,
        GroupVersionKind,
        GroupVersionResource,
        ObjectMeta,
        ObjectName,
    )
    from kinform.objects.object import Object
    from kinform.resource import Resource
    from kinform.resource_client import ALL_NAMESPACES, ResourceClient
    from kinform.rest.client import RESTClient
    from kinform.rest.config import Config
    from kinform.rest.conflict import retry_on_conflict
    from kinform.rest.logs import LogStream
    from kinform.rest.options import ListOptions, PatchType
    from kinform.rest.rate_limits import RateLimiter, TokenBucketLimiter
    from kinform.rest.request import Request
    from kinform.rest.restmapper import APIResource
    from kinform.rest.results import Bookmark, ListResult, WatchEvent
    from kinform.rest.transport import Transport
    from kinform.rest.warnings import ApiWarning
    from kinform.rest.watch import Watch
    from kinform.runtime.controller.context import Context
    from kinform.runtime.controller.controller import Controller
    from kinform.runtime.controller.reconciler import Result
    from kinform.runtime.events.recorder import EventRecorder
    from kinform.runtime.finalizer import Finalizer
    from kinform.runtime.leader_election import LeaderElector
    from kinform.runtime.manager import Manager
    from kinform.runtime.source.kind import KindSource
    from kinform.runtime.source.triggers import ChannelSource, StreamSource, TimerSource
    from kinform.sansio.election.config import LeaderElection
    from kinform.sansio.wire.watch import EventType
    from kinform.selectors import SelectorError
    from kinform.transforms import strip_managed_fields
    from kinform.version import __version__
    from kinform.workqueue.queue import WorkQueue

__all__ = [
    "ALL_NAMESPACES",
    "APIResource",
    "Added",
    "AlreadyExistsError",
    "AmbiguousResourceError",
    "ApiError",
    "ApiWarning",
    "Bookmark",
    "ChannelSource",
    "Client",
    "Config",
    "ConfigError",
    "ConflictError",
    "Context",
    "Controller",
    "DecodeError",
    "Deleted",
    "Entry",
    "EventRecorder",
    "EventType",
    "Finalizer",
    "ForbiddenError",
    "GroupVersion",
    "GroupVersionKind",
    "GroupVersionResource",
    "InvalidError",
    "KindSource",
    "KinformError",
    "LeaderElection",
    "LeaderElector",
    "LeadershipLost",
    "ListOptions",
    "ListResult",
    "Lister",
    "LogStream",
    "Manager",
    "NotFoundError",
    "Object",
    "ObjectMeta",
    "ObjectName",
    "PatchType",
    "QueueShutDown",
    "RESTClient",
    "RateLimiter",
    "ReflectorOptions",
    "Registration",
    "Request",
    "Resource",
    "ResourceClient",
    "ResourceExpiredError",
    "ResourceVersionRegressed",
    "Result",
    "SelectorError",
    "ServerTimeoutError",
    "SharedInformer",
    "SharedInformerFactory",
    "SourceError",
    "StreamSource",
    "TerminalError",
    "TimerSource",
    "TokenBucketLimiter",
    "TooManyRequestsError",
    "Transport",
    "TransportError",
    "TransportFailure",
    "UnauthorizedError",
    "UnavailableError",
    "UnknownResourceError",
    "Updated",
    "UsageError",
    "VersionInfo",
    "Watch",
    "WatchEvent",
    "WorkQueue",
    "__version__",
    "cache",
    "clientset",
    "clock",
    "connect",
    "errors",
    "index_by",
    "meta",
    "rest",
    "retry_on_conflict",
    "runtime",
    "selectors",
    "strip_managed_fields",
    "sync",
    "testing",
    "wait_for_cache_sync",
    "workqueue",
]

_HOMES: Final[dict[str, str]] = {
    "ALL_NAMESPACES": "kinform.resource_client",
    "APIResource": "kinform.rest.restmapper",
    "Added": "kinform.cache.processor.events",
    "AlreadyExistsError": "kinform.errors",
    "AmbiguousResourceError": "kinform.errors",
    "ApiError": "kinform.errors",
    "ApiWarning": "kinform.rest.warnings",
    "Bookmark": "kinform.rest.results",
    "ChannelSource": "kinform.runtime.source.triggers",
    "Client": "kinform.client",
    "Config": "kinform.rest.config",
    "ConfigError": "kinform.errors",
    "ConflictError": "kinform.errors",
    "Context": "kinform.runtime.controller.context",
    "Controller": "kinform.runtime.controller.controller",
    "DecodeError": "kinform.errors",
    "Deleted": "kinform.cache.processor.events",
    "Entry": "kinform.meta",
    "EventRecorder": "kinform.runtime.events.recorder",
    "EventType": "kinform.sansio.wire.watch",
    "Finalizer": "kinform.runtime.finalizer",
    "ForbiddenError": "kinform.errors",
    "GroupVersion": "kinform.meta",
    "GroupVersionKind": "kinform.meta",
    "GroupVersionResource": "kinform.meta",
    "InvalidError": "kinform.errors",
    "KindSource": "kinform.runtime.source.kind",
    "KinformError": "kinform.errors",
    "LeaderElection": "kinform.sansio.election.config",
    "LeaderElector": "kinform.runtime.leader_election",
    "LeadershipLost": "kinform.errors",
    "ListOptions": "kinform.rest.options",
    "ListResult": "kinform.rest.results",
    "Lister": "kinform.cache.lister",
    "LogStream": "kinform.rest.logs",
    "Manager": "kinform.runtime.manager",
    "NotFoundError": "kinform.errors",
    "Object": "kinform.objects.object",
    "ObjectMeta": "kinform.meta",
    "ObjectName": "kinform.meta",
    "PatchType": "kinform.rest.options",
    "QueueShutDown": "kinform.errors",
    "RESTClient": "kinform.rest.client",
    "RateLimiter": "kinform.rest.rate_limits",
    "ReflectorOptions": "kinform.cache.reflector_options",
    "Registration": "kinform.cache.processor.processor",
    "Request": "kinform.rest.request",
    "Resource": "kinform.resource",
    "ResourceClient": "kinform.resource_client",
    "ResourceExpiredError": "kinform.errors",
    "ResourceVersionRegressed": "kinform.errors",
    "Result": "kinform.runtime.controller.reconciler",
    "SelectorError": "kinform.selectors",
    "ServerTimeoutError": "kinform.errors",
    "SharedInformer": "kinform.cache.shared_informer",
    "SharedInformerFactory": "kinform.cache.factory",
    "SourceError": "kinform.errors",
    "StreamSource": "kinform.runtime.source.triggers",
    "TerminalError": "kinform.errors",
    "TimerSource": "kinform.runtime.source.triggers",
    "TokenBucketLimiter": "kinform.rest.rate_limits",
    "TooManyRequestsError": "kinform.errors",
    "Transport": "kinform.rest.transport",
    "TransportError": "kinform.errors",
    "TransportFailure": "kinform.errors",
    "UnauthorizedError": "kinform.errors",
    "UnavailableError": "kinform.errors",
    "UnknownResourceError": "kinform.errors",
    "Updated": "kinform.cache.processor.events",
    "UsageError": "kinform.errors",
    "VersionInfo": "kinform.client",
    "Watch": "kinform.rest.watch",
    "WatchEvent": "kinform.rest.results",
    "WorkQueue": "kinform.workqueue.queue",
    "__version__": "kinform.version",
    "connect": "kinform.client",
    "index_by": "kinform.cache.store.indexes",
    "retry_on_conflict": "kinform.rest.conflict",
    "strip_managed_fields": "kinform.transforms",
    "wait_for_cache_sync": "kinform.cache._informer.state_waiters",
}
"""The module that defines each name."""

_MODULES: Final = frozenset(
    {
        "cache",
        "clientset",
        "clock",
        "errors",
        "meta",
        "rest",
        "runtime",
        "selectors",
        "sync",
        "testing",
        "workqueue",
    }
)
"""The submodules that are attributes of ``kinform`` without being imported."""


if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_exports(__name__, _HOMES, modules=_MODULES)
