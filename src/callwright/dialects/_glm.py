"""What the prompts of GLM have in common: tools as JSON lines in a system turn of their own, roles as tokens.

GLM 4.5 and 4.6 put a line feed behind each role and between the elements of a call, later models nothing.
"""

from typing import Final, assert_never

from callwright.conversation import AssistantTurn, Conversation, ConversationTurn, Message, ToolTurn
from callwright.dialects.prompts.chat_messages import format_note, last_asked, plain_text, split_instructions
from callwright.dialects.prompts.kept_parts import put_tools, put_turns
from callwright.dialects.prompts.key_value_tags import KeyValueTags, put_calls, write_tools
from callwright.prompt import PromptBuilder

__all__ = ["CONTROLS", "GLM_ENDS", "glm_prompt"]

GLM_ENDS: Final = ("<|user|>", "<|observation|>", "<|endoftext|>")
CONTROLS: Final = (
    *("[gMASK]", "<sop>", "<|system|>", "<|assistant|>", *GLM_ENDS, *KeyValueTags().literals),
    *("<tool_response>", "</tool_response>", "<think>", "</think>"),
)


def glm_prompt(conversation: Conversation, tags: KeyValueTags, *, note: str = "") -> PromptBuilder:
    """The prompt up to where the answer's role begins. `note` is put behind what a user says."""
    between = tags.between  # stands behind roles, too
    out = PromptBuilder().control("[gMASK]", "<sop>")
    instructions, items = split_instructions(conversation.items)
    instructions += format_note(conversation)
    if conversation.tools:
        out.control("<|system|>").text("\n")
        put_tools(out, conversation, write_tools, tags)
    for text in instructions:
        out.control("<|system|>").text(between + text)
    put_turns(out, items, _turn, tags, note, asked=last_asked(conversation, items))
    return out


def _turn(
    out: PromptBuilder, turn: ConversationTurn, number: int, tags: KeyValueTags, note: str, *, reasons: bool
) -> None:
    """Append a turn of the history."""
    between = tags.between  # stands behind roles, too
    match turn:
        case Message(role):
            out.control("<|user|>" if role == "user" else "<|system|>")
            text = plain_text(turn.parts, number)
            out.text(between + text)
            out.text(note if role == "user" and not text.endswith(note) else "")
        case AssistantTurn(reasoning, message, calls):
            out.control("<|assistant|>").text(between)
            if reasoning and reasons:
                out.control("<think>").text(reasoning.strip()).control("</think>")
            else:
                out.control(*(("<think>", "</think>") if between else ("</think>",)))
            said = plain_text(message.parts, number).strip() if message else ""
            out.text(between + said if said else "")
            if calls:
                put_calls(out.text(between), tags, calls)
        case ToolTurn(outputs):
            out.control("<|observation|>")
            for _, output in outputs:
                out.text(between).control("<tool_response>")
                out.text(between + plain_text(output.parts, number) + between).control("</tool_response>")
        case _:
            assert_never(turn)
