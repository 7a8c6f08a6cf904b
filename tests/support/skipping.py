"""Tests that cannot run everywhere: skipped locally, a failure in CI."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

__all__ = ["cannot_run"]


def cannot_run(reason: str) -> NoReturn:
    """End the test: it is skipped, or fails where the environment variable CI is set."""
    if os.environ.get("CI"):
        pytest.fail(f"{reason} (where CI is set, this may not be skipped)", pytrace=False)
    pytest.skip(reason)
