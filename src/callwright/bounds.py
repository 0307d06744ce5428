"""Every bound on what others send, in one place: `[limits]` of the configuration, and the defaults of the library.

Counts are of things, sizes are in bytes unless their name says characters. Who enforces a bound takes it from here.
Times that somebody may take stand in `[server]`.
"""

from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

__all__ = ["Bounds"]

_AtLeastOne: TypeAlias = Annotated[int, Meta(ge=1)]


class Bounds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[limits]`: what a client, a model's server and a model may send."""

    max_depth: _AtLeastOne = 800
    """Levels of the JSON."""
    max_items: _AtLeastOne = 10_000
    """Messages or items, those that it continues from included."""
    max_parts: _AtLeastOne = 20_000
    """Parts of content, calls and what stands within results among them, in all messages or items together."""
    max_tools: _AtLeastOne = 128
    """Tools in one list or message; a namespace counts once, deferred tools do not. MCP servers in one list."""
    max_choices: _AtLeastOne = 8
    """Choices in one chat request, and completions in one of those (`n`, `best_of`): each is an answer of its own."""
    max_options: _AtLeastOne = 256
    """Stop sequences, and edits of the context, in one request to `/v1/messages`: each is work for all of the rest."""
    max_schema_bytes: _AtLeastOne = 4_194_304
    """All tools together, and the schema of the answer, as JSON; the list of tools of an MCP server."""
    max_schema_parts: _AtLeastOne = 20_000
    """Objects in one schema, and other values in its lists, each time a `$ref` leads to them: twenty references can
    stand for a million.
    """
    max_properties: Annotated[int, Meta(ge=1, le=5_000)] = 5_000
    """Properties of one schema with `strict`; OpenAI takes no more."""
    max_pattern_size: _AtLeastOne = 100_000
    """Characters of all patterns in one schema, with counted repetitions written out."""
    max_parameters: _AtLeastOne = 2_000
    """Parameters that are read one by one in a call that a model writes as tags; what comes behind them stays text."""
    max_grammar_chars: _AtLeastOne = 100_000
    """Characters of one grammar of a custom tool; besides, one that does not compile within 2 s is refused."""
    max_head_bytes: _AtLeastOne = 65_536
    """The head of a request: its line and headers. A larger one gets a 431 before it is parsed."""
    max_waiting_bytes: _AtLeastOne = 33_554_432
    """Frames of one WebSocket that wait behind the turn that is answered. No more is read until there is room."""
    max_bodies_bytes: _AtLeastOne = 268_435_456
    """Bodies of all requests over HTTP that are read or answered, those of less than 64 KiB not counted; one key, or
    one address, has half of it at most. One more gets a 429 with `retry-after`. Each of several workers takes its
    share.
    """
    max_kept_event_bytes: _AtLeastOne = 67_108_864
    """Events of responses that are made in the background, and were a while ago, kept for clients that come back. Where
    there are more, those of what has ended go first. Each of several workers has so many.
    """
    max_inspected_turns: _AtLeastOne = 5_000
    """Turns of which the [pages](inspection.md) have a row, the latest. Each of several workers takes its share."""
    max_inspected_bytes: _AtLeastOne = 67_108_864
    """What is kept for the [pages](inspection.md) of what was said in the latest turns; the older ones have their row
    only. Each of several workers takes its share.
    """
    max_kept_reasoning: _AtLeastOne = 10_000
    """Turns whose [reasoning is kept](reasoning.md) for the client's next requests. The one that was not used for
    longest makes room.
    """
    max_kept_reasoning_bytes: _AtLeastOne = 67_108_864
    """The same in bytes. Of a turn that says more than 262,144 characters before its calls none is kept."""
    max_connections: _AtLeastOne = 4_096
    """Connections that are open at once, silent ones too. Where there are more, those end first on which nothing was
    ever asked, then those on which nothing is under way. Each of several workers takes its share.
    """
    max_connections_per_key: _AtLeastOne = 512
    """WebSockets that one key has open at once; without keys, one address, but for this machine's own. One more gets a
    429.
    """
    max_requests_per_key: _AtLeastOne = 256
    """Requests that one key has under way at once, those in the background and turns over WebSocket included; without
    keys, one address, but for this machine's own. One more gets a 429 with `retry-after`.
    """
    max_answer_bytes: _AtLeastOne = 67_108_864
    """One answer of a model's server, after decompression, or of an MCP server. A larger one ends with an error."""
    max_search_bytes: _AtLeastOne = 4_194_304
    """One answer of the [search engine](web-search.md), after decompression. A larger one is a search that failed."""
    max_event_bytes: _AtLeastOne = 16_777_216
    """One event in a stream of a model's server."""
    max_answer_values: _AtLeastOne = 1_048_576
    """Commas and opening brackets in one event of a model's server, or in its answer where that is not streamed; in one
    answer of an MCP server.
    """
    max_answer_calls: _AtLeastOne = 1_024
    """Calls in one answer that a model's server has read itself."""
