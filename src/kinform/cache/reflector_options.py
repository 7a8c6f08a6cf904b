"""ReflectorOptions: the timeouts and sizes of listing and watching."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, final

from kinform.errors import UsageError
from kinform.sansio.backoff import Backoff
from kinform.sansio.reflector import step

__all__ = ["ReflectorOptions"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectorOptions:
    """Timeouts and sizes of a reflector; the defaults are meant for production.

    >>> ReflectorOptions(watch_timeout=30, idle_timeout=None).watch_timeout
    30

    Raises:
        UsageError: a value is out of range.
    """

    watch_timeout: float = 300.0
    """The minimum time, in seconds, after which the server ends a watch; up to the same is added at
    random, so that watches which began together do not end together. Ten seconds later the
    reflector ends it."""
    # kube-apiserver sends a bookmark about once a minute: two may get lost before the watch is
    # given up.
    idle_timeout: float | None = 150.0
    """Seconds of silence after which a watch that has sent two bookmarks counts as half-open.
    Bookmarks come about once a minute; some resources (events) send only the one that ends a
    streamed list. ``None``: never."""
    probe_period: float | None = 300.0
    """Seconds between two probes of the server's version while a watch is open, which detect an
    etcd that was restored from a backup. ``None``: only after a failure."""
    page_size: int | None = None
    """Objects per page of a plain list; ``None``: 500 where pages are possible."""
    first_version: Literal["", "0"] = ""
    """The version of the first plain list: the newest state, or with ``"0"`` any state from the
    server's watch cache, which is cheaper and may be old."""
    stream_lists: bool = True
    """Let the server stream the list (watch-list) where it can."""
    internal_error_window: float = 0.0
    """Seconds after the first internal error of a series in which a watch is resumed from its
    last version; after that the reflector relists."""
    backoff: Backoff = field(default_factory=Backoff)
    """The wait after failures: 0.8 s, doubling up to 30 s, each up to twice as long at random."""

    def __post_init__(self) -> None:
        for name in ("watch_timeout", "idle_timeout", "probe_period"):
            value: float | None = getattr(self, name)
            if value is not None and not value > 0:
                raise UsageError(f"{name} must be positive, got {value!r}")
        if self.page_size is not None and self.page_size < 1:
            raise UsageError(f"page_size must be positive or None, got {self.page_size!r}")
        if not self.internal_error_window >= 0:
            raise UsageError(
                f"internal_error_window must not be negative, got {self.internal_error_window!r}"
            )
        if not 0 < self.backoff.first <= self.backoff.cap:
            raise UsageError(f"backoff must begin above 0 and not above its cap: {self.backoff}")
        if self.first_version not in {"", "0"}:
            raise UsageError(f"first_version must be '' or '0', got {self.first_version!r}")

    @property
    def policy(self) -> step.Policy:
        """The part of the options that `kinform.sansio.reflector.step` uses."""
        return step.Policy(
            first_version=self.first_version,
            page_size=self.page_size,
            stream_lists=self.stream_lists,
            internal_error_window=self.internal_error_window,
        )
