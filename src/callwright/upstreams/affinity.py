"""Which of several servers a conversation belongs to: the one that has its beginning in its prefix cache.

Each server is scored with the beginning of the conversation (rendezvous hashing), so that every gateway prefers the
same one, and a server more or less moves no conversation but its own. A server that has clearly more to do than the
others is passed over (bounded loads): a cache saves less than a queue costs.

Source: Thaler and Ravishankar, "Using name-based mappings to increase hit rates", 1998; Mirrokni, Thorup and
Zadimoghaddam, "Consistent hashing with bounded loads", 2016.
"""

from hashlib import blake2b
from typing import Any, Final

from callwright.conversation import Message, TextPart
from callwright.upstreams.base import GenerationRequest

__all__ = ["affinity_key", "fair_share", "score"]

# A server may have so many times the mean under way.
_SLACK: Final = 1.25
# So many characters of each message are looked at: conversations differ in the first words of their user.
_LOOKED_AT: Final = 2_048


def affinity_key(generation: GenerationRequest) -> bytes | None:
    """What requests of one conversation share: the client's `prompt_cache_key`, or else all up to and with the user's
    first words. None where there are none.
    """
    digest = blake2b(generation.model.encode("utf-8", "surrogatepass"), digest_size=16)
    if isinstance(given := generation.fields.get("prompt_cache_key"), str):
        digest.update(b"\0key" + _bytes(given))
        return digest.digest()
    for item in generation.conversation.items:
        if isinstance(item, Message):
            digest.update(b"\0" + item.role.encode())
            for part in item.parts:
                digest.update(b"\0" + (_bytes(part.text) if isinstance(part, TextPart) else b""))
            if item.role == "user":
                return digest.digest()
    return None


def score(key: bytes, server: str) -> bytes:
    """How much a conversation belongs to a server: it is the one with the highest score."""
    return blake2b(_bytes(server), key=key, digest_size=8).digest()


def fair_share(in_flight: int, servers: int) -> float:
    """How many requests a server may have under way when one more comes, of those of all the `servers`."""
    return max(1.0, _SLACK * (in_flight + 1) / servers)


def _bytes(text: Any) -> bytes:
    return str(text[:_LOOKED_AT]).encode("utf-8", "surrogatepass")
