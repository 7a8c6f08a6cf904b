"""Matching of list items before and after a change, by the part of each item that a model shows.

A model shows a part of every item. After a change the hidden rest must stay with the item it
belongs to, so the items of both lists are matched, by the strongest evidence first:

1. An *identity* (``name``, ``type``, ...) that every item has and no two items share, in both
   lists. The first usable one decides: another name is another item.
2. An *address* (``mountPath``, ``port``, ...) under the same condition. Items with the same
   address are the same, even if their names differ; those with another may have been moved.
3. Without an identity: items that did not change, then items at the same place in lists of the
   same length.

If items are still unmatched then, and the hidden part of one would be lost, the change is
refused. Nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from kinform.errors import UsageError

if TYPE_CHECKING:
    from kinform.sansio.json_diff import JsonValue  # which imports this module

__all__ = ["origins"]

_Key: TypeAlias = "tuple[str, ...]"
_Pairs: TypeAlias = "dict[int, int]"  # the index of the changed item: that of its origin

# The first member of each key must exist; another one may be missing, which is a value too.
_IDENTITIES: Final[Sequence[_Key]] = (
    # ``name`` before ``type`` and ``key``: containers and volumes have names, conditions only
    # types, tolerations only keys.
    ("name",),
    ("type",),
    ("key",),
    ("uid",),
    ("name", "kind", "namespace"),
)
_ADDRESSES: Final[Sequence[_Key]] = (
    ("mountPath",),
    ("devicePath",),
    ("containerPort", "protocol"),
    ("port", "protocol"),
    ("ip",),
    ("topologyKey", "whenUnsatisfiable"),
)


def origins(
    whole: list[JsonValue], before: list[JsonValue], after: list[JsonValue], *, path: str
) -> list[int | None]:
    """Return for each item of ``after`` its index in ``before``; ``None`` if it is new.

    ``before`` shows a part of each item of ``whole``, in the same order. ``path`` is the path of
    the list, for the error.

    Raises:
        UsageError: an item cannot be matched, and its hidden part would be lost.
    """
    if len(whole) != len(before):  # a model that drops items: they cannot be matched
        _refuse_loss(whole, [None] * len(whole), range(len(whole)), path=path)
        return [None] * len(after)
    identified = _first_usable(before, after, _IDENTITIES)
    found = dict(identified or {})
    # All of them and not the first usable one: each adds pairs, and a pair that is found stays.
    for key in _ADDRESSES:
        _add(found, _by_key(before, after, key) or {})
    if identified is None:
        _add(found, _unchanged(whole, before, after))
        if len(before) == len(after):
            _add(found, {place: place for place in range(len(after))})
        # Only where something is new: if every item has its origin, an item that has gone was
        # removed on purpose.
        if len(found) < len(after):
            lost = set(range(len(before))) - set(found.values())
            _refuse_loss(whole, before, sorted(lost), path=path)
    return [found.get(new) for new in range(len(after))]


def _hidden(whole: JsonValue, shown: JsonValue) -> str | None:
    """Return the path of a member that ``whole`` has and ``shown`` lacks; ``None`` if none.

    A ``null`` counts as absent. A scalar in a list does not count as a member.
    """
    if isinstance(whole, dict):
        return _hidden_member(whole, shown if isinstance(shown, dict) else {})
    if isinstance(whole, list):
        if isinstance(shown, list) and len(shown) == len(whole):
            return _hidden_item(whole, shown)
        return _hidden_item(whole, [None] * len(whole))
    return None


def _hidden_member(whole: Mapping[str, JsonValue], shown: Mapping[str, JsonValue]) -> str | None:
    for key, value in whole.items():
        if key not in shown and value is not None:
            return key
        if (below := _hidden(value, shown.get(key))) is not None:
            return f"{key}/{below}"
    return None


def _hidden_item(whole: Sequence[JsonValue], shown: Sequence[JsonValue]) -> str | None:
    for place, (item, part) in enumerate(zip(whole, shown, strict=True)):
        if (below := _hidden(item, part)) is not None:
            return f"{place}/{below}"
    return None


def _add(found: _Pairs, pairs: _Pairs) -> None:
    """Add the pairs of which neither item is matched yet."""
    taken = set(found.values())
    found.update({new: old for new, old in pairs.items() if new not in found and old not in taken})


def _first_usable(
    before: list[JsonValue], after: list[JsonValue], keys: Iterable[_Key]
) -> _Pairs | None:
    tried = (_by_key(before, after, key) for key in keys)
    return next((pairs for pairs in tried if pairs is not None), None)


def _by_key(before: list[JsonValue], after: list[JsonValue], key: _Key) -> _Pairs | None:
    """Match by ``key``; ``None`` if an item lacks it or two items of a list share a value."""
    olds, news = _places(before, key), _places(after, key)
    if olds is None or news is None:
        return None
    return {new: olds[value] for value, new in news.items() if value in olds}


def _places(items: list[JsonValue], key: _Key) -> dict[tuple[JsonValue, ...], int] | None:
    places: dict[tuple[JsonValue, ...], int] = {}
    for place, item in enumerate(items):
        value = _value(item, key)
        if value is None or value in places:
            return None
        places[value] = place
    return places


def _value(item: JsonValue, key: _Key) -> tuple[JsonValue, ...] | None:
    if not isinstance(item, dict):
        return None
    if item.get(key[0]) in (None, ""):  # a model may write "" for an absent member
        return None
    value = tuple(item.get(member) for member in key)
    return value if all(_is_plain(part) for part in value) else None


def _is_plain(part: JsonValue) -> bool:
    # Not a float or a bool: in Python ``1 == 1.0 == True``, so different JSON values would be one
    # key.
    return part is None or (isinstance(part, str | int) and not isinstance(part, bool))


def _unchanged(whole: list[JsonValue], before: list[JsonValue], after: list[JsonValue]) -> _Pairs:
    """Match the items that are equal to one before."""
    pairs: _Pairs = {}
    alike = _groups(before)
    for form, news in _groups(after).items():
        olds = alike.get(form, [])
        if len(olds) == len(news):
            pairs |= zip(news, olds, strict=True)
        elif len(before) == len(after):
            pairs |= {place: place for place in news if place in olds}
        elif len(olds) < len(news) or len(_groups([whole[old] for old in olds])) == 1:
            # No item is lost, or those that are have equal hidden parts.
            pairs |= zip(news, olds, strict=False)
    return pairs


def _groups(items: list[JsonValue]) -> dict[bytes, list[int]]:
    """Return the indexes of equal items, by their JSON. ``1`` and ``true`` are not equal."""
    groups: dict[bytes, list[int]] = {}
    for place, item in enumerate(items):
        groups.setdefault(msgspec.json.encode(item, order="deterministic"), []).append(place)
    return groups


def _refuse_loss(
    whole: list[JsonValue], shown: Sequence[JsonValue], places: Iterable[int], *, path: str
) -> None:
    for place in places:
        member = _hidden(whole[place], shown[place])
        if member is not None:
            raise UsageError(
                f"cannot match the items of {path or 'the list'} after the change, and "
                f"the model does not declare {path}/{place}/{member}, which would be lost; "
                "use patch(), or update the object as a dict"
            )
