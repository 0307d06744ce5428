"""The queries of the store: each function is one transaction, run on the given connection.

Plain SQL functions, independent of the event loop, of files and of the database driver.

All data has an owner, and each function sees only the data of one owner.

Concurrent writes: adding a response takes a shared lock, erasing an exclusive one, so that no response can gain a child
while it is found to have none. Changes to a conversation lock its row.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Text,
    and_,
    bindparam,
    delete,
    func,
    insert,
    literal,
    or_,
    select,
    update,
)

from callwright.database.makers import Maker
from callwright.database.tables import (
    CONVERSATION_ITEMS,
    CONVERSATIONS,
    ITEMS,
    MAKERS,
    RESPONSES,
    as_kept,
    lock,
    now,
)
from callwright.database.transactions import StoreError
from callwright.tolerant_json.codec import encode

# The final values of `status` in the body of a response.
ENDED: Final = ("completed", "incomplete", "failed", "cancelled")
_CHAINS = "cw-chain"
_MAKERS = "cw-maker"
_ITEM_LIST = msgspec.json.Decoder(list[dict[str, Any]])
_OBJECT = msgspec.json.Decoder(dict[str, Any])
# Parameters are ids in their stored form.
_ADD_TO_INDEX: Final = insert(ITEMS).values(
    item_id=bindparam("item", type_=Text), response_id=bindparam("response", type_=Text)
)


class StoredResponse(msgspec.Struct, frozen=True):
    """A response and its input.

    `created_at` is in seconds since the epoch. `body` is the response object without its output. `input` are the items
    of its own request, without the history and with references resolved; `parent` is its previous_response_id.
    """

    id: str
    created_at: int
    body: Mapping[str, Any]
    input: tuple[Mapping[str, Any], ...]
    output: tuple[Mapping[str, Any], ...]
    parent: str | None = None
    conversation: str | None = None


class StoredConversation(msgspec.Struct, frozen=True):
    """A conversation without its items. `created_at` is in seconds since the epoch."""

    id: str
    created_at: int
    metadata: Mapping[str, Any] = {}


# --- responses ---


def put_response(connection: Connection, response: StoredResponse, owner: str, maker: Maker | None = None) -> bool:
    """Add a response, or replace the body and the items of one. True when it is stored now.

    A deleted one is not brought back. `maker` makes it, if it is not finished.
    """
    lock(connection, _CHAINS, shared=True)
    named = [response.id] if response.parent is None else [response.id, response.parent]
    ours = RESPONSES.c.owner == owner
    found = connection.execute(select(RESPONSES.c.id, RESPONSES.c.hidden).where(RESPONSES.c.id.in_(named), ours))
    hidden = {row.id: row.hidden for row in found}
    under_way = maker if response.body.get("status") not in ENDED else None
    content = {
        "body": encode(response.body),
        "input": encode(response.input),
        "output": encode(response.output),
        "maker": under_way and under_way.id,
    }
    if under_way is not None:
        heard_of(connection, under_way)
    if hidden.get(response.id):
        return False
    if response.id in hidden:
        connection.execute(update(RESPONSES).where(RESPONSES.c.id == response.id).values(content))
        connection.execute(delete(ITEMS).where(ITEMS.c.response_id == response.id))
    elif response.parent is not None and response.parent not in hidden:
        raise StoreError(
            f"Response {response.id} cannot be stored: it continues from {response.parent}, which is gone."
        )
    else:
        head = {
            "id": response.id,
            "owner": owner,
            "parent_id": response.parent,
            "conversation_id": response.conversation,
            "created_at": response.created_at,
            "hidden": False,
        }
        connection.execute(insert(RESPONSES), head | content)
    items = (*response.input, *response.output)
    _index(connection, response.id, [id_ for item in items if isinstance(id_ := item.get("id"), str)])
    if response.conversation is not None:
        if response.id in hidden:
            its_own = CONVERSATION_ITEMS.c.response_id == response.id
            inside = CONVERSATION_ITEMS.c.conversation_id == response.conversation
            connection.execute(delete(CONVERSATION_ITEMS).where(inside, its_own))
        add_items(connection, response.conversation, items, owner, response.id)
    return True


def _index(connection: Connection, response_id: str, ids: Sequence[str]) -> None:
    """Index the items of a response. There may be many: the ids are inserted in stored form."""
    (holder,) = as_kept([response_id])
    rows = [{"item": id_, "response": holder} for id_ in as_kept(ids)]
    if rows:
        connection.execute(_ADD_TO_INDEX, rows)


def replace_response(connection: Connection, response: StoredResponse, owner: str, maker: Maker | None = None) -> bool:
    """`put_response` for an existing response whose `status` is not final. True if it was stored."""
    lock(connection, _CHAINS, shared=True)
    found = connection.execute(select(RESPONSES.c.body).where(_visible(response.id, owner)).with_for_update()).first()
    if found is None or _OBJECT.decode(found.body).get("status") in ENDED:
        return False
    return put_response(connection, response, owner, maker)


def ping(connection: Connection) -> None:
    """Ask the database for nothing."""
    connection.execute(select(1))


def heard_of(connection: Connection, maker: Maker) -> None:
    """Note that a process lives, now."""
    known = update(MAKERS).where(MAKERS.c.id == maker.id).values(seen_at=now(connection))
    if connection.execute(known).rowcount:
        return
    lock(connection, _MAKERS)  # the process may begin several responses concurrently
    if not connection.execute(known).rowcount:
        connection.execute(insert(MAKERS), {**msgspec.structs.asdict(maker), "seen_at": now(connection)})


def get_makers(connection: Connection) -> list[tuple[Maker, float]]:
    """The processes that may make something, and for how long each was silent, in seconds."""
    at = now(connection)
    rows = connection.execute(select(MAKERS)).all()
    return [(Maker(row.id, row.place, row.pid, row.started), at - row.seen_at) for row in rows]


def end_left(connection: Connection, makers: Sequence[str], error: Mapping[str, Any]) -> int:
    """End as failed what these processes have not finished, and forget them. Answers how many responses that were."""
    lock(connection, _CHAINS, shared=True)
    left = select(RESPONSES.c.id, RESPONSES.c.body).where(RESPONSES.c.maker.in_(makers)).with_for_update()
    rows = connection.execute(left).all()
    for row in rows:
        body = {**_OBJECT.decode(row.body), "status": "failed", "error": error}
        ended = update(RESPONSES).where(RESPONSES.c.id == row.id)
        connection.execute(ended.values(body=encode(body), maker=None))
    connection.execute(delete(MAKERS).where(MAKERS.c.id.in_(makers)))
    return len(rows)


def get_status(connection: Connection, id_: str, owner: str) -> str | None:
    """The `status` in the body of a response; None if it is unknown or deleted."""
    found = connection.execute(select(RESPONSES.c.body).where(_visible(id_, owner))).first()
    return None if found is None else _OBJECT.decode(found.body).get("status")


def get_response(connection: Connection, id_: str, owner: str) -> StoredResponse | None:
    """The response, unless it is unknown or deleted."""
    row = connection.execute(select(RESPONSES).where(_visible(id_, owner))).first()
    if row is None:
        return None
    return StoredResponse(
        id=id_,
        created_at=row.created_at,
        body=_OBJECT.decode(row.body),
        input=tuple(_ITEM_LIST.decode(row.input)),
        output=tuple(_ITEM_LIST.decode(row.output)),
        parent=row.parent_id,
        conversation=row.conversation_id,
    )


def _visible(id_: str, owner: str) -> ColumnElement[bool]:
    return and_(RESPONSES.c.id == id_, RESPONSES.c.owner == owner, ~RESPONSES.c.hidden)


def _history() -> Select[tuple[bytes, bytes]]:
    start = select(RESPONSES.c.id, RESPONSES.c.parent_id, literal(0).label("depth"))
    ours = RESPONSES.c.owner == bindparam("owner")
    chain = start.where(RESPONSES.c.id == bindparam("id"), ours, ~RESPONSES.c.hidden).cte("chain", recursive=True)
    above = select(RESPONSES.c.id, RESPONSES.c.parent_id, chain.c.depth + 1)
    chain = chain.union_all(above.join(chain, RESPONSES.c.id == chain.c.parent_id))
    own = select(RESPONSES.c.input, RESPONSES.c.output)
    return own.join(chain, RESPONSES.c.id == chain.c.id).order_by(chain.c.depth.desc())


_HISTORY = _history()


def get_history(connection: Connection, id_: str, owner: str) -> list[dict[str, Any]] | None:
    """The items of the response and of all that it continues from, oldest first."""
    rows = connection.execute(_HISTORY, {"id": id_, "owner": owner}).all()
    if not rows:
        return None
    return [item for row in rows for text in row for item in _ITEM_LIST.decode(text)]


def get_item(connection: Connection, id_: str, owner: str) -> dict[str, Any] | None:
    """The item of this id in the latest response that holds one, else in a conversation."""
    holder = select(RESPONSES.c.input, RESPONSES.c.output).join(ITEMS, ITEMS.c.response_id == RESPONSES.c.id)
    ours = holder.where(ITEMS.c.item_id == id_, RESPONSES.c.owner == owner, ~RESPONSES.c.hidden)
    for row in connection.execute(ours.order_by(ITEMS.c.number.desc()).limit(1)):
        items = [item for text in row for item in _ITEM_LIST.decode(text) if item.get("id") == id_]
        return items[-1] if items else None
    inside = select(CONVERSATION_ITEMS.c.body).join(CONVERSATIONS)
    kept = inside.where(CONVERSATION_ITEMS.c.item_id == id_, CONVERSATIONS.c.owner == owner)
    for row in connection.execute(kept.order_by(CONVERSATION_ITEMS.c.position.desc()).limit(1)):
        return _OBJECT.decode(row.body)
    return None


# --- erasing responses ---


def delete_response(connection: Connection, id_: str, owner: str) -> bool:
    """Hide a response, then erase it if nothing continues from it, with the hidden ancestors that only it needed.

    Data that its children do not need is erased immediately.
    """
    lock(connection, _CHAINS)
    visible = update(RESPONSES).where(_visible(id_, owner))
    if connection.execute(visible.values(hidden=True, body=encode({}))).rowcount == 0:
        return False
    leaf = select(RESPONSES.c.id, RESPONSES.c.parent_id).where(RESPONSES.c.id == id_, ~_continued())
    _erase(connection, leaf, RESPONSES.c.hidden)
    return True


def erase_old(connection: Connection, before: int, limit: int) -> int:
    """Erase responses created before a time that nothing continues from, with their ancestors. Returns their number.

    `limit`: how many to begin with; to erase all, call it until it returns 0.
    """
    lock(connection, _CHAINS)
    old = RESPONSES.c.created_at < before
    leaves = select(RESPONSES.c.id, RESPONSES.c.parent_id).where(old, ~_continued())
    some = leaves.order_by(RESPONSES.c.created_at).limit(limit).subquery()
    return _erase(connection, select(some), or_(RESPONSES.c.hidden, old))


def _continued(but_by: ColumnElement[str] | None = None) -> ColumnElement[bool]:
    """Whether a response of the query around this is continued from (by another than this one)."""
    child = RESPONSES.alias("child")
    by = child.c.parent_id == RESPONSES.c.id
    return select(child.c.id).where(by if but_by is None else by & (child.c.id != but_by)).exists()


def _erase(connection: Connection, leaves: Select[Any], unwanted: ColumnElement[bool]) -> int:
    """Erase these responses and, up from each, the unwanted ones that nothing else continues from."""
    run = leaves.cte("run", recursive=True, nesting=True)
    above = select(RESPONSES.c.id, RESPONSES.c.parent_id).join(run, RESPONSES.c.id == run.c.parent_id)
    run = run.union_all(above.where(unwanted, ~_continued(but_by=run.c.id)))
    return connection.execute(delete(RESPONSES).where(RESPONSES.c.id.in_(select(run.c.id)))).rowcount


# --- conversations ---


def create_conversation(
    connection: Connection, conversation: StoredConversation, items: Iterable[Mapping[str, Any]], owner: str
) -> None:
    """Add a conversation that begins with these items."""
    row = {
        "id": conversation.id,
        "owner": owner,
        "created_at": conversation.created_at,
        "metadata": encode(conversation.metadata),
    }
    connection.execute(insert(CONVERSATIONS).values(row))
    add_items(connection, conversation.id, tuple(items), owner)


def _conversation(id_: str, owner: str) -> ColumnElement[bool]:
    return and_(CONVERSATIONS.c.id == id_, CONVERSATIONS.c.owner == owner)


def get_conversation(connection: Connection, id_: str, owner: str) -> StoredConversation | None:
    """The conversation, unless it is unknown or deleted."""
    row = connection.execute(select(CONVERSATIONS).where(_conversation(id_, owner))).first()
    if row is None:
        return None
    return StoredConversation(id=id_, created_at=row.created_at, metadata=_OBJECT.decode(row.metadata))


def update_conversation(connection: Connection, id_: str, metadata: Mapping[str, Any], owner: str) -> bool:
    """Replace the metadata. False when there is no such conversation."""
    known = update(CONVERSATIONS).where(_conversation(id_, owner))
    return connection.execute(known.values(metadata=encode(metadata))).rowcount > 0


def delete_conversation(connection: Connection, id_: str, owner: str) -> bool:
    """Erase a conversation and its items; its responses stay. False when there is no such conversation."""
    return connection.execute(delete(CONVERSATIONS).where(_conversation(id_, owner))).rowcount > 0


def get_conversation_items(connection: Connection, id_: str, owner: str) -> list[dict[str, Any]] | None:
    """The items, oldest first; None when there is no such conversation."""
    both = CONVERSATIONS.outerjoin(CONVERSATION_ITEMS)
    query = select(CONVERSATION_ITEMS.c.body).select_from(both).where(_conversation(id_, owner))
    bodies = connection.scalars(query.order_by(CONVERSATION_ITEMS.c.position)).all()
    return [_OBJECT.decode(body) for body in bodies if body is not None] if bodies else None


def add_items(
    connection: Connection,
    id_: str,
    items: Sequence[Mapping[str, Any]],
    owner: str,
    response_id: str | None = None,
) -> bool:
    """Append items, none of another writer between them. False when there is no such conversation."""
    row = select(CONVERSATIONS.c.id).where(_conversation(id_, owner))
    if connection.scalar(row.with_for_update()) is None:
        return False
    ours = CONVERSATION_ITEMS.c.conversation_id == id_
    last = connection.scalar(select(func.max(CONVERSATION_ITEMS.c.position)).where(ours))
    rows = [
        {
            "conversation_id": id_,
            "position": position,
            "item_id": own if isinstance(own := item.get("id"), str) else None,
            "response_id": response_id,
            "body": encode(item),
        }
        for position, item in enumerate(items, 0 if last is None else last + 1)
    ]
    if rows:
        connection.execute(insert(CONVERSATION_ITEMS), rows)
    return True


def delete_item(connection: Connection, conversation_id: str, item_id: str, owner: str) -> bool:
    """Erase the item of this id in a conversation. False when it holds none."""
    if get_conversation(connection, conversation_id, owner) is None:
        return False
    ours = CONVERSATION_ITEMS.c.conversation_id == conversation_id
    erased = connection.execute(delete(CONVERSATION_ITEMS).where(ours, CONVERSATION_ITEMS.c.item_id == item_id))
    return erased.rowcount > 0
