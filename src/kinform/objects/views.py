"""Read-only views of decoded JSON: the results of an object's ``[...]`` and ``at()``.

A view holds the plain tree it shows; the `Object` it came from never does. Nothing reachable
through a view can be changed: dicts and lists inside are wrapped again on the way out, and
every method that changes a dict or a list raises ``TypeError``, which says how to get a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NoReturn, TypeVar, cast, final, overload

__all__ = ["DICT_CHANGES", "DictView", "ListView", "read_only", "refusing"]

C = TypeVar("C")
J = TypeVar("J", dict[str, object], list[object])

DICT_CHANGES: Final = "__setitem__ __delitem__ __ior__ clear pop popitem setdefault update"
LIST_CHANGES: Final = (
    "__setitem__ __delitem__ __iadd__ __imul__ append clear extend insert pop remove reverse sort"
)


def _refuse(self: object, /, *_args: object, **_kwargs: object) -> NoReturn:
    raise TypeError(
        f"{type(self).__name__} is read-only; change a copy of your own: obj.to_dict() "
        "or obj.to_dict('spec'), then write it back"
    )


def refusing(changes: str) -> Callable[[type[C]], type[C]]:
    """Return a class decorator that makes each method named in ``changes`` raise ``TypeError``.

    The methods are set outside the class body, where type checkers do not see them: they report
    ``pod["spec"] = {}`` as an error.
    """

    def decorate(cls: type[C]) -> type[C]:
        for name in changes.split():
            setattr(cls, name, _refuse)
        return cls

    return decorate


@final
@refusing(DICT_CHANGES)
class DictView(Mapping[str, object]):  # noqa: PLW1641 - no hash, as dict
    """A JSON object, read-only. Equal to the ``dict`` of the same content.

    Not hashable, as a ``dict`` is not. ``copy`` and ``deepcopy`` return the view itself.

    >>> spec = DictView({"nodeName": "a", "containers": [{"image": "nginx"}]})
    >>> spec["containers"][0]["image"], spec == {**spec}
    ('nginx', True)
    """

    __slots__ = ("_tree",)

    def __init__(self, tree: dict[str, object]) -> None:
        self._tree = tree

    def to_dict(self) -> dict[str, object]:
        """Return a fresh, deep copy that is yours to change."""
        return _fresh_copy(self._tree)

    def __getitem__(self, key: str) -> object:
        return read_only(self._tree[key])

    def __contains__(self, key: object) -> bool:
        return key in self._tree

    def __iter__(self) -> Iterator[str]:
        return iter(self._tree)

    def __len__(self) -> int:
        return len(self._tree)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DictView):
            return self._tree == other._tree
        return self._tree == other if isinstance(other, dict) else NotImplemented

    def __copy__(self) -> DictView:
        return self

    def __deepcopy__(self, _memo: object) -> DictView:
        return self

    def __repr__(self) -> str:
        return f"DictView({self._tree!r})"


@final
@refusing(LIST_CHANGES)
class ListView(Sequence[object]):  # noqa: PLW1641 - no hash, as list
    """A JSON array, read-only. Equal to the ``list`` of the same content; slices are views too.

    >>> ports = ListView([80, 443])
    >>> ports[-1], ports[:1] == [80], 443 in ports
    (443, True, True)
    """

    __slots__ = ("_tree",)

    def __init__(self, tree: list[object]) -> None:
        self._tree = tree

    def to_list(self) -> list[object]:
        """Return a fresh, deep copy that is yours to change."""
        return _fresh_copy(self._tree)

    @overload
    def __getitem__(self, index: int) -> object: ...
    @overload
    def __getitem__(self, index: slice) -> ListView: ...
    def __getitem__(self, index: int | slice) -> object:
        return read_only(self._tree[index])

    def __len__(self) -> int:
        return len(self._tree)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ListView):
            return self._tree == other._tree
        return self._tree == other if isinstance(other, list) else NotImplemented

    def __copy__(self) -> ListView:
        return self

    def __deepcopy__(self, _memo: object) -> ListView:
        return self

    def __repr__(self) -> str:
        return f"ListView({self._tree!r})"


def read_only(value: object) -> object:
    """Return ``value`` as it may be handed out: containers as views, the rest as they are."""
    if type(value) is dict:
        return DictView(cast("dict[str, object]", value))
    if type(value) is list:
        return ListView(cast("list[object]", value))
    return value


def _fresh_copy(tree: J) -> J:
    # A loop, not a recursion: msgspec reads deeper trees than Python's stack would copy.
    root = tree.copy()
    todo: list[dict[str, object] | list[object]] = [root]
    while todo:
        node = todo.pop()
        places = node.items() if isinstance(node, dict) else enumerate(node)
        for place, value in places:
            if isinstance(value, dict | list):
                child = cast("dict[str, object]", value).copy()
                cast("dict[object, object]", node)[place] = child
                todo.append(child)
    return root
