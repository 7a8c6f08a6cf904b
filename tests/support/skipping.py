"""Tests that cannot run everywhere: skipped at home, a failure in CI, where nobody would see it."""

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
