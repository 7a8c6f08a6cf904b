"""Make new inputs of old ones: as bytes, and as JSON where a line is JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, Final, TypeAlias, TypeGuard

__all__ = ["mutated", "smaller"]

_Slot: TypeAlias = tuple[Any, Any]
"""A place in a document: an object or a list, and the key or index in it."""

_BYTES: Final = (
    b"\0",
    b"\n",
    b"\r\n",
    b" ",
    b'"',
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b"\xff",
    b"\xc2\x85",
)
_NUMBERS: Final = (
    *(b"0", b"1", b"-1", b"255", b"4294967296", b"9223372036854775807", b"9223372036854775808"),
    *(b"1e999", b"99999999999999999999", b"9" * 400),
)
_VALUES: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, 1, -1, 2**31, 2**63, 2**64, 1.5, 1e300),
    *(
        "",
        "a",
        "0",
        "\0",
        "\u2028",
        "ä\U0001f600",
        "x" * 300,
        [],
        {},
        [{}],
        [[]],
        [None],
        {"a": None},
    ),
)
_MOST_STEPS: Final = 5


def mutated(
    data: bytes, random: Random, *, others: Sequence[bytes], tokens: Sequence[bytes], longest: int
) -> bytes:
    """Return ``data`` changed in one to five places; ``others`` lend it pieces."""
    for _ in range(random.randint(1, _MOST_STEPS)):
        other = random.choice(others)
        changed = _changed_line(data, random, other) if random.random() < 0.6 else None
        if changed is None:
            changed = _changed_bytes(data, random, other=other, tokens=tokens)
        data = changed
    return data[:longest]


def _changed_bytes(
    data: bytes, random: Random, *, other: bytes, tokens: Sequence[bytes] = ()
) -> bytes:
    start = random.randint(0, len(data))
    end = min(len(data), start + random.choice((0, 1, 1, 2, 4, 8, 16, 64, 256)))
    piece = data[start:end]
    match random.randrange(9):
        case 0:
            put = b""
        case 1:
            put = piece * random.choice((2, 2, 3, 8, 64))
        case 2:
            put = bytes(byte ^ (1 << random.randrange(8)) for byte in piece[:2]) + piece[2:]
        case 3:
            put = random.randbytes(max(1, len(piece)))
        case 4:
            begin = random.randint(0, len(other))
            put = other[begin : begin + random.choice((1, 4, 16, 64, 1024))]
        case 5:
            put = random.choice(_NUMBERS)
        case 6:
            put = random.choice(_BYTES) * random.choice((1, 1, 1, 2, 50))
        case _:
            put = random.choice(tokens) if tokens else random.choice(_BYTES)
    return data[:start] + put + data[end if random.random() < 0.7 else start :]


def _changed_line(data: bytes, random: Random, other: bytes) -> bytes | None:
    """Return ``data`` with one value of one of its lines of JSON changed; None if it has none."""
    lines = data.split(b"\n")
    places = [at for at, line in enumerate(lines) if line[:1] in (b"{", b"[")]
    if not places:
        return None
    at = random.choice(places)
    document = _read(lines[at])
    lent = _read(random.choice(other.split(b"\n")))
    slots = [] if document is None else list(_slots(document))
    if not slots:
        return None
    try:
        _change(*random.choice(slots), random=random, values=[*slots, *_slots(lent)])
        lines[at] = json.dumps(
            document, separators=random.choice(((",", ":"), (", ", ": ")))
        ).encode()
    except (RecursionError, ValueError):
        return None
    return b"\n".join(lines)


def _read(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _is_dict(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _is_list(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _slots(document: Any) -> Iterator[_Slot]:
    layer: list[Any] = [document] if _is_dict(document) or _is_list(document) else []
    for _ in range(40):
        below: list[Any] = []
        for value in layer:
            items: list[tuple[Any, Any]] = [
                *(value.items() if _is_dict(value) else enumerate(value))
            ]
            for key, inner in items:
                yield value, key
                if _is_dict(inner) or _is_list(inner):
                    below.append(inner)
        layer = below


def _change(place: Any, key: Any, *, random: Random, values: Sequence[_Slot]) -> None:
    holder, name = random.choice(values)
    match random.randrange(8):
        case 0:
            del place[key]
        case 1:
            place[key] = random.choice(_VALUES)
        case 2 | 3:
            place[key] = _copied(holder[name])
        case 4:
            place[key] = [place[key]] if random.random() < 0.5 else {str(name): place[key]}
        case 5 if _is_list(place):
            place.insert(random.randint(0, len(place)), _copied(place[key]))
        case 6 if _is_list(place):
            random.shuffle(place)
        case 7 if isinstance(place[key], str):
            text = _changed_bytes(place[key].encode("utf-8", "replace"), random, other=b"-./$~ ")
            place[key] = text.decode("utf-8", "replace")
        case _:
            if _is_dict(place):
                place[str(name)] = place.pop(key)
            else:
                place[key] = _copied(holder[name])


def _copied(value: Any) -> Any:
    return json.loads(json.dumps(value))


def smaller(data: bytes) -> Iterator[bytes]:
    """Yield ``data`` without one part of it, the largest parts first."""
    size = len(data) // 2
    while size:
        for start in range(0, len(data), size):
            yield data[:start] + data[start + size :]
        size //= 2
    lines = data.split(b"\n")
    for at, line in enumerate(lines):
        for number in range(len(list(_slots(_read(line))))):
            document = _read(line)
            place, key = list(_slots(document))[number]
            del place[key]
            text = json.dumps(document, separators=(",", ":")).encode()
            yield b"\n".join([*lines[:at], text, *lines[at + 1 :]])
