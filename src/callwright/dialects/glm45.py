"""GLM 4.5 and 4.6: `<tool_call>f`, then `<arg_key>k</arg_key>` and `<arg_value>v</arg_value>`, each on its line.

Values are text, typed by the schema. Source: the chat templates of GLM-4.5 and GLM-4.6. The model writes its
reasoning's tags itself.
"""

from typing import Any, Final, Literal

from callwright.conversation import AssistantTurn, Conversation
from callwright.dialects._glm import CONTROLS, GLM_ENDS, glm_prompt
from callwright.dialects.base import Dialect, PromptBy, RenderOptions, TurnMarks
from callwright.dialects.prompts.key_value_tags import LINES, KeyValueTags, said, told
from callwright.dialects.readers.key_values import KeyValueForm
from callwright.prompt import Prompt

__all__ = ["DIALECT"]


_TAGS: Final = KeyValueTags(gaps=LINES, between="\n")


class Options(RenderOptions, frozen=True, kw_only=True):
    """`thinking`: `model` leaves it to the model, `off` says so behind what the user says, and begins the answer with a
    closed, empty thought.
    """

    thinking: Literal["model", "off"] = "model"


def render(conversation: Conversation, options: Options) -> Prompt:
    """The whole prompt, up to `<|assistant|>`."""
    off = options.thinking == "off"
    out = glm_prompt(conversation, _TAGS, note="/nothink" if off else "")
    if options.add_generation_prompt:
        out.control("<|assistant|>")
        if off:
            out.text("\n").control("<think>", "</think>")
    return Prompt(out.pieces(), CONTROLS)


def messages(conversation: Conversation, options: Options) -> list[dict[str, Any]]:
    """Chat messages with the tools in the system message, calls and outputs as the format's text."""
    return told(conversation, _TAGS, CONTROLS)


def write(turn: AssistantTurn) -> str:
    """A turn as the model writes it: one block for each call."""
    return said(turn, _TAGS).text


DIALECT = Dialect(
    name="glm45",
    aliases=("glm", "glm4", "glm46"),
    model_families="GLM-4.5, GLM-4.6, HyperCLOVA X SEED Think 32B and Omni",
    model_globs=("glm-4.5*", "glm-4.6*", "hyperclovax-seed-think-32b", "hyperclovax-seed-omni"),
    template_markers=("<arg_key> + </arg_key>\n<arg_value>", "<arg_key> + <arg_value>\\n"),
    source="chat templates of GLM-4.5 and GLM-4.6",
    tokenizers=("glm4",),
    stops=GLM_ENDS,
    options=Options,
    prompt=PromptBy(
        render=render,
        messages=messages,
        write=write,
        marks=TurnMarks(thought=("<think>", "</think>\n"), controls=CONTROLS),
    ),
    calls=KeyValueForm(_TAGS, ends=GLM_ENDS),
)
