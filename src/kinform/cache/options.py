"""How a reflector lists and watches: the few figures that sometimes have to be others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, final

from kinform.errors import UsageError
from kinform.sansio import relist
from kinform.sansio.backoff import Backoff

__all__ = ["ReflectorOptions"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectorOptions:
    """Times and sizes of a reflector; the defaults are meant for production.

    >>> ReflectorOptions(watch_timeout=30, idle_timeout=None).watch_timeout
    30

    Raises:
        UsageError: a figure makes no sense.
    """

    watch_timeout: float = 300.0
    """How long the server keeps a watch open, at least; a random part up to the same is added,
    so that watches which began together do not end together. Ten seconds later we end it."""
    idle_timeout: float | None = 150.0
    """How long a watch may be silent, once it has shown two bookmarks, before it counts as dead.
    Bookmarks come about once a minute; some kinds (events) have only the one that ends a streamed
    list. ``None``: never."""
    probe_period: float | None = 300.0
    """How often the server's own version is compared with ours while a watch is open, to notice
    an etcd that was restored from a backup. ``None``: only after a failure."""
    page_size: int | None = None
    """Objects per page of a plain list; ``None``: 500 where pages are possible."""
    first_version: Literal["", "0"] = ""
    """What the first plain list asks for: the newest state, or with ``"0"`` any state the server
    has at hand, which costs it less and may be old."""
    stream_lists: bool = True
    """Have the server stream the list (watch-list) where it can."""
    internal_error_window: float = 0.0
    """For how long after the first internal error of a series a watch is repeated from where it
    was, before everything is listed again."""
    backoff: Backoff = field(default_factory=Backoff)
    """How long to wait after failures: 0.8 s, doubling up to 30 s, each up to twice as long."""

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
    def policy(self) -> relist.Policy:
        """What of it decisions rest on."""
        return relist.Policy(
            first_version=self.first_version,
            page_size=self.page_size,
            stream_lists=self.stream_lists,
            internal_error_window=self.internal_error_window,
        )
