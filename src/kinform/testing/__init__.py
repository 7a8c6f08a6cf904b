"""Test support for Kubernetes programs: API servers, real and embedded, fixtures and fakes.

Names are loaded when they are first used, so that importing this package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kinform._lazy import lazy_exports

if TYPE_CHECKING:
    from kinform.testing.api_server_thread import APIServerThread
    from kinform.testing.controlplane.control_plane import ControlPlane
    from kinform.testing.controlplane.etcd import Snapshot
    from kinform.testing.controlplane.users import ServiceAccount, User
    from kinform.testing.errors import ControlPlaneError, ControlPlaneUnavailable
    from kinform.testing.fakes.list_watch import FakeListWatch
    from kinform.testing.relay import Relay
    from kinform.testing.virtual_time import (
        Deadlock,
        LeakedTasks,
        Livelock,
        VirtualClock,
        VirtualTimeLoop,
        in_virtual_time,
        virtual_clock,
    )

__all__ = [
    "APIServerThread",
    "ControlPlane",
    "ControlPlaneError",
    "ControlPlaneUnavailable",
    "Deadlock",
    "FakeListWatch",
    "LeakedTasks",
    "Livelock",
    "Relay",
    "ServiceAccount",
    "Snapshot",
    "User",
    "VirtualClock",
    "VirtualTimeLoop",
    "in_virtual_time",
    "virtual_clock",
]

_HOMES: Final = {
    "APIServerThread": "kinform.testing.api_server_thread",
    "ControlPlane": "kinform.testing.controlplane.control_plane",
    "ControlPlaneError": "kinform.testing.errors",
    "ControlPlaneUnavailable": "kinform.testing.errors",
    "Deadlock": "kinform.testing.virtual_time",
    "FakeListWatch": "kinform.testing.fakes.list_watch",
    "LeakedTasks": "kinform.testing.virtual_time",
    "Livelock": "kinform.testing.virtual_time",
    "Relay": "kinform.testing.relay",
    "ServiceAccount": "kinform.testing.controlplane.users",
    "Snapshot": "kinform.testing.controlplane.etcd",
    "User": "kinform.testing.controlplane.users",
    "VirtualClock": "kinform.testing.virtual_time",
    "VirtualTimeLoop": "kinform.testing.virtual_time",
    "in_virtual_time": "kinform.testing.virtual_time",
    "virtual_clock": "kinform.testing.virtual_time",
}


if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
