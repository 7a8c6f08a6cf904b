"""`ListDecoder`: cuts the items out of a list response as its bytes arrive.

First stage of the flow for lists, beside `kinform.sansio.wire.watch`: bytes in, `Item` values out,
the list's own kind and version at the end. It never holds the whole body: a body of 630 MB needs
the memory of one item and one read.

Rule 1: the items are a function of the bytes, not of how they were split into feeds.
Rule 2: guess and verify. No proper prefix of a JSON object is itself a JSON object, so if the
decoder accepts the bytes up to a guessed end, that end is proven, and the object has been decoded
in the same pass. A guess is one search for the separator of earlier items.
Rule 3: guessing uses a credit. Each item adds its size, searches and wrong guesses consume it, and
without credit the scanner decides: lookalikes inside items cost a constant factor.
Rule 4: the items are valid only after `ListDecoder.finish` has accepted the whole body. A body that
is cut off, or is not a list, must never be taken for a short list: a relist would delete the rest.
"""

from __future__ import annotations

import enum
import re
from typing import Final, NamedTuple, TypeVar, final

import msgspec
from msgspec import UNSET
from msgspec.structs import force_setattr

from kinform.errors import DecodeError
from kinform.meta import ListMeta, Status
from kinform.objects.packed import Packed
from kinform.sansio.wire import heads, scan

__all__ = ["MAX_ITEM", "Item", "ListDecoder", "ListHead"]

MAX_ITEM: Final = 64 * 1024 * 1024
"""The default limit of one item's size, in bytes."""

# The credit limit, and so the longest search; a larger item is found by the scanner. It also
# bounds the buffer while guesses fail.
_MAX_CREDIT: Final = 256 * 1024
# The cost of a wrong guess besides its bytes: an exception.
_GUESS_COST: Final = 512
# The start of an item that belongs to the separator: up to ``"metadata":`` if that is near and
# nothing nested stands before it (such values differ between items), else to the first colon.
_PREFIX_LIMIT: Final = 256
_TO_METADATA: Final = re.compile(rb'\{[^{}\[\]]*?"metadata"[ \t\r\n]*:')
_TO_COLON: Final = re.compile(rb"\{[^:]*:")
_MAX_GLUE: Final = 64

_QUOTE: Final = ord('"')
# Top-level members worth keeping: those of a list, and of a Status in the place of a list.
_KEPT: Final = frozenset(
    {b"kind", b"apiVersion", b"metadata", b"status", b"code", b"reason", b"message", b"details"}
)

T = TypeVar("T")


class Item(msgspec.Struct, frozen=True):
    """One object of a list: its own JSON bytes and its decoded head.

    Exactly one of ``head`` and ``error`` is set. An item with an ``error`` is a *poison object*:
    cut out of the list, but not decodable (too deep, not UTF-8, metadata of the wrong types).

    Items of typed lists have neither kind nor apiVersion. If the list names its own before the
    items, both are added as in a watch: at the start of ``raw``, and in ``head``.
    """

    raw: bytes
    """A copy that keeps no network buffer alive."""
    head: heads.Head | None
    error: DecodeError | None = None
    """The error of decoding the head; its ``key`` is set if the object's name was found."""

    def __repr__(self) -> str:
        # Never the payload: a Secret's data must not reach a log by way of a repr.
        key = self.head.metadata.key if self.head else self.error
        return f"<Item {key} {len(self.raw)} bytes>"


class ListHead(NamedTuple):
    """The kind, version and metadata of a list."""

    api_version: str
    kind: str
    metadata: ListMeta


class _Splice(NamedTuple):
    """The kind and apiVersion that the items of a typed list lack, as bytes to insert."""

    prefix: bytes
    api_version: str
    kind: str

    def into(self, raw: bytes | memoryview) -> bytes:
        """Return the object with the prefix in the place of its brace."""
        # The prefix ends with a comma, which an empty object must not get. The first byte is
        # checked first, because in practice it is the quote of a key.
        if raw[1] != _QUOTE and scan.skip_whitespace(bytes(raw), 1) == len(raw) - 1:
            return self.prefix[:-1] + b"}"
        return b"".join((self.prefix, memoryview(raw)[1:]))


class _At(enum.Enum):
    """The position of the cursor in the body: the expected token."""

    START = enum.auto()
    FIRST_KEY = enum.auto()
    KEY = enum.auto()
    COLON = enum.auto()
    VALUE = enum.auto()
    AFTER_VALUE = enum.auto()
    FIRST_ITEM = enum.auto()
    ITEM = enum.auto()
    AFTER_ITEM = enum.auto()
    NEXT_ITEM = enum.auto()
    END = enum.auto()


# The grammar of a list around its items: place, next byte, next place. Keys, values and items
# are tokens of their own, and keep their first byte.
_GRAMMAR: Final = {
    _At.START: {ord("{"): _At.FIRST_KEY},
    _At.FIRST_KEY: {ord('"'): _At.KEY, ord("}"): _At.END},
    _At.COLON: {ord(":"): _At.VALUE},
    _At.AFTER_VALUE: {ord(","): _At.KEY, ord("}"): _At.END},
    _At.FIRST_ITEM: {ord("{"): _At.ITEM, ord("]"): _At.AFTER_VALUE},
    _At.AFTER_ITEM: {ord(","): _At.NEXT_ITEM, ord("]"): _At.AFTER_VALUE},
    _At.NEXT_ITEM: {ord("{"): _At.ITEM},
    _At.END: {},
}
# The error for an unexpected byte at some of these positions; elsewhere the JSON is malformed.
_COMPLAINTS: Final = {
    _At.START: "the body is not a JSON object; a proxy before the server may have answered",
    _At.FIRST_ITEM: "the list holds an item that is not an object",
    _At.NEXT_ITEM: "the list holds an item that is not an object",
    _At.END: "the list is followed by something else",
}
_MALFORMED: Final = "the list's JSON is malformed"


@final
class ListDecoder:
    """Cuts one list body into items, independent of how it is split into reads.

    Call `feed` for each piece, then `finish`. When the body cannot be a list, `failure` is set
    at once (so that the caller can stop reading), and `feed` and `finish` raise it from then on.
    The number of items returned before a failure is not defined: they are valid only after
    `finish` has returned.

    For one task at a time; no method waits.
    """

    __slots__ = (
        "_at",
        "_credit",
        "_cursor",
        "_glue",
        "_is_guessing",
        "_item_end",
        "_key",
        "_max_item",
        "_may_end",
        "_members",
        "_searched",
        "_separator",
        "_splice",
        "failure",
    )

    failure: DecodeError | None
    """The error that shows that the body is not a list, as soon as it is known."""

    def __init__(self, *, max_item: int = MAX_ITEM) -> None:
        self.failure = None
        self._max_item = max_item
        # Invariant: the cursor stands at the token that _at names, or at space before it.
        self._cursor = scan.Cursor()
        self._at = _At.START
        # The key whose value comes next, and the values worth keeping, as JSON.
        self._key = b""
        self._members: dict[bytes, bytes] = {}
        self._splice: _Splice | None = None
        # True if the body may end with the bytes fed so far: then a scan is worth its cost.
        self._may_end = False

        # The separator is the glue (an item's last brace up to before the next one's first)
        # and how the next item starts. Invariant: the item at hand has no untried candidate
        # for its end before _searched. _item_end is the end of the last item, -1 if unknown.
        # All of this only decides how fast items are found, never which they are.
        self._glue = b"},"
        self._separator: bytes | None = None
        self._searched = 0
        self._is_guessing = True
        self._credit = _MAX_CREDIT
        self._item_end = -1

    def feed(self, data: bytes) -> list[Item]:
        """Return every item that is known to be complete after ``data``; keep the rest.

        An item may be returned one feed late, but none after the last byte of the body.

        Raises:
            DecodeError: the `failure` of an *earlier* call. This call's own failure is only set:
                check it after each call.
        """
        if self.failure is not None:
            raise self.failure
        items: list[Item] = []
        self._cursor.data += data
        self._may_end = data.rstrip(scan.WHITESPACE).endswith(b"}")
        self._run(items)
        return items

    def finish(self) -> ListHead | Status:
        """Take the end of the body; return the kind, version and metadata of the list.

        Returns the ``Status`` instead if the server sent one in the place of a list: the caller
        makes an `ApiError` of it.

        Raises:
            DecodeError: if the body was not a complete list: empty, truncated, followed
                by something, without items, or of a kind that does not end in ``List``.
        """
        # Feeds avoid the scanner; the rest is scanned now. A valid body has no rest: it ends
        # with a brace, and a feed that ends with a brace does scan. So if this run finds items,
        # the body is malformed and they do not matter.
        self._may_end = True
        if self.failure is None:
            self._run([])
        if self.failure is not None:
            raise self.failure
        if self._at is not _At.END:
            word = "empty" if self._at is _At.START else "truncated"
            raise DecodeError(f"the list's body is {word}")
        kind = self._member(b"kind", str) or ""
        if kind == "Status":
            # Built from its members: they arrived in any order, and the body is not kept.
            fields = b",".join(b'"%b":%b' % member for member in self._members.items())
            return _decode(b"{%b}" % fields, Status, path="$")
        _check_kind(kind)
        # Go's lists always have items, if only as null. A body without them is not a list, and
        # taking it for an empty one would delete all objects of a cache.
        if b"items" not in self._members:
            raise DecodeError("the list has no items", path="$.items")
        return ListHead(
            api_version=self._member(b"apiVersion", str) or "",
            kind=kind,
            metadata=self._member(b"metadata", ListMeta) or ListMeta(),
        )

    def _member(self, key: bytes, of_type: type[T]) -> T | None:
        # Go writes null for "not set": the same as absent.
        raw = self._members.get(key, b"null")
        return None if raw == b"null" else _decode(raw, of_type, path=f"$.{key.decode()}")

    def _run(self, items: list[Item]) -> None:
        """Consume tokens as far as the bytes allow."""
        cursor = self._cursor
        try:
            while (byte := cursor.peek()) >= 0:
                if not self._step(byte, items):
                    # All unread bytes belong to one unfinished token: apply the limit now,
                    # not at its end.
                    self._check_size(cursor.left)
                    break
        except DecodeError as exc:
            self.failure = heads.detached(exc)
            cursor.move(len(cursor.data))
        # Positions move with the buffer. _item_end would become negative, so it is reset.
        self._searched = max(0, self._searched - cursor.pos)
        self._item_end = -1
        cursor.compact()

    def _step(self, byte: int, items: list[Item]) -> bool:
        """Consume the token that starts with ``byte``; false if it is incomplete."""
        match self._at:
            case _At.KEY:
                return self._take_key(byte)
            case _At.VALUE:
                return self._take_value(byte)
            case _At.ITEM:
                return self._take_item(items)
            case at:
                following = _GRAMMAR[at].get(byte)
        if following is None:
            raise DecodeError(_COMPLAINTS.get(at, _MALFORMED))
        # Punctuation is consumed; the first byte of an item or a key belongs to it.
        if following is _At.ITEM:
            self._learn_glue()
        elif byte != _QUOTE:
            self._cursor.move(self._cursor.pos + 1)
        self._at = following
        return True

    def _check_size(self, size: int) -> None:
        if size > self._max_item:
            raise DecodeError(f"a part of the list is larger than {self._max_item} bytes")

    def _take_token(self) -> bytes | None:
        """Return and consume the next key or value; ``None`` if it is incomplete."""
        cursor = self._cursor
        end = cursor.value_end()
        if end < 0:
            return None
        if end == cursor.pos:
            raise DecodeError(_MALFORMED)
        self._check_size(end - cursor.pos)
        return cursor.take(end)

    def _take_key(self, byte: int) -> bool:
        if byte != _QUOTE:
            raise DecodeError(_MALFORMED)
        token = self._take_token()
        if token is None:
            return False
        self._key = token[1:-1]  # escapes not undone, see `kinform.sansio.wire.scan.members`
        # Decoders differ on which of two equal keys wins, so a body with two kinds, or two
        # arrays of items, is refused.
        if self._key in self._members:
            raise DecodeError("the list repeats a key", path=f"$.{self._key.decode()}")
        self._at = _At.COLON
        return True

    def _take_value(self, byte: int) -> bool:
        # The only value that is not consumed at once: from here on the items are tokens.
        if self._key == b"items" and byte == ord("["):
            self._members[b"items"] = b"[]"
            self._prepare_splice()
            self._cursor.move(self._cursor.pos + 1)
            self._at = _At.FIRST_ITEM
            return True
        token = self._take_token()
        if token is None:
            return False
        if self._key == b"items" and token != b"null":  # Go writes null for an empty slice
            raise DecodeError("the list's items are not an array", path="$.items")
        if self._key == b"items" or self._key in _KEPT:
            self._members[self._key] = token
        # Checked before the rest is read, if the kind comes first: an HTML page of a megabyte
        # costs one read, and so does a Table.
        if self._key == b"kind":
            kind = self._member(b"kind", str) or ""
            if kind != "Status":
                _check_kind(kind)
        self._at = _At.AFTER_VALUE
        return True

    def _prepare_splice(self) -> None:
        kind = (self._member(b"kind", str) or "").removesuffix("List")
        api_version = self._member(b"apiVersion", str) or ""
        # A plain ``List`` holds objects of several kinds, each with its own kind.
        if kind and api_version:
            texts = msgspec.json.encode(kind), msgspec.json.encode(api_version)
            # Go's order, so that the bytes equal those of a watch event.
            self._splice = _Splice(b'{"kind":%b,"apiVersion":%b,' % texts, api_version, kind)

    def _take_item(self, items: list[Item]) -> bool:
        """Consume at least one item, and more by guessing; false if none is complete."""
        cursor = self._cursor
        if self._separator is None:
            self._learn_separator()
        if self._separator is not None and self._is_guessing:
            self._take_guessed(self._separator, items)
        # The cursor is still at an item. Most often the feed ends inside it, and a scan would be
        # wasted. It is useful if this may be the last item (no separator follows), guessing is
        # off or too expensive, or the limit must be applied.
        is_worth_a_scan = (
            self._may_end
            or self._credit <= 0
            or not self._is_guessing
            or (self._separator is None and cursor.left >= _PREFIX_LIMIT)
            or cursor.left > self._max_item
        )
        end = cursor.value_end() if is_worth_a_scan else -1
        if end < 0:
            return False
        self._check_size(end - cursor.pos)
        self._pay_in(end - cursor.pos)
        items.append(self._read_item(cursor.take(end)))
        self._at = _At.AFTER_ITEM
        self._item_end = end
        return True

    def _pay_in(self, size: int) -> None:
        """Start a new item, after one of ``size`` bytes."""
        # A right guess gets back the credit of its search: it is free.
        self._credit = min(_MAX_CREDIT, self._credit + size)
        self._is_guessing = True
        self._searched = 0

    def _learn_glue(self) -> None:
        """Learn the bytes between two items: spaces and line ends, if the server indents."""
        # Only reached behind an item that the scanner found, so learning again is useful: the
        # guess failed for that item, and the layout of the list may have changed.
        self._separator = None
        # Not known at the first item, and not where a feed ended between two.
        if self._item_end >= 0 and self._cursor.pos - self._item_end < _MAX_GLUE:
            self._glue = bytes(self._cursor.data[self._item_end - 1 : self._cursor.pos])

    def _learn_separator(self) -> None:
        # With fewer bytes than the limit, metadata may still follow: no separator yet is better
        # than one that is found inside every item.
        data, pos = self._cursor.data, self._cursor.pos
        match = _TO_METADATA.match(data, pos, pos + _PREFIX_LIMIT)
        if match is None and len(data) - pos >= _PREFIX_LIMIT:
            match = _TO_COLON.match(data, pos, pos + _PREFIX_LIMIT)
        if match is not None:
            self._separator = self._glue + match[0]

    def _take_guessed(self, separator: bytes, items: list[Item]) -> None:
        """Consume items whose end the separator shows, until none is left in the buffer."""
        cursor, data, glue = self._cursor, self._cursor.data, len(self._glue)
        with memoryview(data) as view:  # to verify without a copy; released before data grows
            while self._credit > 0 and self._is_guessing:
                start = max(cursor.pos, self._searched)
                limit = min(len(data), start + self._credit + len(separator))
                hit = data.find(separator, start, limit)
                # Every searched byte costs credit, found or not: the total search is bounded by
                # the size of the items.
                self._credit -= (hit if hit >= 0 else limit) - start
                if hit < 0:
                    # A separator may continue in the next feed.
                    self._searched = max(start, limit - len(separator) + 1)
                    return
                size = hit + 1 - cursor.pos
                item = self._verified(view[cursor.pos : hit + 1])
                if item is None:
                    # A lookalike inside the item, or (if the next item starts differently) the
                    # end of a later one. The decoder has read no further than the item's end.
                    self._credit = max(0, self._credit - size - _GUESS_COST)
                    self._searched = hit + 1
                else:
                    # Not before: a wrong guess may be of any size.
                    self._check_size(size)
                    self._pay_in(size)
                    items.append(item)
                    cursor.move(hit + glue)

    def _verified(self, view: memoryview) -> Item | None:
        """Return the item if ``view`` is exactly one object, ``None`` if the guess was wrong."""
        try:
            head = heads.decode_outline(view)
        except msgspec.ValidationError:
            # Perhaps a null in the metadata. If not, this item cannot be decoded with any cut,
            # and only the scanner can find its end.
            raw = bytes(view)
            if heads.head_without_nulls(raw) is not None:
                return self._read_item(raw)
            self._is_guessing = False
            return None
        except (UnicodeDecodeError, RecursionError):
            self._is_guessing = False
            return None
        except msgspec.DecodeError:
            # Mostly truncated or trailing bytes. A syntax error in the right place is found by
            # the scanner when the credit is used up.
            return None
        item = self._completed(view, head)
        # The decoder does not check UTF-8, but the item's end is proven: a poison object.
        return item if heads.is_utf8(item.raw) else self._read_item(bytes(view))

    def _read_item(self, raw: bytes) -> Item:
        """Return the item of bytes that are certainly one item, decodable or not."""
        # A function of the bytes alone, so that Rule 1 holds for errors too.
        head = heads.try_strict(raw)
        if isinstance(head, DecodeError):
            head = heads.try_head(raw)
            if not isinstance(head, DecodeError) and not _has_no_kind(raw):
                # Kind and apiVersion may be null: they must not override those of the list.
                raw = raw if head.kind or head.api_version else heads.without_nulls(raw) or raw
        if not isinstance(head, DecodeError):
            return self._completed(raw, head)
        if self._splice is not None and _has_no_kind(raw):
            raw = self._splice.into(raw)
        return Item(raw, None, head)

    def _completed(self, raw: bytes | memoryview, head: heads.Outline) -> Item:
        """Return the item with its kind and apiVersion, copying the bytes once."""
        splice, metadata = self._splice, head.metadata
        kind, api_version = head.kind, head.api_version
        # An item with one of the two is not of a typed list: leave it as it is.
        if splice is None or kind or api_version:
            whole = bytes(raw)
        else:
            kind, api_version = splice.kind, splice.api_version
            whole = splice.into(raw)
        if metadata.raw_annotations is not UNSET:  # they are a view of the page
            force_setattr(metadata, "raw_annotations", Packed(None, whole))
        return Item(whole, heads.Head(api_version, kind, metadata))


def _has_no_kind(raw: bytes) -> bool:
    # For items that cannot be decoded; one without readable members either is left alone.
    try:
        return scan.members(raw).keys().isdisjoint((b"kind", b"apiVersion"))
    except ValueError:
        return False


def _check_kind(kind: str) -> None:
    if not kind.endswith("List"):
        raise DecodeError(f"expected a list, got kind {kind[:64]!r}", path="$.kind")


def _decode(raw: bytes, of_type: type[T], *, path: str) -> T:
    try:
        return msgspec.json.decode(raw, type=of_type)
    except heads.UNREADABLE as exc:
        error = heads.decode_error(exc)
        error.path = path + error.path.removeprefix("$")
        raise error from None
