"""Bytes become requests, one at a time: httptools reads fields and chunks, with bounds on what it gets before it has
come to something.

It never gets bytes from behind the end of a request: these wait for its answer, with whoever brings them. A head, and a
body in chunks, ends with an empty line and nowhere else, so each one is a place to stop and see.
"""

import re
from collections.abc import Callable
from typing import Any, Final

import httptools

from callwright.gateway.process.protocols.exchange import Exchange
from callwright.gateway.process.protocols.heads import READ_HERE, Field, Named, asks_websocket, read_head
from callwright.gateway.process.protocols.refusals import no_request, too_large

__all__ = ["RequestReader"]

# So much is parsed before it is looked at again: what stands between two pieces of a body may be too much.
_SLICE_BYTES: Final = 16_384
_EMPTY_LINE: Final = b"\r\n\r\n"
_UPGRADE: Final = re.compile(rb"(?<=\n)upgrade:[^\n]*\n", re.IGNORECASE)
_TARGET: Final = re.compile(rb"\S+ (\S*)")


class RequestReader:
    """`begin`: called for each request, without its body, which goes to the exchange that is answered; `change`: called
    with a head that asks for a WebSocket. `most`: bytes of a head, or of a body without a piece of it.
    """

    def __init__(
        self, begin: Callable[[dict[str, Any], Named, bool], Exchange], change: Callable[[bytes], None], most: int
    ) -> None:
        self.since = 0  # bytes that were parsed since something came of them
        self._begin = begin
        self._change = change
        self._most = most
        self._parser = httptools.HttpRequestParser(self)
        self._left = 0  # bytes of a body that has a length
        self._end = b""  # of what was parsed: an empty line may come in pieces
        self._has_progressed = self._has_head = self._is_whole = self._keeps_alive = False
        self._is_in_head = True
        self._head = b""
        self._fields: list[Field] = []
        self._named: dict[bytes, list[bytes]] = {}
        self._exchange: Exchange | None = None  # whose body is read

    @property
    def asked(self) -> str:
        """What the head that is read asks for, as far as that is here."""
        target = _TARGET.match(self._head)
        return target[1].decode("latin-1") if target is not None else ""

    def read(self, data: bytes, at: int) -> int:
        """Read on from a place in the bytes that have come, to the end of a request or less far; answers how far.
        Raises `RequestError`, behind which nothing can be read.
        """
        if self._left:
            end = min(at + self._left, len(data))
            self._left -= end - at
            self._parse(data[at:end])
            return end
        while self._is_in_head and not self._head and at < len(data) and data[at] in b"\r\n":  # behind a body, by some
            at += 1
        begin, most = at, min(at + _SLICE_BYTES, at + self._most - self.since, len(data))
        before, self._has_progressed = self._end, False
        while at < most:
            end = _next_end(before, data, at, most)
            piece = data[at:end]
            at, before = end, b""
            if self._is_in_head:
                self._head += piece
            self._parse(piece)
            if self._is_in_head or self._left:
                break
        self._end = (self._end + data[max(begin, at - 3) : at])[-3:] if at == most else b""
        self.since = 0 if self._has_progressed else self.since + at - begin
        if self.since >= self._most:
            raise too_large(self._most, is_head=self._is_in_head)
        return at

    def forget(self) -> None:
        """Nothing more will come: what points back at this goes, so that it does not wait for the garbage collector."""
        del self._parser, self._begin, self._change, self._exchange

    # --- httptools ---

    def on_header(self, name: bytes, value: bytes) -> None:
        """See httptools: also for the trailers of a body, which are no headers of the request."""
        if self._is_in_head:
            name = name.lower()
            self._fields.append((name, value))
            if name in READ_HERE:
                self._named.setdefault(name, []).append(value.strip())

    def on_headers_complete(self) -> None:
        """See httptools."""
        self._has_head = self._has_progressed = True
        self._keeps_alive = self._parser.should_keep_alive()

    def on_body(self, body: bytes) -> None:
        """See httptools."""
        self._has_progressed = True
        if self._exchange is not None:
            self._exchange.add(body)

    def on_message_complete(self) -> None:
        """See httptools."""
        self._is_whole = self._has_progressed = True
        if not self._parser.should_keep_alive():  # trailers may say so, which counts for nothing
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
        else:  # again as if nobody had asked for that: the parser takes such a request to have no body
            head = _UPGRADE.sub(b"", self._head)
            self._parser = httptools.HttpRequestParser(self)
            self._end_request()
            self._head = head
            self._parse(head)

    def _end_request(self) -> None:
        if self._exchange is not None:
            self._exchange.end_body()
        self._is_in_head, self._is_whole, self._exchange = True, False, None
        self._head, self._fields, self._named = b"", [], {}


def _next_end(before: bytes, data: bytes, at: int, most: int) -> int:
    """Behind the next empty line, which may have begun `before`, or where no more may be parsed for now."""
    begun = (before + data[at : at + 3]).find(_EMPTY_LINE) if before else -1
    if begun >= 0:
        return at + begun + len(_EMPTY_LINE) - len(before)
    end = data.find(_EMPTY_LINE, at, most)
    return most if end < 0 else end + len(_EMPTY_LINE)
