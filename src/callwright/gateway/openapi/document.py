"""The gateway's OpenAPI document: every route, with its request and its answers.

The routes come from the application, their summaries from the docstrings of their handlers, the schemas from the types
of requests and answers (`openapi_schemas`). Source of the form: OpenAPI 3.1.1, October 2024.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final, TypeAlias, get_args

from msgspec import Struct

import callwright
from callwright.gateway.endpoints.conversations import NewConversation, NewItems, NewMetadata
from callwright.gateway.openapi.schemas import JsonSchema, reference, schemas
from callwright.gateway.request_context import Api
from callwright.wire.anthropic.errors import AnthropicErrorResponse
from callwright.wire.anthropic.event_types import MessageStreamEvent
from callwright.wire.anthropic.types import MessagesRequest, MessagesResponse, TokenCount
from callwright.wire.chat.types import ChatCompletion, ChatCompletionChunk, ChatRequestBody
from callwright.wire.errors import ErrorResponse
from callwright.wire.handed import (
    CompletionRequestBody,
    EmbeddingsRequestBody,
    RerankRequestBody,
    ScoreRequestBody,
)
from callwright.wire.responses.event_types import ResponseStreamEvent
from callwright.wire.responses.request import ResponsesRequest
from callwright.wire.responses.types import (
    CompactedResponse,
    Conversation,
    DeletedObject,
    InputTokens,
    Item,
    ItemList,
    Response,
)
from callwright.wire.server import Health, ModelCard, ModelList

# Method, path and handler of a route.
Endpoint: TypeAlias = tuple[str, str, Callable[..., Any]]

_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream"
_TEXT: Final[JsonSchema] = {"type": "string"}
_SCHEME: Final = "key"
_OVERLOADED: Final = 529  # is Anthropic's own
_ID: Final = {"id": "$response.body#/id"}
_ITEM: Final = {"id": "$request.path.id", "item": "$response.body#/first_id"}
_HEADERS: Final = {"x-request-id": {"description": "By which the log knows the request.", "schema": _TEXT}}
_PAGE: Final[Mapping[str, JsonSchema]] = {
    "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 20},
    "order": {"enum": ["asc", "desc"], "default": "desc"},
    "after": _TEXT,
}
_REPLAY: Final[Mapping[str, JsonSchema]] = {
    "stream": {"enum": ["true", "false"], "default": "false"},
    "starting_after": {"type": "integer", "minimum": 0},
}
_DESCRIPTION: Final = (
    "OpenAI's and Anthropic's API over the models of this gateway. A request that fits its schema may still be refused "
    "for what no schema says. `/v1/responses` is also served over WebSocket."
)

# Statuses of errors, by kind of endpoint.
_READS: Final = (400, 413)
_FINDS: Final = (404,)
_ASKS: Final = (404, 502, 504)  # a model
_CONNECTS: Final = (424,)  # to MCP servers


class _Told(Struct, frozen=True):
    """Facts of an endpoint that have no other source. `answer`: its type, or its media types. `gives`: the places in
    the answer of parameters for other endpoints. `streams`: the types of its events. `is_open`: it needs no key, and
    refuses no client. `api`: the API whose error format it uses.
    """

    answer: type | tuple[str, ...]
    body: type | None = None
    errors: tuple[int, ...] = ()
    query: Mapping[str, JsonSchema] = {}
    gives: Mapping[str, str] = {}
    streams: tuple[type, ...] = ()
    may_be_empty: bool = False
    is_open: bool = False
    api: Api = "openai"


_TOLD: Final[Mapping[str, _Told]] = {
    "POST /v1/chat/completions": _Told(
        ChatCompletion, ChatRequestBody, (*_READS, *_ASKS, *_CONNECTS), streams=(ChatCompletionChunk, ErrorResponse)
    ),
    "POST /v1/completions": _Told((_JSON, _EVENTS), CompletionRequestBody, (*_READS, *_ASKS)),
    "POST /v1/embeddings": _Told((_JSON,), EmbeddingsRequestBody, (*_READS, *_ASKS)),
    **dict.fromkeys(
        ("POST /v1/rerank", "POST /rerank", "POST /v2/rerank"), _Told((_JSON,), RerankRequestBody, (*_READS, *_ASKS))
    ),
    "POST /v1/score": _Told((_JSON,), ScoreRequestBody, (*_READS, *_ASKS)),
    "POST /v1/messages": _Told(
        MessagesResponse,
        MessagesRequest,
        (*_READS, 404, 500, 504, 529),
        streams=get_args(MessageStreamEvent),
        api="anthropic",
    ),
    "POST /v1/messages/count_tokens": _Told(TokenCount, MessagesRequest, (*_READS, *_FINDS), api="anthropic"),
    "POST /v1/responses": _Told(
        Response,
        ResponsesRequest,
        (*_READS, *_ASKS, *_CONNECTS),
        gives=_ID,
        streams=(ResponseStreamEvent,),
    ),
    "POST /v1/responses/compact": _Told(CompactedResponse, ResponsesRequest, (*_READS, *_ASKS, *_CONNECTS)),
    "POST /v1/responses/input_tokens": _Told(InputTokens, ResponsesRequest, (*_READS, *_FINDS, *_CONNECTS)),
    "GET /v1/responses/{id}": _Told(Response, errors=(400, *_FINDS), query=_REPLAY, streams=(ResponseStreamEvent,)),
    "DELETE /v1/responses/{id}": _Told(DeletedObject, errors=_FINDS),
    "GET /v1/responses/{id}/input_items": _Told(ItemList, errors=(400, *_FINDS), query=_PAGE),
    "POST /v1/responses/{id}/cancel": _Told(Response, errors=(400, *_FINDS)),
    "POST /v1/conversations": _Told(Conversation, NewConversation, (*_READS, *_FINDS), gives=_ID, may_be_empty=True),
    "GET /v1/conversations/{id}": _Told(Conversation, errors=_FINDS),
    "POST /v1/conversations/{id}": _Told(Conversation, NewMetadata, (*_READS, *_FINDS)),
    "DELETE /v1/conversations/{id}": _Told(DeletedObject, errors=_FINDS),
    "GET /v1/conversations/{id}/items": _Told(ItemList, errors=(400, *_FINDS), query=_PAGE),
    "POST /v1/conversations/{id}/items": _Told(ItemList, NewItems, (*_READS, *_FINDS), gives=_ITEM),
    "GET /v1/conversations/{id}/items/{item}": _Told(Item, errors=_FINDS),
    "DELETE /v1/conversations/{id}/items/{item}": _Told(Conversation, errors=_FINDS),
    "GET /v1/models": _Told(ModelList, errors=(502, 504)),
    "GET /v1/models/{name}": _Told(ModelCard, errors=_FINDS),
    "GET /healthz": _Told(Health, is_open=True),
    "GET /readyz": _Told(Health, is_open=True),
    "GET /metrics": _Told(("text/plain", "application/openmetrics-text")),
    "GET /openapi.json": _Told((_JSON,)),
}


def document(endpoints: Iterable[Endpoint], *, has_keys: bool, elsewhere: str) -> JsonSchema:
    """The document of these endpoints. `has_keys`: clients need one; `elsewhere`: the path below which the same routes
    are served in another dialect.
    """
    routes = [(method, path.replace(":path", ""), handler) for method, path, handler in endpoints]
    paths: dict[str, JsonSchema] = {}
    for method, path, handler in routes:
        told = _TOLD[f"{method} {path.removeprefix(elsewhere)}"]
        operation = {
            "operationId": _operation(method, path),
            "summary": (handler.__doc__ or "").partition("\n")[0],
            **_describe_request(path, told),
            "responses": _answers(path, told, routes, has_keys=has_keys),
        }
        if has_keys and told.is_open:
            operation["security"] = []
        paths.setdefault(path, {})[method.lower()] = operation
    return {
        "openapi": "3.1.1",
        "info": {"title": "Callwright", "version": callwright.__version__, "description": _DESCRIPTION},
        "paths": paths,
        "components": {
            "schemas": schemas(),
            **({"securitySchemes": {_SCHEME: {"type": "http", "scheme": "bearer"}}} if has_keys else {}),
        },
        **({"security": [{_SCHEME: []}]} if has_keys else {}),
    }


def _operation(method: str, path: str) -> str:
    return re.sub(r"\W+", "_", f"{method.lower()} {path}").strip("_")


def _named_in(path: str) -> list[str]:
    """The names of a path's parameters."""
    return re.findall(r"{(\w+)}", path)


def _describe_request(path: str, told: _Told) -> JsonSchema:
    """The parameters and the body of a request."""
    asked: JsonSchema = {}
    parameters = [{"name": name, "in": "path", "required": True, "schema": _TEXT} for name in _named_in(path)]
    parameters += [{"name": name, "in": "query", "schema": schema} for name, schema in told.query.items()]
    if parameters:
        asked["parameters"] = parameters
    if told.body is not None:
        asked["requestBody"] = {
            "required": not told.may_be_empty,
            "content": {_JSON: {"schema": reference(told.body)}},
        }
    return asked


def _answers(path: str, told: _Told, routes: Iterable[Endpoint], *, has_keys: bool) -> JsonSchema:
    """The answers, by status."""
    if isinstance(told.answer, tuple):
        content: JsonSchema = {kind: {"schema": _SCHEMAS.get(kind, _TEXT)} for kind in told.answer}
    else:
        content = {_JSON: {"schema": reference(told.answer)}}
    if told.streams:
        content[_EVENTS] = {"schema": _event({"anyOf": [reference(type_) for type_ in told.streams]})}
    good: JsonSchema = {"description": "The requested object.", "headers": _HEADERS, "content": content}
    if told.gives:
        good["links"] = _links(path, told.gives, routes)
    if told.is_open:
        return {"200": good, "503": {**good, "description": "The gateway is ending."}}
    ending = 529 if told.api == "anthropic" else 503
    refusals = {*told.errors, 401 if has_keys else 403, 429, 500, ending}
    form = AnthropicErrorResponse if told.api == "anthropic" else ErrorResponse
    return {"200": good, **{str(status): _error(status, form) for status in sorted(refusals)}}


def _event(schema: JsonSchema) -> JsonSchema:
    """An event whose data has this schema. Before OpenAPI 3.2 the schema of an event stream is that of one."""
    data = {**_TEXT, "contentMediaType": _JSON, "contentSchema": schema}
    return {
        "type": "object",
        "description": "If the API has it, `[DONE]` follows the last event.",
        "properties": {"event": _TEXT, "data": {"anyOf": [{"const": "[DONE]"}, data]}},
        "required": ["data"],
    }


# Schemas of answers given by media type; a model server's JSON is not known.
_SCHEMAS: Final[Mapping[str, JsonSchema]] = {_JSON: {}, _EVENTS: _event({})}


def _error(status: int, form: type) -> JsonSchema:
    content = {_JSON: {"schema": reference(form)}}
    phrase = "Overloaded" if status == _OVERLOADED else HTTPStatus(status).phrase
    return {"description": phrase, "headers": _HEADERS, "content": content}


def _links(path: str, gives: Mapping[str, str], routes: Iterable[Endpoint]) -> JsonSchema:
    """The routes below a path that are asked with what its answer gives."""
    below = [
        _operation(method, other)
        for method, other, _ in routes
        if other.startswith(path) and _named_in(other) == list(gives)
    ]
    return {name: {"operationId": name, "parameters": dict(gives)} for name in below}
