"""Exchanges without what differs from run to run.

The same value becomes the same symbol all through a case, so identity is compared: a watch that
delivers an object under another version than the write answered is a difference. The version
of a list depends on what others write on the same server: it is ``<list-rv>``, unless the
request pinned it (``<requested-rv>``, ``<first-page-rv>``). What a case itself sent stays as it is.
"""

from __future__ import annotations

import re
from typing import Final

from tests.contract.exchange import Exchange, Json, ListVersion, View, is_collection

__all__ = ["Normal"]

UUID: Final = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
MICRO_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z")
JWT: Final = re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]+")
AGE: Final = re.compile(r"(\d+[smhdy])+")
YEARS: Final = re.compile(r"\b\d+y(?:\d+d)?\b")
AGE_COLUMNS: Final = frozenset({"Age", "Last Seen", "First Seen", "Created At"})
ADDRESSES: Final = frozenset({"clusterIP", "clusterIPs", "ip"})
CURRENT: Final = re.compile(r"(current: |too old resource version: \S+ \()\d+")
RECORDED: Final = re.compile(r"(ResourceVersion in (?:the precondition|record) )\((\d+)\)")
HEADERS: Final = (
    "allow",
    "cache-control",
    "content-encoding",
    "content-type",
    "location",
    "retry-after",
    "vary",
    "warning",
    "www-authenticate",
    "x-content-type-options",
)


class Normal:
    """The symbols of one case; exchanges must be given in order."""

    def __init__(self, *, ident: str, ns: str, url: str, named: dict[str, str]) -> None:
        address = url.partition("://")[2]
        self._texts: Final = {address: "<server>", ns: "<ns>", ident: "<id>"}
        self._versions: Final = dict(named)
        self._symbols: Final[dict[str, str]] = {}
        self._counts: Final[dict[str, int]] = {}
        self._sent: Final[set[str]] = set()
        self._pages: Final[dict[str, str]] = {}
        self._pin = ("", "")
        self._asked = ("", "")

    def exchange(self, exchange: Exchange) -> Json:
        """Return what is recorded of an exchange."""
        query = dict(exchange.query)
        asked = query.get("resourceVersion", "")
        self._asked = (asked, self._parameter("resourceVersion", asked))
        result: Json = {"request": self._request(exchange)}
        self._pin = self._pinned(query)
        answer = exchange.answer
        result["status"] = answer.status
        result["headers"] = {
            name: self._text(answer.headers[name]) for name in HEADERS if name in answer.headers
        }
        if exchange.is_watch:
            result["events"] = [self._event(event) for event in exchange.events]
            result["ended"] = exchange.ended
            if exchange.chunks is not None:
                result["chunks"] = exchange.chunks
            return result
        body = answer.body
        if isinstance(body, dict):
            self._note_page(body)
        if exchange.view is not None:
            body = _viewed(exchange.view, body)
        if exchange.is_quiet and isinstance(body, dict) and is_collection(body):
            return result  # of who knows whom: foreign objects must not count
        if body is not None:
            result["body"] = self._value(body)
        if answer.content.startswith(b"{\n"):
            result["layout"] = "indented"
        return result

    # Requests.

    def _request(self, exchange: Exchange) -> Json:
        request: Json = {"method": exchange.method, "path": self._text(exchange.path)}
        if exchange.query:
            request["query"] = [
                f"{key}={self._parameter(key, value)}" for key, value in exchange.query
            ]
        if exchange.headers:
            request["headers"] = exchange.headers
        if exchange.body is not None:
            self._note_sent(exchange.body)
            request["body"] = self._sent_value(exchange.body)
        return request

    def _parameter(self, key: str, value: str) -> str:
        if key == "continue":
            return self._symbols.get(value, value)
        if key == "resourceVersion":
            return (
                "<list-rv>" if isinstance(value, ListVersion) else self._versions.get(value, value)
            )
        return self._text(value)

    def _note_sent(self, value: object) -> None:
        """Keep the texts of a body: what the server repeats of them is not its own."""
        if isinstance(value, dict):
            for each in value.values():
                self._note_sent(each)
        elif isinstance(value, list):
            for each in value:
                self._note_sent(each)
        elif isinstance(value, str | int) and str(value) not in self._symbols:
            self._sent.add(str(value))

    def _sent_value(self, value: object) -> object:
        if isinstance(value, dict):
            return {
                self._text(key): self._versions.get(each, each)
                if key == "resourceVersion"
                else self._sent_value(each)
                for key, each in value.items()
            }
        if isinstance(value, list):
            return [self._sent_value(each) for each in value]
        if not isinstance(value, str):
            return value
        return (
            self._symbols[value]
            if TIME.fullmatch(value) and value in self._symbols
            else self._text(value)
        )

    def _pinned(self, query: Json) -> tuple[str, str]:
        """Return the version that a list must have, and its symbol, if the request says so."""
        if token := query.get("continue"):
            return self._pages.get(token, ""), "<first-page-rv>"
        asked = query.get("resourceVersion", "0")
        match = query.get("resourceVersionMatch")
        if asked != "0" and (match == "Exact" or (not match and "limit" in query)):
            return asked, "<requested-rv>"
        return "", ""

    def _note_page(self, body: Json) -> None:
        metadata = body.get("metadata")
        if isinstance(metadata, dict) and (token := metadata.get("continue")):
            self._pages[token] = metadata.get("resourceVersion", "")

    # Answers.

    def _event(self, event: Json) -> Json:
        shown = event.get("object")
        if event.get("type") == "BOOKMARK" and isinstance(shown, dict):
            shown = self._with_version(shown, "<list-rv>")
            if rows := shown.get("rows"):
                rows = [
                    {**row, "object": self._with_version(row["object"], "<list-rv>")}
                    for row in rows
                ]
                shown = {**shown, "rows": rows}
        return {"type": event.get("type"), "object": self._value(shown, is_event=True)}

    def _with_version(self, shown: Json, symbol: str) -> Json:
        metadata = shown.get("metadata")
        if not isinstance(metadata, dict) or "resourceVersion" not in metadata:
            return shown
        return {**shown, "metadata": {**metadata, "resourceVersion": symbol}}

    def _value(self, value: object, *, key: str = "", is_event: bool = False) -> object:
        if isinstance(value, dict):
            return self._object(value, is_event=is_event)
        if isinstance(value, list):
            return [self._value(each, key=key) for each in value]
        if isinstance(value, str):
            return self._string(value, key)
        if key == "nodePort" and value and str(value) not in self._sent:
            return "<node-port>"
        return value

    def _object(self, value: Json, *, is_event: bool = False) -> Json:
        metadata = value.get("metadata")
        if isinstance(metadata, dict):
            self._note_generated(metadata)
            if not is_event and is_collection(value):
                value = self._list(value, metadata)
        if value.get("kind") == "Table" and isinstance(value.get("rows"), list):
            value = _without_ages(value)
        return {self._text(key): self._value(each, key=key) for key, each in value.items()}

    def _list(self, value: Json, metadata: Json) -> Json:
        version = metadata.get("resourceVersion")
        if not version:
            return value
        if version == self._pin[0]:
            return self._with_version(value, self._pin[1])
        is_old = any(_older(version, item) for item in value.get("items") or ())
        return self._with_version(value, "<list-rv older than an item>" if is_old else "<list-rv>")

    def _note_generated(self, metadata: Json) -> None:
        base, name = metadata.get("generateName"), metadata.get("name")
        if base and name and name.startswith(base) and name not in self._sent | self._texts.keys():
            self._texts[name] = f"{base}{self._symbol(name, 'random')}"

    def _string(self, value: str, key: str) -> str:
        if key == "resourceVersion":
            return self._version(value)
        if key == "continue" and value:
            return self._symbol(value, "token")
        if key in ADDRESSES and value not in self._sent | {"", "None"}:
            return self._symbol(value, "ip")
        if key == "serverAddress":
            return "<server>"
        if value not in self._sent:
            if TIME.fullmatch(value):
                return self._noted(value, "<time>")
            if MICRO_TIME.fullmatch(value):
                return self._noted(value, "<micro-time>")
        return self._text(value)

    def _version(self, value: str) -> str:
        if value in ("", "0") or value.startswith("<"):
            return value
        if value not in self._versions:
            self._versions[value] = f"<rv-{self._next('rv')}>"
        return self._versions[value]

    def _noted(self, value: str, symbol: str) -> str:
        self._symbols.setdefault(value, symbol)
        return symbol

    def _symbol(self, value: str, kind: str) -> str:
        if value not in self._symbols:
            self._symbols[value] = f"<{kind}-{self._next(kind)}>"
        return self._symbols[value]

    def _next(self, kind: str) -> int:
        self._counts[kind] = self._counts.get(kind, 0) + 1
        return self._counts[kind]

    def _text(self, text: str) -> str:
        text = UUID.sub(lambda m: m[0] if m[0] in self._sent else self._symbol(m[0], "uid"), text)
        text = JWT.sub("<jwt>", text)
        for known, symbol in self._texts.items():
            text = text.replace(known, symbol)
        if "resource" in text.lower():
            text = CURRENT.sub(r"\1<list-rv>", text)
            text = RECORDED.sub(lambda m: f"{m[1]}({self._versions.get(m[2], m[2])})", text)
            asked, symbol = self._asked
            if symbol.startswith("<"):
                text = re.sub(rf"\b{asked}\b", symbol, text)
        return text


def _viewed(view: View, body: object) -> object:
    """Return a body reduced by a view; the whole of it if it is not as the view expects."""
    try:
        return view(body)
    except (AttributeError, KeyError, IndexError, TypeError):
        return body


def _older(version: str, item: object) -> bool:
    metadata = item.get("metadata") if isinstance(item, dict) else None
    mine = metadata.get("resourceVersion", "") if isinstance(metadata, dict) else ""
    return mine.isdigit() and version.isdigit() and int(version) < int(mine)


def _without_ages(table: Json) -> Json:
    """Return a Table with its ages replaced, in every row."""
    columns = table.get("columnDefinitions") or ()
    ages = {
        i
        for i, column in enumerate(columns)
        if column.get("name") in AGE_COLUMNS or column.get("type") == "date"
    }
    # The tables of a watch define their columns once, with the first event.
    rows = [
        {
            **row,
            "cells": [
                _without_age(cell, is_age=i in ages or (not columns and i > 0))
                for i, cell in enumerate(row.get("cells") or ())
            ],
        }
        for row in table["rows"]
    ]
    return {**table, "rows": rows}


def _without_age(cell: object, *, is_age: bool) -> object:
    if not isinstance(cell, str):
        return cell
    if is_age and AGE.fullmatch(cell):
        return "<age>"
    # Since a time that the case has written: one day more each day.
    return YEARS.sub("<years>", cell)
