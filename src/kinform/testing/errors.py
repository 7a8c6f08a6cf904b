"""Errors of the real control plane that tests start."""

from __future__ import annotations

from kinform.errors import KinformError

__all__ = ["ControlPlaneError", "ControlPlaneUnavailable"]


class ControlPlaneError(KinformError):
    """A server did not start, stopped on its own, or refused a request of the harness.

    The message ends with the tail of that server's log, if it has one.
    """


class ControlPlaneUnavailable(ControlPlaneError):
    """This machine lacks something the control plane needs; the message says what to do.

    The pytest fixtures turn it into a skip, or into a failure where the environment variable
    ``KINFORM_REQUIRE_CONTROL_PLANE`` is ``1``.
    """
