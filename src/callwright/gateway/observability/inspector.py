"""The data of this process for the pages: its last turns and their results, in bounded memory."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

import callwright
from callwright.gateway.config.config import InspectLevel
from callwright.gateway.observability.conversation_ids import ConversationIds
from callwright.gateway.observability.redaction import Redactor, request_without_keys
from callwright.gateway.request_context import RequestContext, current
from callwright.inspection.kept_turns import KeptTurns
from callwright.inspection.quality import QualityCounts
from callwright.inspection.summary import TurnSummary
from callwright.inspection.turn_view import TurnView, bare_view, turn_view
from callwright.settings import bounds
from callwright.tolerant_json.codec import NotJsonError, decode
from callwright.turn.observe import Ended, Observation, Observer
from callwright.turn.records import record_of

_FAILED: Final = 400
_SMALL: Final = 65_536
_NAME_CHARS: Final = 200
_SERVER_FAILED: Final = 500
# Refusals of unauthenticated clients: such requests are counted, but not recorded.
_STRANGERS: Final = ("key", "origin")
_ASKING: Final = ("POST", "WEBSOCKET")


class Inspector:
    """Records the turns of one process; `level` is `metadata` or `full`, `worker` its number among the `workers`."""

    def __init__(
        self,
        level: InspectLevel,
        conversations: ConversationIds,
        worker: int = 0,
        workers: int = 1,
    ) -> None:
        self.redactor = Redactor(None)
        self.level = level
        self._conversations = conversations
        self.counts = QualityCounts()
        most, most_bytes = -(-bounds.MAX_INSPECTED_TURNS // workers), -(-bounds.MAX_INSPECTED_BYTES // workers)
        name = f"{worker + 1}{os.urandom(2).hex()}"  # a process that is started again has other ids
        self.turns = KeptTurns(most, most_bytes if level == "full" else 0, name, told=self.counts.add)

    def observer(self, again_of: str | None = None, told: Callable[[str], None] | None = None) -> Observer:
        """Records the turns of a model. `again_of`: the turn that is repeated by hand; `told`: called with the id."""

        def begin(seen: Observation) -> Ended:
            context = current()
            kept, ended = self.turns.begin(seen, context.body if context is not None else None)
            row = kept.row
            row.again_of = again_of
            row.asked = self.redactor.text(row.asked, seen.secrets)
            first = self.turns.get(again_of) if again_of is not None else None
            row.conversation = first.row.conversation if first else self._conversations.of(seen, context)
            if context is not None:
                row.request_id, row.key, row.endpoint = context.id, context.caller, context.endpoint
                row.reasoning_put_back = context.reasoning_put_back
            if told is not None:
                told(row.id)
            return ended if seen.secrets == () else partial(self._end, seen, row, ended)

        return begin

    def _end(self, seen: Observation, row: TurnSummary, ended: Ended) -> None:
        """Hide the secrets that hooks have named since the turn began."""
        row.asked = self.redactor.text(row.asked, seen.secrets)
        ended()

    def request_ended(self, context: RequestContext) -> None:
        """A request is over: one that was refused before there was a turn becomes a row, too."""
        if context.turns.number or context.status < _FAILED or context.method not in _ASKING:
            return
        if context.refusal in _STRANGERS or not context.endpoint.startswith(("/v1", "/openresponses")):
            return
        now = time.monotonic()
        row = TurnSummary(
            id="",
            at=time.time() - (now - context.begun_s),
            request_id=context.id,
            key=context.caller,
            endpoint=context.endpoint,
            model=context.model or _model_in(context.body),
            over=True,
            outcome="failed" if context.status >= _SERVER_FAILED else "refused",
            ended="failed" if context.status >= _SERVER_FAILED else "refused",
            seconds=now - context.begun_s,
            error=context.error or str(context.status),
        )
        self.turns.note(row, context.body, context.message)
        self.counts.add(row)

    def view(self, id_: str) -> TurnView | None:
        """One turn in its present state; None for an unknown id. Slow: the turn is parsed again."""
        kept = self.turns.get(id_)
        if kept is None:
            return None
        seen, body = kept.seen, kept.body
        if kept.message is not None:
            request = self.redactor.value(request_without_keys(body))
            error = self.redactor.text(kept.message)
            return TurnView(row=kept.row, contents="full", request=request, error=error, attempts=[])
        if seen is None:
            return bare_view(kept.row, "metadata" if self.level == "metadata" else "gone", kept.attempts)
        about: dict[str, Any] = {"request_id": kept.row.request_id, "endpoint": kept.row.endpoint}
        with suppress(RuntimeError):  # a turn that is under way changes while it is looked at
            time_ = datetime.fromtimestamp(kept.row.at, UTC).isoformat(timespec="milliseconds")
            record = record_of(
                seen, version=callwright.__version__, time=time_, request=request_without_keys(body), **about
            )
            view = turn_view(kept.row, self.redactor.record(record, seen.secrets))
            if not kept.row.over and view.attempts:
                view.attempts[-1].ended = "running"
            return view
        return bare_view(kept.row, "full")


def _model_in(body: bytes | str | None) -> str:
    """The model that a refused request names; empty if it is unknown or the body is large."""
    if body is None or len(body) > _SMALL:
        return ""
    try:
        given = decode(body)
    except NotJsonError:
        return ""
    model = given.get("model") if isinstance(given, dict) else None
    return model[:_NAME_CHARS] if isinstance(model, str) else ""
