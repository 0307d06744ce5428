"""The reader of requests, one at a time. httptools parses fields and chunks; it gets a bounded number of bytes.

It never gets the bytes after the end of a request: they wait for its answer, in the connection. A head, and a body in
chunks, can only end with an empty line, so the parser stops after each of them.
"""

import re
from collections.abc import Callable
from typing import Any, Final

import httptools

from callwright.gateway.process.protocols.exchange import Exchange
from callwright.gateway.process.protocols.heads import READ_HERE, Field, Named, asks_websocket, read_head
from callwright.gateway.process.protocols.refusals import no_request, too_large, too_many_empty_lines

# The most that is parsed before the size of chunk extensions and trailers is checked again.
_SLICE_BYTES: Final = 16_384
_EMPTY_LINE: Final = b"\r\n\r\n"
# In one body: the parser stops after each. JSON needs none, and with these a body of chunks costs 5 ms more.
_MOST_EMPTY_LINES: Final = 16_384
_UPGRADE: Final = re.compile(rb"(?<=\n)upgrade:[^\n]*\n", re.IGNORECASE)
_TARGET: Final = re.compile(rb"\S+ (\S*)")


class RequestReader:
    """`begin`: called for each head; returns the exchange that gets the body. `change`: called with a head that asks
    for a WebSocket. `most`: bytes of a head, or of chunk sizes, extensions and trailers in a row.
    """

    def __init__(
        self, begin: Callable[[dict[str, Any], Named, bool], Exchange], change: Callable[[bytes], None], most: int
    ) -> None:
        self.since = 0  # bytes since the last head, piece of a body or end of a request
        self._begin = begin
        self._change = change
        self._most = most
        self._pieces: list[bytes] = []  # of a body: in chunks, there can be one for each byte
        self.on_body = self._pieces.append
        self._parser = httptools.HttpRequestParser(self)
        self._left = 0  # bytes of a body that has a length
        self._empty_lines = 0  # in this request, as far as the parser stopped there
        self._end = b""  # the last parsed bytes: an empty line can arrive in two parts
        self._has_progressed = self._has_head = self._is_whole = self._keeps_alive = False
        self._is_in_head = True
        self._head = b""
        self._fields: list[Field] = []
        self._named: dict[bytes, list[bytes]] = {}
        self._exchange: Exchange | None = None  # whose body is read

    @property
    def target(self) -> str:
        """The target of the head that is being read, or its beginning."""
        target = _TARGET.match(self._head)
        return target[1].decode("latin-1") if target is not None else ""

    def read(self, data: bytes, at: int) -> int:
        """Read from this index on, at most to the end of a request. Returns the next index. Raises `RequestError`; then
        the connection must end.
        """
        while self._is_in_head and not self._head and at < len(data) and data[at] in b"\r\n":  # RFC 9112, 2.2
            at += 1
        begin, before, self._has_progressed = at, self._end, False
        most = min(len(data), at + (self._left or min(_SLICE_BYTES, self._most - self.since)))
        while at < most:
            end = most if self._left else _next_end(before, data, at, most)
            self._empty_lines += end < most
            piece = data[at:end]
            at, before = end, b""
            if self._is_in_head:
                self._head += piece
            elif self._left:
                self._left -= len(piece)
            self._parse(piece)
            if self._is_in_head or self._left:
                break
        self._pass_body()
        self._end = (self._end + data[max(begin, at - 3) : at])[-3:] if at == most else b""
        self.since = 0 if self._has_progressed else self.since + at - begin
        if self.since >= self._most:
            raise too_large(self._most, is_head=self._is_in_head)
        if self._empty_lines > _MOST_EMPTY_LINES:
            raise too_many_empty_lines(_MOST_EMPTY_LINES)
        return at

    def forget(self) -> None:
        """Drop the references in a cycle, so that this is freed without the garbage collector."""
        del self._parser, self._begin, self._change, self._exchange

    # --- httptools ---

    def on_header(self, name: bytes, value: bytes) -> None:
        """See httptools, which calls this for trailers, too: they are no headers of the request."""
        if self._is_in_head:
            name = name.lower()
            self._fields.append((name, value))
            if name in READ_HERE:
                self._named.setdefault(name, []).append(value.strip())

    def on_headers_complete(self) -> None:
        """See httptools."""
        self._has_head = self._has_progressed = True
        self._keeps_alive = self._parser.should_keep_alive()

    def on_message_complete(self) -> None:
        """See httptools."""
        self._is_whole = self._has_progressed = True
        if not self._parser.should_keep_alive():  # a trailer must not close the connection
            self._parser = httptools.HttpRequestParser(self)

    # --- parts ---

    def _parse(self, piece: bytes) -> None:
        upgrades = False
        try:
            self._parser.feed_data(piece)
        except httptools.HttpParserUpgrade:
            upgrades = True
        except httptools.HttpParserCallbackError:
            raise  # a fault of our own
        except httptools.HttpParserError:
            raise no_request() from None
        if self._has_head:
            self._has_head = False
            self._take_head(upgrades=upgrades)
        if self._is_whole:
            self._end_request()

    def _take_head(self, *, upgrades: bool) -> None:
        asked, named = read_head(self._head, self._fields, self._named), self._named
        if not upgrades:
            self._is_in_head = False
            self._left = int(named[b"content-length"][0]) if b"content-length" in named else 0  # httptools has read it
            self._exchange = self._begin(asked, named, self._keeps_alive and asked["http_version"] == "1.1")
        elif asks_websocket(asked, named):
            self._is_whole = False
            self._change(self._head)
        else:  # parse it without that field: httptools ignores the body of an upgrade
            head = _UPGRADE.sub(b"", self._head)
            self._parser = httptools.HttpRequestParser(self)
            self._end_request()
            self._head = head
            self._parse(head)

    def _pass_body(self) -> None:
        if self._pieces and self._exchange is not None:
            self._has_progressed = True
            self._exchange.add(b"".join(self._pieces))
            self._pieces.clear()

    def _end_request(self) -> None:
        self._pass_body()
        if self._exchange is not None:
            self._exchange.end_body()
        self._is_in_head, self._is_whole, self._exchange = True, False, None
        self._head, self._fields, self._named, self._empty_lines = b"", [], {}, 0


def _next_end(before: bytes, data: bytes, at: int, most: int) -> int:
    """The index after the next empty line, which can begin in `before`, or `most`."""
    begun = (before + data[at : at + 3]).find(_EMPTY_LINE) if before else -1
    if begun >= 0:
        return at + begun + len(_EMPTY_LINE) - len(before)
    end = data.find(_EMPTY_LINE, at, most)
    return most if end < 0 else end + len(_EMPTY_LINE)
