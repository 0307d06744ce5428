"""Session affinity: which of several servers a conversation goes to, so that its beginning is in that prefix cache.

Each server gets a score for the beginning of the conversation (rendezvous hashing). So every gateway prefers the same
one, and adding or removing a server moves only that server's conversations. A server that is clearly busier than the
others is passed over (bounded loads): a cache saves less than a queue costs.

Sources: Thaler and Ravishankar, "Using name-based mappings to increase hit rates", 1998; Mirrokni, Thorup and
Zadimoghaddam, "Consistent hashing with bounded loads", 2016.
"""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final

from callwright.conversation import Conversation, Message, TextPart
from callwright.upstreams.base import GenerationRequest

__all__ = ["affinity_key", "conversation_key", "fair_share", "score"]

# A server may have this many times the mean number of requests in flight.
_SLACK: Final = 1.25
# Characters of each message that count: conversations differ in the first words of their user.
_LOOKED_AT: Final = 2_048


def affinity_key(generation: GenerationRequest) -> bytes | None:
    """What the requests of one conversation share; see `conversation_key`."""
    return conversation_key(generation.model, generation.conversation, generation.fields)


def conversation_key(model: str, conversation: Conversation, fields: Mapping[str, Any]) -> bytes | None:
    """What the requests of one conversation share, as a hash: the client's `prompt_cache_key` or session, else the
    messages up to the first of the user. None if there is none.
    """
    digest = blake2b(model.encode("utf-8", "surrogatepass"), digest_size=16)
    if isinstance(given := fields.get("prompt_cache_key"), str):
        digest.update(b"\0key" + _bytes(given))
        return digest.digest()
    if conversation.session_id is not None:
        digest.update(b"\0session" + _bytes(conversation.session_id))
        return digest.digest()
    for item in conversation.items:
        if isinstance(item, Message):
            digest.update(b"\0" + item.role.encode())
            for part in item.parts:
                digest.update(b"\0" + (_bytes(part.text) if isinstance(part, TextPart) else b""))
            if item.role == "user":
                return digest.digest()
    return None


def score(key: bytes, server: str) -> bytes:
    """How well a server suits a conversation; the highest score wins."""
    return blake2b(_bytes(server), key=key, digest_size=8).digest()


def fair_share(in_flight: int, servers: int) -> float:
    """The bound below which a server takes one more request, by those in flight on all `servers`."""
    return max(1.0, _SLACK * (in_flight + 1) / servers)


def _bytes(text: Any) -> bytes:
    return str(text[:_LOOKED_AT]).encode("utf-8", "surrogatepass")
