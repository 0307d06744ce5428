"""What the store does, on each kind of database."""

from pathlib import Path
from typing import Any

import pytest

from callwright.gateway.store import store as store_module
from callwright.gateway.store.store import Store, StoredConversation, StoreError
from tests.support.examples import share
from tests.support.store_helpers import ids, is_erased, message, put_chain, response, run, sql, turns, with_store

pytest_plugins = ["tests.support.databases"]

_DAY_S = 86_400


# --- responses ---


@with_store
async def test_what_was_put_is_got(store: Store) -> None:
    given = response("a", body={"id": "a", "metadata": {"k": "v"}}, conversation="conv_gone")
    await store.put(given)
    assert await store.get("a") == given
    child = response("b", "a", input=(), output=())
    await store.put(child)
    assert await store.get("b") == child


@with_store
async def test_an_unknown_id_is_none(store: Store) -> None:
    assert await store.get("nope") is None
    assert await store.history("nope") is None
    assert await store.item("nope") is None
    assert await store.delete("nope") is False
    assert await store.replace(response("nope")) is False
    assert await store.get("nope") is None


@with_store
async def test_a_history_is_the_chain_oldest_first(store: Store) -> None:
    await put_chain(store, "a", "b", "c")
    await store.put(response("d", "c", input=(message("x"), message("y")), output=()))
    assert ids(await store.history("a")) == turns("a")
    assert ids(await store.history("c")) == turns("a", "b", "c")
    assert ids(await store.history("d")) == [*turns("a", "b", "c"), "x", "y"]


@with_store
async def test_forks_share_what_they_have_in_common_and_nothing_else(store: Store) -> None:
    await put_chain(store, "a", "b")
    await put_chain(store, "c1", "d1", parent="b")
    await put_chain(store, "c2", parent="b")
    await put_chain(store, "other")
    assert ids(await store.history("d1")) == turns("a", "b", "c1", "d1")
    assert ids(await store.history("c2")) == turns("a", "b", "c2")
    assert ids(await store.history("other")) == turns("other")


def test_a_long_chain_is_read_whole(url: str) -> None:
    names = [f"{number:04}" for number in range(share(1_000))]

    async def story(store: Store) -> None:
        await put_chain(store, *names)
        assert ids(await store.history(names[-1])) == turns(*names)
        assert await store.delete(names[-1])
        assert ids(await store.history(names[-2])) == turns(*names[:-1])

    run(url, story)


def test_what_a_response_takes_does_not_grow_with_its_chain(kept_url: str) -> None:
    names = [f"{number:04}" for number in range(300)]
    run(kept_url, lambda store: put_chain(store, *names[:100]))
    bytes_at_100 = database_bytes(kept_url)
    run(kept_url, lambda store: put_chain(store, *names[100:], parent=names[99]))
    assert database_bytes(kept_url) / 300 <= bytes_at_100 / 100
    rows = sql(kept_url, "SELECT id, length(body) + length(input) + length(output) FROM responses ORDER BY id")
    assert [id_ for id_, _ in rows] == names
    assert len({size for _, size in rows}) == 1


def database_bytes(url: str) -> int:
    if url.startswith("sqlite"):
        return Path(url.removeprefix("sqlite:///")).stat().st_size
    rows = sql(url, "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relname IN ('responses', 'items')")
    return int(rows[0][0])


VALUES: list[Any] = [
    0,
    -1,
    2**53 + 1,
    2**63 - 1,
    2**64,
    -(10**40),
    0.1,
    -0.0,
    1.0,
    1e300,
    5e-324,
    1 / 3,
    True,
    None,
    "",
    "\x00\x1f\x7f\u2028 \ud55c\uae00 \U0001f33b \u05d0 e\u0301",
    'quo"te \\ back',
    [],
    {},
    {"": [[[]]], "1": 1},
]


@with_store
async def test_values_come_back_as_they_were(store: Store) -> None:
    await store.put(response("a", body={"values": VALUES}, input=({"values": VALUES},)))
    await store.create_conversation(StoredConversation(id="c", created_at=1, metadata={"values": VALUES}), [])
    await store.add_items("c", [{"values": VALUES}])
    got = await store.get("a")
    conversation = await store.conversation("c")
    history = await store.history("a")
    items = await store.conversation_items("c")
    assert got is not None
    assert conversation is not None
    assert history
    assert items
    for found in (got.body, got.input[0], conversation.metadata, history[0], items[0]):
        assert repr(found["values"]) == repr(VALUES)


@with_store
async def test_big_items_come_back_whole(store: Store) -> None:
    text = "ab\u00e9\n" * 250_000
    await store.put(response("a", output=(message("big", text),)))
    await store.put(response("b", "a"))
    history = await store.history("b")
    assert history is not None
    assert history[1]["content"] == text
    assert (await store.item("big") or {})["content"] == text


@with_store
async def test_half_a_surrogate_pair_is_stored_as_a_replacement_character(store: Store) -> None:
    await store.put(response("a", output=(message("m", "x\ud83c"),)))
    assert (await store.item("m") or {})["content"] == "x\ufffd"


# --- putting again ---


@with_store
async def test_a_response_that_is_put_again_has_new_content_in_its_old_place(store: Store) -> None:
    await put_chain(store, "a", "b", "c")
    new = response("b", "a", body={"status": "failed"}, input=(message("in_2"),), output=(message("out_2"),))
    await store.put(new)
    assert await store.get("b") == new
    assert ids(await store.history("c")) == [*turns("a"), "in_2", "out_2", *turns("c")]
    assert await store.item("out_b") is None
    assert ids([await store.item("out_2") or {}]) == ["out_2"]


@with_store
async def test_its_time_and_what_it_continues_from_stay(store: Store) -> None:
    await put_chain(store, "a", "b")
    await store.put(response("b", None, at=5, output=()))
    got = await store.get("b")
    assert got is not None
    assert (got.created_at, got.parent, got.output) == (1_000, "a", ())


@with_store
async def test_a_response_that_was_deleted_is_not_brought_back(store: Store) -> None:
    await put_chain(store, "a", "b")
    await put_chain(store, "alone")
    assert await store.delete("a")
    assert await store.delete("alone")
    await store.put(response("a", output=()))
    assert await store.replace(response("a", output=())) is False
    assert await store.replace(response("alone")) is False
    assert await store.get("a") is None
    assert await store.get("alone") is None
    assert ids(await store.history("b")) == turns("a", "b")


@with_store
async def test_a_background_answer_is_replaced_where_it_is_still_there(store: Store) -> None:
    await store.put(response("a", body={"status": "queued"}, output=()))
    assert await store.replace(response("a")) is True
    assert await store.get("a") == response("a")


# --- deleting ---


@with_store
async def test_a_deleted_response_is_gone_but_what_continues_from_it_keeps_its_items(store: Store) -> None:
    await put_chain(store, "a", "b", "c")
    assert await store.delete("b") is True
    assert await store.delete("b") is False
    assert await store.get("b") is None
    assert await store.history("b") is None
    assert await store.item("out_b") is None
    assert ids(await store.history("a")) == turns("a")
    assert ids(await store.history("c")) == turns("a", "b", "c")


@with_store
async def test_an_answer_that_was_under_way_when_its_parent_was_hidden_keeps_its_history(store: Store) -> None:
    await put_chain(store, "a", "b")
    await store.delete("a")
    await put_chain(store, "c", parent="a")
    assert ids(await store.history("c")) == turns("a", "c")


@with_store
async def test_an_answer_whose_parent_is_gone_is_refused(store: Store) -> None:
    await put_chain(store, "a")
    await store.delete("a")
    with pytest.raises(StoreError, match=r"^Response b cannot be stored: it continues from a, which is gone\.$"):
        await store.put(response("b", "a"))
    with pytest.raises(StoreError, match="continues from itself"):
        await store.put(response("itself", "itself"))
    assert await store.get("b") is None
    assert await store.get("itself") is None


@with_store
async def test_the_last_that_continues_takes_the_hidden_ones_with_it(store: Store) -> None:
    await put_chain(store, "root", "a", "b", "c")
    await store.delete("a")
    await store.delete("b")
    assert await store.delete("c")
    assert await is_erased(store, "c")
    assert await is_erased(store, "b")
    assert await is_erased(store, "a")
    assert ids(await store.history("root")) == turns("root")


@with_store
async def test_a_hidden_one_stays_for_the_other_fork(store: Store) -> None:
    await put_chain(store, "a", "b")
    await put_chain(store, "c1", parent="b")
    await put_chain(store, "c2", parent="b")
    for name in ("a", "b", "c1"):
        await store.delete(name)
    assert await is_erased(store, "c1")
    assert ids(await store.history("c2")) == turns("a", "b", "c2")
    await store.delete("c2")
    assert await is_erased(store, "b")
    assert await is_erased(store, "a")


def test_nothing_is_left_of_what_was_deleted(kept_url: str) -> None:
    async def story(store: Store) -> None:
        await put_chain(store, "a", "b", "c")
        await store.delete("b")
        assert sql(kept_url, "SELECT body FROM responses WHERE id = 'b'") == [(b"{}",)]
        await store.delete("c")
        await store.delete("a")

    run(kept_url, story)
    assert sql(kept_url, "SELECT id FROM responses") == []
    assert sql(kept_url, "SELECT item_id FROM items") == []


# --- retention ---

NOW = 100 * _DAY_S
OLD = NOW - 11 * _DAY_S
YOUNG = NOW - 9 * _DAY_S


def test_what_is_old_goes_and_what_a_younger_one_continues_from_stays(url: str) -> None:
    async def story(store: Store) -> None:
        await put_chain(store, "a", "b", at=OLD)
        await put_chain(store, "c", parent="b", at=YOUNG)
        await put_chain(store, "fork", "fork2", parent="a", at=OLD)
        await put_chain(store, "x", "y", "z", at=OLD)
        await put_chain(store, "x2", parent="x", at=OLD)
        await put_chain(store, "border", at=NOW - 10 * _DAY_S)
        assert await store.prune(NOW) == 6
        for name in ("fork2", "fork", "z", "y", "x", "x2"):
            assert await store.get(name) is None
        assert ids(await store.history("c")) == turns("a", "b", "c")
        assert await store.get("border") is not None
        assert await store.prune(NOW) == 0
        assert await store.prune(NOW + 2 * _DAY_S) == 4
        assert await store.history("c") is None

    run(url, story, retention_days=10)


def test_hidden_ones_go_with_what_they_were_kept_for(url: str) -> None:
    async def story(store: Store) -> None:
        await put_chain(store, "a", at=OLD)
        await put_chain(store, "b", parent="a", at=YOUNG)
        await put_chain(store, "c", parent="b", at=OLD)  # another machine's clock
        await store.delete("a")
        await store.delete("b")
        assert await store.prune(NOW - 5 * _DAY_S) == 0
        assert ids(await store.history("c")) == turns("a", "b", "c")
        assert await store.prune(NOW) == 3

    run(url, story, retention_days=10)


def test_a_prune_goes_on_until_nothing_old_is_left(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "_ERASED_AT_ONCE", 2)

    async def story(store: Store) -> None:
        for number in range(7):
            await put_chain(store, f"a{number}", f"b{number}", at=OLD + number)
        assert await store.prune(NOW) == 14

    run(url, story, retention_days=10)


@with_store
async def test_without_a_retention_nothing_is_old(store: Store) -> None:
    await put_chain(store, "a", at=0)
    assert await store.prune(10**10) == 0
    assert await store.get("a") is not None


# --- items ---


@with_store
async def test_an_item_is_found_by_its_id_the_latest_first(store: Store) -> None:
    await store.put(response("a", output=(message("m", "first"), message("n"))))
    await store.put(response("b", input=(message("m", "second"),), output=(message("m", "third"), {"type": "x"})))
    assert await store.item("m") == message("m", "third")
    assert await store.item("n") == message("n")
    assert await store.item("in_a") == message("in_a")
    await store.delete("b")
    assert await store.item("m") == message("m", "first")


@with_store
async def test_an_item_that_only_a_conversation_holds_is_found(store: Store) -> None:
    await store.create_conversation(StoredConversation(id="c", created_at=1), [message("m", "said")])
    await store.put(response("a", conversation="c"))
    assert await store.item("m") == message("m", "said")
    await store.delete("a")
    assert await store.item("out_a") == message("out_a")
    await store.delete_conversation("c")
    assert await store.item("m") is None
    assert await store.item("out_a") is None


@with_store
async def test_no_id_that_a_client_sends_breaks_the_store(store: Store) -> None:
    odd = ["", "a\x00b", "x" * 100_000, "x" * 99_999, "\U0001f33b", "'; DROP TABLE items; --", "%", "\u200f"]
    await store.put(response("a", input=(*(message(id_, repr(id_)) for id_ in odd), {"id": 7}, {"id": None})))
    for id_ in odd:
        assert await store.item(id_) == message(id_, repr(id_))
        assert await store.get(id_) is None
        assert await store.history(id_) is None
        assert await store.conversation(id_) is None
    assert await store.item("\ud83c") is None


# --- conversations ---


@with_store
async def test_a_conversation_keeps_its_items_in_order(store: Store) -> None:
    conversation = StoredConversation(id="c", created_at=7, metadata={"topic": "beds"})
    await store.create_conversation(conversation, [message("1"), message("2")])
    assert await store.conversation("c") == conversation
    await store.put(response("a", conversation="c"))
    assert await store.add_items("c", [message("3"), {"type": "no id"}]) is True
    items = await store.conversation_items("c")
    assert items == [message("1"), message("2"), message("in_a"), message("out_a"), message("3"), {"type": "no id"}]


@with_store
async def test_a_conversation_is_changed_and_deleted(store: Store) -> None:
    await store.create_conversation(StoredConversation(id="c", created_at=7, metadata={"a": "1"}), [])
    assert await store.conversation_items("c") == []
    assert await store.update_conversation("c", {"b": "2"}) is True
    assert await store.conversation("c") == StoredConversation(id="c", created_at=7, metadata={"b": "2"})
    await store.put(response("a", conversation="c"))
    assert await store.delete_conversation("c") is True
    assert await store.conversation("c") is None
    assert await store.conversation_items("c") is None
    assert ids(await store.history("a")) == turns("a")


@with_store
async def test_an_item_is_deleted_from_its_conversation_only(store: Store) -> None:
    await store.create_conversation(StoredConversation(id="c", created_at=1), [message("1"), message("2")])
    await store.create_conversation(StoredConversation(id="d", created_at=1), [message("1")])
    await store.put(response("a", conversation="c"))
    assert await store.delete_item("c", "1") is True
    assert await store.delete_item("c", "1") is False
    assert await store.delete_item("c", "out_a") is True
    await store.add_items("c", [message("3")])
    assert ids(await store.conversation_items("c")) == ["2", "in_a", "3"]
    assert ids(await store.conversation_items("d")) == ["1"]
    assert ids(await store.history("a")) == turns("a")


@with_store
async def test_nothing_is_done_to_an_unknown_conversation(store: Store) -> None:
    assert await store.update_conversation("c", {}) is False
    assert await store.delete_conversation("c") is False
    assert await store.conversation_items("c") is None
    assert await store.add_items("c", [message("1")]) is False
    assert await store.delete_item("c", "1") is False
    await store.put(response("a", conversation="c"))  # deleted while the answer was made
    assert await store.conversation("c") is None
    assert await store.get("a") == response("a", conversation="c")


@with_store
async def test_a_response_that_is_put_again_stands_once_in_its_conversation(store: Store) -> None:
    await store.create_conversation(StoredConversation(id="c", created_at=1), [message("1")])
    await store.put(response("a", conversation="c", output=()))
    await store.add_items("c", [message("2")])
    await store.put(response("a", conversation="c"))
    assert ids(await store.conversation_items("c")) == ["1", "2", *turns("a")]


@with_store
async def test_a_second_conversation_of_an_id_is_refused(store: Store) -> None:
    await store.create_conversation(StoredConversation(id="c", created_at=1), [message("1")])
    with pytest.raises(StoreError, match=r"(?i)unique"):
        await store.create_conversation(StoredConversation(id="c", created_at=2), [message("2")])
    assert ids(await store.conversation_items("c")) == ["1"]


# --- owners ---


def test_what_one_owner_has_is_not_there_for_another(url: str) -> None:
    owners = ["anna"]

    async def story(store: Store) -> None:
        await put_chain(store, "a", "b")
        await store.create_conversation(StoredConversation(id="c", created_at=1), [message("kept")])
        owners[0] = "ben"
        assert await store.get("a") is None
        assert await store.history("b") is None
        assert await store.item("in_a") is None
        assert await store.item("kept") is None
        assert await store.conversation("c") is None
        assert await store.conversation_items("c") is None
        assert not await store.update_conversation("c", {"mine": "now"})
        assert not await store.add_items("c", [message("x")])
        assert not await store.delete_item("c", "kept")
        assert not await store.delete_conversation("c")
        assert not await store.delete("b")
        assert not await store.replace(response("b"))
        for taken in (response("b"), response("d", "b")):
            with pytest.raises(StoreError):
                await store.put(taken)
        await store.put(response("d", conversation="c"))
        owners[0] = "anna"
        assert ids(await store.history("b")) == turns("a", "b")
        assert ids(await store.conversation_items("c")) == ["kept"]
        assert await store.get("d") is None

    run(url, story, owner=lambda: owners[0])
