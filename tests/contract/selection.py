"""The selection of cases of a test run."""

from __future__ import annotations

import pytest

from tests.contract.case import Case, all_cases

__all__ = ["chosen"]


def chosen(request: pytest.FixtureRequest) -> list[Case]:
    """Return the cases of the tests that were selected in the module of a fixture."""
    wanted = {
        item.callspec.params.get("case_id")
        for item in request.session.items
        if isinstance(item, pytest.Function)
        and item.path == request.path
        and hasattr(item, "callspec")
    }
    return [case for case in all_cases().values() if case.id in wanted]
