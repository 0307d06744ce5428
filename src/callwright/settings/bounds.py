"""All limits on input and waiting times, in one place: those of `[limits]`, and constants.

Counts are of things, sizes are in bytes unless the name ends in CHARS. Code that enforces a limit imports it from
here. The constants are far above any legitimate use, and still cost a fraction of a second.
"""

from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta

# --- times ---

# A stream without news sends an empty chunk this often: proxies end a silent connection after half a minute or more.
HEARTBEAT_S: Final = 10.0
# A WebSocket that is idle for this long is closed. Long, so that clients can reuse theirs between turns: if there are
# too many (`max_connections`), silent ones end sooner.
IDLE_S: Final = 1_800.0
# A request is dropped if its head, and then its body, does not arrive within this time, and so is an incomplete message
# over WebSocket. A minute is enough for 16 MiB over a slow line, and short for attackers that hold connections open.
RECEIVE_S: Final = 60.0
# A client that reads nothing of its stream for this long is dropped: a machine that slept for a moment is back by then.
STALL_S: Final = 60.0

# --- a request ---

# Levels of its JSON. Recursive readers, validators and grammars can handle some 1,000.
MAX_DEPTH: Final = 800
# Parts of content, calls and nested parts of results, in all messages or items together: two for each message, if there
# are as many messages as allowed.
MAX_PARTS: Final = 20_000
# Choices in one chat request, and completions in one of those (`n`, `best_of`): each is an answer of its own.
MAX_CHOICES: Final = 8
# Stop sequences, and edits of the context, in one request to `/v1/messages`: each is work for all of the rest.
MAX_OPTIONS: Final = 256
# All tools together, and the schema of the answer, as JSON; the list of tools of an MCP server. The largest lists of
# real servers take a tenth.
MAX_SCHEMA_BYTES: Final = 4_194_304
# Objects in one schema, and other values in its lists, counted at each `$ref` to them: twenty references can expand to
# a million.
MAX_SCHEMA_PARTS: Final = 20_000
# Properties of one schema with `strict`: OpenAI takes no more.
MAX_PROPERTIES: Final = 5_000
# Characters of all patterns in one schema, with counted repetitions written out: the engine compiles them all.
MAX_PATTERN_SIZE: Final = 100_000
# Characters of one grammar of a custom tool; besides, one that does not compile within 2 s is refused.
MAX_GRAMMAR_CHARS: Final = 100_000
# The head of a request, its line and headers, as most servers bound it. A larger one gets a 431 before it is parsed.
MAX_HEAD_BYTES: Final = 65_536
# Frames of one WebSocket that are queued during a turn: two of the largest. No more is read until there is room.
MAX_WAITING_BYTES: Final = 33_554_432
# Open WebSockets of one key; without keys, of one address, except this machine's own. An eighth of all.
MAX_CONNECTIONS_PER_KEY: Final = 512

# --- an answer ---

# Parameters that are parsed individually in a call written as tags; any after these stay text.
MAX_PARAMETERS: Final = 2_000
# One event in a stream of a model's server: an image in Base64 goes in.
MAX_EVENT_BYTES: Final = 16_777_216
# Commas and opening brackets in one event of a model's server, or in its answer if that is not streamed; in one answer
# of an MCP server. Each becomes an object of some 100 bytes.
MAX_ANSWER_VALUES: Final = 1_048_576
# Calls in one answer that a model's server has parsed itself.
MAX_ANSWER_CALLS: Final = 1_024
# One answer of the search engine, after decompression.
MAX_SEARCH_BYTES: Final = 4_194_304

# --- stored by each process ---

# Events of responses in the background, running or recently ended, for clients that reconnect. If there are more, those
# of ended ones are evicted first.
MAX_KEPT_EVENT_BYTES: Final = 67_108_864
# Turns listed on the pages, the latest, and the contents of these. Several workers share them.
MAX_INSPECTED_TURNS: Final = 5_000
MAX_INSPECTED_BYTES: Final = 67_108_864
# Turns whose reasoning is stored for the client's next requests, and their bytes. The least recently used is evicted.
MAX_KEPT_REASONING: Final = 10_000
MAX_KEPT_REASONING_BYTES: Final = 67_108_864

_AtLeastOne: TypeAlias = Annotated[int, Meta(ge=1)]


class Bounds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[limits]`: what clients and servers may send, as far as it depends on the machine and on who asks."""

    max_items: _AtLeastOne = 10_000
    """Messages or items, those that it continues from included."""
    max_tools: _AtLeastOne = 128
    """Tools in one list or message; a namespace counts once, deferred tools do not. MCP servers in one list."""
    max_bodies_bytes: _AtLeastOne = 268_435_456
    """Bodies of all requests over HTTP that are read or answered, those of less than 64 KiB not counted; one key, or
    one address, has half of it at most. One more gets a 429 with `retry-after`. Each of several workers takes its
    share.
    """
    max_connections: _AtLeastOne = 4_096
    """Connections that are open at once, silent ones too. Where there are more, those end first on which nothing was
    ever asked, then those on which nothing is under way. Each of several workers takes its share.
    """
    max_requests_per_key: _AtLeastOne = 256
    """Requests that one key has under way at once, those in the background and turns over WebSocket included; without
    keys, one address, but for this machine's own. One more gets a 429 with `retry-after`.
    """
    max_answer_bytes: _AtLeastOne = 67_108_864
    """One answer of a model's server, after decompression, or of an MCP server. A larger one ends with an error."""
