"""By which id the turns of one conversation are found."""

from collections import OrderedDict
from typing import Final

from callwright.gateway.request_context import RequestContext
from callwright.turn.observe import Observation
from callwright.upstreams.affinity import conversation_digest

# The most responses remembered for later continuation.
_MAX_RESPONSES: Final = 10_000


class ConversationIds:
    """Conversation ids, per process. A continued response has the id of its conversation."""

    def __init__(self) -> None:
        self._by_response: OrderedDict[str, str] = OrderedDict()

    def of(self, seen: Observation, context: RequestContext | None) -> str:
        """The id of the conversation of a turn: the client's, that of the response which is continued, or a digest of
        its first messages and the key.
        """
        if context is None:
            return conversation_digest(seen.conversation, seen.fields, "")
        if context.conversation_id is not None:
            return context.conversation_id
        known = self._by_response
        found = known.get(context.response_id or "") or known.get(context.previous_response_id or "")
        found = found or conversation_digest(seen.conversation, seen.fields, context.caller)
        if context.response_id is not None:
            known[context.response_id] = found
            if len(known) > _MAX_RESPONSES:
                known.popitem(last=False)
        return found
