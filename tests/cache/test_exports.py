"""``kinform.cache``: every name is there, documented, and loaded only when used."""

from __future__ import annotations

import types
import typing

import pytest

from kinform import cache


@pytest.mark.parametrize("name", cache.__all__)
def test_every_name_is_there_and_documented(name: str) -> None:
    value = getattr(cache, name)
    assert not isinstance(value, types.ModuleType)
    is_alias = typing.get_origin(value) in {typing.Union, types.UnionType}
    assert is_alias or isinstance(value, str) or value.__doc__


def test_a_name_that_is_not_there_is_told() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = cache.Nothing  # type: ignore[attr-defined]
