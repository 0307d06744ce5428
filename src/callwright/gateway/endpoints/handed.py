"""Endpoints that are forwarded to the model's server: completions, embeddings, ranks and scores.

Request and answer are forwarded unchanged, except for the name of the model. The same checks as for other requests to a
model apply: keys and their limits, the limits of the model, the permitted fields, the observers.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Raw
from starlette.requests import Request
from starlette.responses import Response

from callwright.conversation import Conversation
from callwright.errors import RequestError, UpstreamError
from callwright.events import Usage
from callwright.gateway.config.config import ServerConfig
from callwright.gateway.http import (
    LARGE,
    EventStream,
    PeekedStream,
    cancel_on_disconnect,
    json_response,
    off_loop,
    read_body,
    told_failure,
)
from callwright.gateway.request_context import note_dropped, note_given
from callwright.openai_format.errors import from_validation
from callwright.settings.bounds import Bounds
from callwright.tolerant_json.codec import encode
from callwright.turn.model import Model
from callwright.turn.observe import Observation
from callwright.turn.place import placed
from callwright.upstreams.base import GenerationRequest
from callwright.upstreams.completions import CHAT_ONLY
from callwright.wire.body import decoded
from callwright.wire.bounds import check_choices
from callwright.wire.errors import error_body
from callwright.wire.handed import (
    COMPLETIONS,
    EMBEDDINGS,
    RERANK,
    SCORE,
    CompletionRequestBody,
    HandedBody,
    HandedEndpoint,
)
from callwright.wire.sse import DONE, comment, data

_Answers: TypeAlias = AsyncGenerator[Sequence[Mapping[str, Raw]], None]
# Fields that the gateway sets itself.
_OURS: Final = ("model", "stream", "stream_options")
_HEARTBEAT: Final = comment("waiting for the model")


class HandedEndpoints:
    """Answers for the servers of models."""

    def __init__(self, find_model: Callable[[str], Model], server: ServerConfig, bounds: Bounds) -> None:
        self._find_model = find_model
        self._server = server
        self._bounds = bounds

    async def completions(self, request: Request) -> Response:
        """A completion of a prompt, streamed or whole, by the model's server."""
        return await self._handed_on(request, COMPLETIONS)

    async def embeddings(self, request: Request) -> Response:
        """Embeddings of texts, by the model's server."""
        return await self._handed_on(request, EMBEDDINGS)

    async def rerank(self, request: Request) -> Response:
        """Documents ranked by their relevance to a query, by the model's server."""
        return await self._handed_on(request, RERANK)

    async def score(self, request: Request) -> Response:
        """How near texts are to each other, by the model's server."""
        return await self._handed_on(request, SCORE)

    async def _handed_on(self, request: Request, endpoint: HandedEndpoint) -> Response:
        body = await read_body(request, self._server.max_body_bytes)
        given, checked = await off_loop(lambda: self._read(body, endpoint), slow=len(body) > LARGE)
        note_given(given)
        model = self._find_model(checked.model)
        fields = {name: value for name, value in given.items() if name not in _OURS and value is not None}
        fields, dropped = model.passes.fields_passed(fields, endpoint.known)
        note_dropped(dropped)
        streamed = isinstance(checked, CompletionRequestBody) and bool(checked.stream)
        generation = GenerationRequest(
            model.upstream_model,
            Conversation(),
            fields={**_configured(model, endpoint), **fields},
            streamed=streamed,
        )
        answers = _answers(model, generation, endpoint, checked.model)
        if not streamed:
            return json_response(await cancel_on_disconnect(request, _whole(answers)))
        assert isinstance(checked, CompletionRequestBody)
        with_usage = bool(checked.stream_options and checked.stream_options.include_usage)
        peeked = PeekedStream(answers)
        await peeked.begin(request)
        writer = _AnswerWriter(with_usage=with_usage)
        return EventStream(peeked, writer)

    def _read(self, body: bytes, endpoint: HandedEndpoint) -> tuple[dict[str, Any], HandedBody]:
        given = decoded(body, self._bounds)
        try:
            checked = msgspec.convert(given, endpoint.body)
        except msgspec.ValidationError as error:
            raise from_validation(error, given, {}) from error
        assert isinstance(given, dict)
        if isinstance(checked, CompletionRequestBody):
            check_choices(checked.n, "n")
            check_choices(checked.best_of, "best_of")
        return given, checked


def _configured(model: Model, endpoint: HandedEndpoint) -> dict[str, Any]:
    """The model's own fields, those that mean something here. Those of a chat mean something in a completion, too, but
    for a few.
    """
    if endpoint is COMPLETIONS:
        return {name: value for name, value in model.fields.items() if name not in CHAT_ONLY}
    return {name: value for name, value in model.fields.items() if name in endpoint.known}


async def _answers(model: Model, generation: GenerationRequest, endpoint: HandedEndpoint, name: str) -> _Answers:
    """The answers of the model's server, with the client's name of the model, observed as a turn."""
    named = Raw(encode(name))
    seen = Observation(
        model=model.name,
        upstream=model.upstream.name,
        upstream_model=model.upstream_model,
        mode="native",  # this gateway renders no prompt
        dialect=None,
        output_parser=None,
        hints=model.hints,
        conversation=generation.conversation,
        fields=generation.fields,
        streamed=generation.streamed,
        operation=endpoint.operation,
    ).begin(model.observers)
    with seen:
        generation = seen.requests(generation)
        try:
            handed = placed(model.limit, generation, model.upstream.hand_on(generation, endpoint.path))
            async with aclosing(handed) as batches:
                async for batch in batches:
                    seen.note_piece([answer for answer in batch if isinstance(answer, Usage)])
                    answers = [answer for answer in batch if not isinstance(answer, Usage)]
                    if answers:
                        yield [{**answer, "model": named} if "model" in answer else answer for answer in answers]
        except (RequestError, UpstreamError) as error:
            if isinstance(error, RequestError) and error.param == "messages":  # too long: what there is here instead
                error.param = endpoint.text
            seen.failed(error)
            raise


async def _whole(answers: _Answers) -> Mapping[str, Raw]:
    """The only answer; reads to the end, because the token counts are last."""
    async with aclosing(answers):
        read = [answer async for batch in answers for answer in batch]
    return read[0]


class _AnswerWriter:
    """Writes answers as events, the token counts only for who has asked for them. A failure becomes an event."""

    is_over = False

    def __init__(self, *, with_usage: bool) -> None:
        self._with_usage = with_usage

    @staticmethod
    def heartbeat() -> bytes:
        return _HEARTBEAT

    def write(self, batch: Sequence[Mapping[str, Raw]]) -> list[bytes]:
        shown = batch if self._with_usage else [_without_usage(answer) for answer in batch]
        return [data(encode(answer)) for answer in shown if answer]

    async def end(self) -> list[bytes]:
        return [DONE]

    def fail(self, error: Exception) -> list[bytes]:
        return [data(encode(error_body(told_failure(error)))), DONE]


def _without_usage(answer: Mapping[str, Raw]) -> Mapping[str, Raw]:
    """An event without counts; nothing of one that holds nothing else."""
    if "usage" not in answer:
        return answer
    if bytes(answer.get("choices", b"")).strip() == b"[]":
        return {}
    return {name: value for name, value in answer.items() if name != "usage"}
