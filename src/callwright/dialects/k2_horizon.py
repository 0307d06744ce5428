"""K2 Horizon: `<ifm|tool_calls>` around calls with `<ifm|arg_key>` and `<ifm|arg_value>`, or with JSON.

A request chooses one of three forms: elements, elements with an `<ifm|arg_type>` between key and value, or a JSON
object in `<ifm|tool_call>`; all are read, the first is written. Source: vLLM's parser `k2_horizon`, the model card. The
prompt leaves `<ifm|think>` open; the roles are not published, so the rest of it is plain ChatML.
"""

from typing import Any, Final, Literal, assert_never

from msgspec.structs import replace

from callwright.conversation import AssistantTurn, Conversation, ConversationTurn, Message, ToolTurn
from callwright.dialects.base import Dialect, PromptBy, RenderOptions, TurnMarks
from callwright.dialects.prompts.chat_messages import format_note, plain_text, split_instructions
from callwright.dialects.prompts.kept_parts import put_tools, put_turns
from callwright.dialects.prompts.key_value_tags import LINES, KeyValueTags, put_calls, said, told, write_tools
from callwright.dialects.readers.key_values import KeyValueForm
from callwright.prompt import Prompt, PromptBuilder

__all__ = ["DIALECT"]

_STOPS: Final = ("<|im_end|>",)

_TAGS: Final = KeyValueTags(
    call="<ifm|tool_call>",
    call_end="</ifm|tool_call>",
    key="<ifm|arg_key>",
    key_end="</ifm|arg_key>",
    value="<ifm|arg_value>",
    value_end="</ifm|arg_value>",
    types=("<ifm|arg_type>", "</ifm|arg_type>"),
    blocks=(("<ifm|tool_calls>", "</ifm|tool_calls>"),),
    gaps=LINES,
    between="\n",
)
_THINK: Final = "ifm|think"
_EFFORTS: Final = {"high": _THINK, "medium": "ifm|think_fast", "low": "ifm|think_faster"}
_ROUNDED: Final = {"minimal": "low", "xhigh": "high", "max": "high"}
_THOUGHTS: Final = tuple((f"<{tag}>", f"</{tag}>") for tag in _EFFORTS.values())
# Which of the thoughts is open is not known: the end of any is the end.
_ENDS: Final = (*_STOPS, *(end for _, end in _THOUGHTS[1:]))
_CONTROLS: Final = (
    *("<|im_start|>", "<|im_end|>", *_TAGS.literals, *(tag for pair in _THOUGHTS for tag in pair)),
    *("<tool_response>", "</tool_response>"),
)


class Options(RenderOptions, frozen=True, kw_only=True):
    """`reasoning_effort`: with which of the three thoughts the answer begins, or `none`."""

    reasoning_effort: Literal["high", "medium", "low", "none"] = "high"

    def with_effort(self, level: str) -> "Options":
        """See `RenderOptions`: other levels are rounded."""
        return replace(self, reasoning_effort=_ROUNDED.get(level, level))


def render(conversation: Conversation, options: Options) -> Prompt:
    """The whole prompt, up to `<|im_start|>assistant` and the begin of its thought."""
    out = PromptBuilder()
    instructions, items = split_instructions(conversation.items)
    instructions += format_note(conversation)
    if instructions or conversation.tools:
        _begin(out, "system").text("\n\n".join(instructions))
        if conversation.tools:
            put_tools(out.text("\n\n" if instructions else ""), conversation, write_tools, _TAGS)
        out.control("<|im_end|>").text("\n")
    put_turns(out, items, _turn)
    effort = options.reasoning_effort
    thinks = options.add_generation_prompt and effort != "none"
    if options.add_generation_prompt:
        _begin(out, "assistant")
    if thinks:
        out.control(f"<{_EFFORTS[effort]}>")
    return Prompt(out.pieces(), _CONTROLS, start="reasoning" if thinks else "assistant")


def _turn(out: PromptBuilder, turn: ConversationTurn, number: int) -> None:
    """Append a turn of the history."""
    match turn:
        case Message(role, parts):
            _begin(out, "user" if role == "user" else "system").text(plain_text(parts, number))
        case AssistantTurn(reasoning, message, calls):
            _begin(out, "assistant")
            if reasoning:
                out.control(f"<{_THINK}>").text(reasoning).control(f"</{_THINK}>").text("\n")
            text = plain_text(message.parts, number) if message else ""
            out.text(text)
            if calls:
                put_calls(out.text("\n" if text else ""), _TAGS, calls)
        case ToolTurn(outputs):
            for count, (_, output) in enumerate(outputs):
                if count:
                    out.control("<|im_end|>").text("\n")
                _begin(out, "tool").text(plain_text(output.parts, number))
        case _:
            assert_never(turn)
    out.control("<|im_end|>").text("\n")


def messages(conversation: Conversation, options: Options) -> list[dict[str, Any]]:
    """Chat messages with the tools in the system message, calls and outputs as the format's text."""
    return told(conversation, _TAGS, _CONTROLS)


def write(turn: AssistantTurn) -> str:
    """A turn as the model writes it: all calls in one block."""
    return said(turn, _TAGS, _THINK).text


def _begin(out: PromptBuilder, role: str) -> PromptBuilder:
    return out.control("<|im_start|>").text(f"{role}\n")


DIALECT = Dialect(
    name="k2_horizon",
    aliases=("k2_v3", "k2horizon"),
    model_families="K2 Horizon",
    model_globs=("k2-horizon",),
    template_markers=("<ifm|tool_call",),
    source="vLLM's parser k2_horizon; model card of K2-Horizon",
    tokenizers=("k2_horizon",),
    stops=_STOPS,
    options=Options,
    prompt=PromptBy(
        render=render,
        messages=messages,
        write=write,
        marks=TurnMarks(thought=(f"<{_THINK}>", f"</{_THINK}>\n"), controls=_CONTROLS),
    ),
    calls=KeyValueForm(_TAGS, thoughts=_THOUGHTS, ends=_ENDS),
)
