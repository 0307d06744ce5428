"""Searches in the history of a conversation with too many tools."""

from collections.abc import Sequence
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.calls.deferred_tools import DeferredTools
from callwright.calls.tool_index import ToolIndex
from callwright.calls.tool_search import SEARCH_TOOL
from callwright.conversation import (
    Call,
    CallOutput,
    Conversation,
    FunctionTool,
    Item,
    Message,
    NamedTool,
    Reasoning,
    TextPart,
)
from callwright.dialects.base import dialect_names
from callwright.turn.model import Model
from callwright.turn.plan import build_generation_request
from callwright.upstreams.simulated.model import SimulatedUpstream

VERBS: Final = ("archive", "copy", "delete", "move")
NOUNS: Final = ("album", "branch", "folder", "invoice", "pipeline", "ticket")
TOOLS: Final = tuple(FunctionTool(f"{verb}_{noun}", f"Does it to a {noun}.", {}) for verb in VERBS for noun in NOUNS)
WORDS: Final = st.sampled_from(["Hm?", "Archive it.", "My invoice!", "The tickets of the album", "", "delete_branch"])


def message(role: str, text: str) -> Message:
    return Message(role, (TextPart(text),))  # type: ignore[arg-type]


def turns(number: int, said: str, names: Sequence[str], more: bool) -> list[Item]:
    """A question, and an answer with calls of these tools and their outputs."""
    calls = [Call(name, "{}", id=f"call_{number}_{place}") for place, name in enumerate(names)]
    thought: list[Item] = [Reasoning("So."), message("assistant", "Let me see.")] if more else []
    if not calls:
        return [message("user", said), *thought, message("assistant", "No.")]
    return [message("user", said), *thought, *calls, *(CallOutput(call.id, (TextPart("ok"),)) for call in calls)]


NAMES: Final = st.lists(st.sampled_from([tool.name for tool in TOOLS] + ["gone"]), max_size=3)
HISTORIES: Final = st.lists(st.tuples(WORDS, NAMES, st.booleans()), min_size=1, max_size=6).map(
    lambda rows: [item for number, row in enumerate(rows) for item in turns(number, *row)]
)


def read(items: Sequence[Item], **more: object) -> DeferredTools:
    return DeferredTools(Conversation(tuple(items), TOOLS, **more))  # type: ignore[arg-type]


@given(HISTORIES)
def test_a_grown_history_begins_as_it_did(items: list[Item]) -> None:
    whole = read(items).items
    for end, item in enumerate(items, 1):
        if type(item) is CallOutput or (type(item) is Message and item.role == "user"):
            begun = read(items[:end]).items
            assert whole[: len(begun)] == begun


@given(HISTORIES)
def test_a_history_is_kept_and_each_call_was_found(items: list[Item]) -> None:
    deferred = read(items)
    searches = {item.id for item in deferred.items if type(item) is Call and item.name == SEARCH_TOOL.name}
    left = [item for item in deferred.items if getattr(item, "id", getattr(item, "call_id", "")) not in searches]
    assert left == items
    shown: set[str] = set()
    known = {tool.name for tool in TOOLS}
    for item in deferred.items:
        if type(item) is CallOutput and item.call_id in searches:
            shown |= {name for name in known if f'"name": "{name}"' in item.text}
        elif type(item) is Call and item.name in known:
            assert item.name in shown
    assert shown == set(deferred.found)


QUERIES: Final = st.sampled_from(
    ["archive a ticket", "delete_branch", "something to move", "album", "copies of invoices"]
)


@given(HISTORIES, QUERIES, st.booleans())
def test_a_search_of_the_model_is_shown_as_the_history_will_show_it(items: list[Item], query: str, told: bool) -> None:
    """If the model calls the best tool, after a text before its search or none."""
    asked = [*items, message("user", "Hm?")]
    before = read(asked)
    known = set(before.found)
    new = [tool for tool in ToolIndex(TOOLS).search(query) if tool.name not in known]
    text = [message("assistant", "Let me see.")] if told else []
    before.items += text
    assert before.search(query) == bool(new)
    if new:
        assert known | {tool.name for tool in new} <= set(before.found)
        later = read([*asked, *text, Call(new[0].name, "{}", id="call_9"), CallOutput("call_9", (TextPart("ok"),))])
        shown = before.items[
            : -2 if set(before.found) > set(later.found) else None
        ]  # more tools, in a search of its own
        assert later.items[: len(shown)] == shown
        assert later.items[len(shown)] == Call(new[0].name, "{}", id="call_9")


def test_words_of_most_tools_find_some_until_any_was_found() -> None:
    """But for the words of names, which do so in every question."""
    asked, more = message("user", "Please do it to a thing"), message("user", "Do it to a thing, and to a ticket")
    first = read([asked])
    assert len(first.found) == 8
    answer = message("assistant", "Done.")
    assert read([asked, answer, asked]).found == first.found
    assert set(read([asked, answer, more]).found) - set(first.found) >= {"delete_ticket", "move_ticket"}


def prompt_of(dialect: str, deferred: DeferredTools) -> str:
    model = Model("m", SimulatedUpstream(), "m", mode="raw", dialect=dialect)
    tools = (SEARCH_TOOL, *deferred.found.values())
    asked = Conversation(tuple(deferred.items), tools, shown_tools=(SEARCH_TOOL,))
    prompt = build_generation_request(model, asked, {}, "2026-11-23").prompt
    assert prompt is not None
    assert all(name in prompt.text for name in deferred.found)
    return prompt.text


def check_beginning(dialect: str, before: str, after: str) -> None:
    if dialect not in ("mistral_v3", "mistral_v11"):  # they show the tools behind the last question
        same = next((n for n, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), len(before))
        assert len(before) - same <= 60, (before[same:], after[same : same + 80])  # the begin of an answer


@pytest.mark.parametrize("dialect", dialect_names())
def test_a_prompt_with_results_begins_with_that_before_the_call(dialect: str) -> None:
    items = [
        *turns(0, "Archive the ticket.", ["archive_ticket"], more=False),
        *turns(1, "Now the branch.", ["move_branch"], more=False),
        message("user", "Thanks."),
    ]
    prompts = [prompt_of(dialect, read(items[:end])) for end in (1, 3, 4, 6, 7)]
    assert "copy_pipeline" not in prompts[-1]
    for before, after in (prompts[0:2], prompts[2:4]):  # with a new question, some leave out earlier thoughts
        check_beginning(dialect, before, after)


@pytest.mark.parametrize("told", [False, True], ids=["", "text"])
@pytest.mark.parametrize("dialect", dialect_names())
def test_a_prompt_begins_with_that_after_a_search_of_the_model(dialect: str, told: bool) -> None:
    question = message("user", "Hm?")
    text = [message("assistant", "Let me see.")] if told else []
    searched = read([question])
    searched.items += text
    assert searched.search("copy my pipelines")
    call = Call("copy_pipeline", "{}", id="call_0")
    later = read([question, *text, call, CallOutput("call_0", (TextPart("ok"),))])
    check_beginning(dialect, prompt_of(dialect, searched), prompt_of(dialect, later))


def test_a_forced_tool_is_shown_and_a_forbidden_one_is_not() -> None:
    deferred = read([message("user", "Hm?")], tool_choice=NamedTool("move_album"))
    assert "move_album" in deferred.found
    assert type(deferred.items[-1]) is CallOutput
    deferred = read([message("user", "archive ticket")], allowed_tools=("copy_album", "move_branch", "copy_ticket"))
    assert set(deferred.found) == {"copy_ticket"}
