"""With its reasoning in the history a model reads what it wrote: the prompt of a task begins as the one before it, and
what came of that.
"""

from typing import Final

import pytest

from callwright.calls.kept_items import find_gaps, put_back
from callwright.conversation import (
    AssistantTurn,
    Call,
    CallOutput,
    Conversation,
    FunctionTool,
    Item,
    Message,
    Reasoning,
    TextPart,
)
from callwright.dialects.base import RenderOptions, dialect_names, get_dialect
from callwright.turn.past_reasoning import past_reasoning

THOUGHT: Final = Reasoning("The valve is in the cellar, so the pump must stop first.")
ASKED: Final = Message("user", (TextPart("Close the valve."),))
TOOL: Final = FunctionTool("stop_pump", "Stops.", {"type": "object", "properties": {"room": {"type": "string"}}})
CALL: Final = Call("stop_pump", '{"room": "cellar"}', id="call_1")
OUTPUT: Final = CallOutput("call_1", (TextPart("stopped"),))
# A history shows blanks that the model writes in other places, or not at all; nothing but these differs.
BLANKS_DIFFER: Final = {"gemma4", "glm45", "jamba", "laguna", "ling3", "qwen3_coder"}
# What is written by `write` has its tags without the suffix that those of its template have, or has those of the later
# models of its family.
WRITES_OTHER_TAGS: Final = {"hy_v3", "mistral_v11"}
# What they were trained on is known: in none of these may the family lose what it needs.
NEEDED: Final = (
    *("deepseek_v32", "deepseek_v4", "deepseek_v41", "glm45", "glm47", "harmony", "hermes", "kimi_k2", "kimi_k3"),
    *("minimax_m2", "minimax_m3", "qwen3_coder"),
)
SHOWING: Final = [name for name in dialect_names() if past_reasoning(name, is_raw=True) != "none"]


def rendered(dialect: str, options: RenderOptions, *items: Item) -> str:
    return get_dialect(dialect).render(Conversation(items, (TOOL,)), options).text


def options_of(dialect: str) -> list[RenderOptions]:
    """Those in which a model may think, its default first."""
    kind = get_dialect(dialect).options
    return [kind(), kind(thinking="open")] if "thinking" in kind.__struct_fields__ else [kind()]  # type: ignore[call-arg]


def written(dialect: str, options: RenderOptions, said: Message | None) -> str:
    """A first prompt and what the model writes behind it."""
    prompt = rendered(dialect, options, ASKED)
    text = get_dialect(dialect).write(AssistantTurn(THOUGHT.text, said, [CALL]))
    marks = get_dialect(dialect).prompt.marks
    opening = marks.thought[0] if marks.thought else ""
    begun = bool(opening) and prompt.endswith(opening) and text.startswith(opening)
    return prompt + (text.removeprefix(opening) if begun else text)


def bare(text: str) -> str:
    return "".join(text.split())


def shared(one: str, other: str) -> int:
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


@pytest.mark.parametrize("said", [None, Message("assistant", (TextPart("One moment."),))], ids=["call", "text"])
@pytest.mark.parametrize("dialect", [name for name in SHOWING if name not in WRITES_OTHER_TAGS])
def test_the_next_prompt_begins_with_this_one_and_what_was_written(dialect: str, said: Message | None) -> None:
    dropped: tuple[Item, ...] = (ASKED, *([said] if said else []), CALL, OUTPUT)
    gaps = find_gaps(dropped, everywhere=False)
    whole = put_back(dropped, gaps, dict.fromkeys(gaps, (THOUGHT,)))
    stays = []
    for options in options_of(dialect):
        before, with_it, without = (
            bare(text) if dialect in BLANKS_DIFFER else text
            for text in (
                written(dialect, options, said),
                rendered(dialect, options, *whole),
                rendered(dialect, options, *dropped),
            )
        )
        assert shared(before, without) < len(before) - len(bare(THOUGHT.text))
        stays.append(with_it.startswith(before))
    assert any(stays)


@pytest.mark.parametrize("dialect", NEEDED)
def test_families_that_need_it_are_shown_it(dialect: str) -> None:
    assert dialect in SHOWING


@pytest.mark.parametrize("dialect", dialect_names())
def test_of_which_turns_it_is_shown_is_what_prompts_show(dialect: str) -> None:
    options = get_dialect(dialect).options()
    told = (ASKED, THOUGHT, CALL, OUTPUT)
    later = (*told, Message("assistant", (TextPart("It is closed."),)), Message("user", (TextPart("Thank you."),)))
    is_shown = [bare(THOUGHT.text) in bare(rendered(dialect, options, *items)) for items in (told, later)]
    assert (
        is_shown
        == {"none": [False, False], "task": [True, False], "all": [True, True]}[past_reasoning(dialect, is_raw=True)]
    )


def test_chat_messages_with_the_tools_as_text_have_no_place_for_it() -> None:
    assert {past_reasoning(name, is_raw=False) for name in dialect_names()} == {"none"}
