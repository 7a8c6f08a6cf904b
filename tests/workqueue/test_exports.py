"""``kinform.workqueue``: every name is there, documented, and loaded only when used."""

from __future__ import annotations

import types

import pytest

from kinform import workqueue


@pytest.mark.parametrize("name", workqueue.__all__)
def test_every_name_is_there_and_documented(name: str) -> None:
    value = getattr(workqueue, name)
    assert not isinstance(value, types.ModuleType)
    assert value.__doc__
    assert value.__module__ == workqueue._HOMES[name]


def test_the_tables_of_names_agree() -> None:
    assert sorted(workqueue._HOMES) == sorted(workqueue.__all__)
    assert set(workqueue.__all__) <= set(dir(workqueue))


def test_a_name_that_is_not_there_is_told() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = workqueue.Nothing  # type: ignore[attr-defined]
