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

# A server may have this many times the mean number of requests in flight.
_SLACK: Final = 1.25
# Characters of each message that count: conversations differ in the first words of their user.
_LOOKED_AT: Final = 2_048


def affinity_key(generation: GenerationRequest) -> bytes | None:
    """A hash of the common part of one conversation's requests, the same in every process; None without one."""
    words = shared_words(generation.conversation, generation.fields)
    if words is None:
        return None
    digest = blake2b(_bytes(generation.model), digest_size=16)
    for word in words:
        digest.update(b"\0" + _bytes(word))
    return digest.digest()


def shared_words(conversation: Conversation, fields: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The common part of one conversation's requests.

    It is the client's `prompt_cache_key` or session, else the messages up to the first of the user, each cut off. None
    without any of these.
    """
    if isinstance(given := fields.get("prompt_cache_key"), str):
        return "key", given[:_LOOKED_AT]
    if conversation.session_id is not None:
        return "session", conversation.session_id[:_LOOKED_AT]
    words, has_user = first_messages(conversation)
    return words if has_user else None


def conversation_digest(conversation: Conversation, fields: Mapping[str, Any], key: str) -> str:
    """A digest that is the same for the requests of one conversation of a key, in every process.

    It covers the client's own name for the conversation, if any, and the messages up to the first of the user; with
    such a name only the user's.
    """
    own = fields.get("prompt_cache_key") or conversation.session_id
    words, _ = first_messages(conversation, only_user=bool(own))
    all_words = "\0".join((key, own[:_LOOKED_AT] if isinstance(own, str) else "", *words))
    return blake2b(all_words.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def first_messages(conversation: Conversation, *, only_user: bool = False) -> tuple[tuple[str, ...], bool]:
    """Roles and texts of the messages up to the first of the user, each cut off, and whether there is one of the user.
    `only_user` leaves out the others.
    """
    words: list[str] = []
    for item in conversation.items:
        if type(item) is Message and (item.role == "user" or not only_user):
            words.append(item.role)
            for part in item.parts:
                words.append(part.text[:_LOOKED_AT] if type(part) is TextPart else "")
            if item.role == "user":
                return tuple(words), True
    return tuple(words), False


def score(key: bytes, server: str) -> bytes:
    """How well a server suits a conversation; the highest score wins."""
    return blake2b(_bytes(server), key=key, digest_size=8).digest()


def fair_share(in_flight: int, servers: int) -> float:
    """The bound below which a server takes one more request, by those in flight on all `servers`."""
    return max(1.0, _SLACK * (in_flight + 1) / servers)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
