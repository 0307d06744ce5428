"""Conversations: items that responses read and extend, stored under an id."""

import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from callwright.errors import RequestError
from callwright.gateway.config.config import ServerConfig
from callwright.gateway.endpoints.pagination import listed_item, page
from callwright.gateway.http import json_response, read_body
from callwright.gateway.responses.given_items import with_ids
from callwright.gateway.responses.service import new_id
from callwright.gateway.store.store import Store, StoredConversation
from callwright.openai_format.errors import from_validation
from callwright.openai_format.tool_catalog import ToolCatalog
from callwright.settings.bounds import Bounds
from callwright.wire.body import decoded
from callwright.wire.pass_rules import PassRules
from callwright.wire.responses.input_items import InputItemReader
from callwright.wire.responses.metadata import check_metadata
from callwright.wire.responses.types import Conversation, DeletedObject

_MAX_ITEMS = 20


class NewConversation(msgspec.Struct):
    """The body of a request to create a conversation."""

    items: Annotated[list[dict[str, Any]], msgspec.Meta(max_length=_MAX_ITEMS)] | None = None
    metadata: dict[str, Any] | None = None


class NewMetadata(msgspec.Struct):
    """What takes the place of a conversation's metadata."""

    metadata: dict[str, Any]


class NewItems(msgspec.Struct):
    """Items to append to a conversation."""

    items: Annotated[list[dict[str, Any]], msgspec.Meta(max_length=_MAX_ITEMS)]


class ConversationsEndpoint:
    """Answers requests about conversations. `store`: None if the gateway has no store. `passes`: the input
    that any model accepts.
    """

    def __init__(self, store: Store | None, server: ServerConfig, bounds: Bounds, passes: PassRules) -> None:
        self._given_store = store
        self._passes = passes
        self._bounds = bounds
        self._server = server

    async def create(self, request: Request) -> Response:
        """A new conversation."""
        given = await self._body(request, NewConversation, may_be_empty=True)
        conversation = StoredConversation(id=new_id("conv"), created_at=int(time.time()), metadata=given.metadata or {})
        await self._store.create_conversation(conversation, self._checked(given.items or ()))
        return json_response(_described(conversation))

    async def show(self, request: Request) -> Response:
        """A conversation, without its items."""
        return json_response(_described(await self._find(request)))

    async def update(self, request: Request) -> Response:
        """Give a conversation other metadata."""
        given = await self._body(request, NewMetadata)
        found = await self._find(request)
        await self._store.update_conversation(found.id, given.metadata)
        return json_response(_described(msgspec.structs.replace(found, metadata=given.metadata)))

    async def delete(self, request: Request) -> Response:
        """Forget a conversation and its items."""
        found = await self._find(request)
        await self._store.delete_conversation(found.id)
        return json_response(DeletedObject(id=found.id, object="conversation.deleted"))

    async def list_items(self, request: Request) -> Response:
        """The items of a conversation."""
        found = await self._find(request)
        return json_response(page(await self._items(found.id), request.query_params))

    async def add_items(self, request: Request) -> Response:
        """Append items to a conversation."""
        found = await self._find(request)
        items = self._checked((await self._body(request, NewItems)).items)
        await self._store.add_items(found.id, items)
        return json_response(page(items, {"order": "asc", "limit": "100"}))

    async def show_item(self, request: Request) -> Response:
        """One item of a conversation."""
        found = await self._find(request)
        return json_response(listed_item(await self._item(found.id, request)))

    async def delete_item(self, request: Request) -> Response:
        """Forget one item of a conversation."""
        found = await self._find(request)
        item = await self._item(found.id, request)
        await self._store.delete_item(found.id, item["id"])
        return json_response(_described(found))

    # --- parts ---

    @property
    def _store(self) -> Store:
        if self._given_store is None:
            raise RequestError("This gateway keeps no conversations: configure [store].", status=404)
        return self._given_store

    async def _body(self, request: Request, kind: type[Any], *, may_be_empty: bool = False) -> Any:
        body = await read_body(request, self._server.max_body_bytes)
        given = {} if may_be_empty and not body.strip() else decoded(body, self._bounds)
        try:
            read = msgspec.convert(given, kind)
        except msgspec.ValidationError as error:
            raise from_validation(error, given, {}) from error
        check_metadata(getattr(read, "metadata", None))
        return read

    def _checked(self, items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Items that a response can read, each with an id."""
        for number, item in enumerate(items):
            if item.get("type", "item_reference" if item.keys() == {"id"} else None) == "item_reference":
                raise RequestError(
                    f"Invalid 'items[{number}]': expected an item, got a reference to one. Send the item itself.",
                    param=f"items[{number}]",
                    code="invalid_value",
                )
        reader = InputItemReader(ToolCatalog())
        reader.read(items, "items")
        self._passes.items_passed([found.item for found in reader.found], flat=True)
        return [dict(item) for item in with_ids(items)]

    async def _find(self, request: Request) -> StoredConversation:
        id_ = request.path_params["id"]
        found = await self._store.conversation(id_)
        if found is None:
            raise RequestError(f"Conversation with id '{id_}' not found.", status=404)
        return found

    async def _items(self, id_: str) -> Sequence[Mapping[str, Any]]:
        return await self._store.conversation_items(id_) or ()

    async def _item(self, id_: str, request: Request) -> Mapping[str, Any]:
        wanted = request.path_params["item"]
        item = next((item for item in await self._items(id_) if item.get("id") == wanted), None)
        if item is None:
            raise RequestError(f"Item with id '{wanted}' not found in conversation '{id_}'.", status=404)
        return item


def _described(conversation: StoredConversation) -> Conversation:
    return Conversation(id=conversation.id, created_at=conversation.created_at, metadata=conversation.metadata)
