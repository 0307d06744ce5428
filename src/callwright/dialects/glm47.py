"""GLM 4.7 and later: `<tool_call>f<arg_key>k</arg_key><arg_value>v</arg_value></tool_call>`, without line feeds.

Values are text, typed by the schema. GLM-5.3-Flash also writes `f>{"k": "v"}` and `<arg_key>k=v</arg_value>`, which are
read. Source: the chat templates of GLM-4.7, GLM-5 and Spark 2.5, which leave reasoning open or closed where the answer
begins. Spark shows its tools and turns in its own way, and what was thought in each turn.
"""

from typing import Any, Final, Literal

from callwright.conversation import AssistantTurn, Conversation
from callwright.dialects._glm import CONTROLS, GLM_ENDS, glm_prompt
from callwright.dialects._spark import SPARK_ENDS, spark_prompt
from callwright.dialects.base import Dialect, PromptBy, RenderOptions, TurnMarks
from callwright.dialects.prompts.key_value_tags import KeyValueTags, said, told
from callwright.dialects.readers.key_values import KeyValueForm
from callwright.prompt import Prompt

__all__ = ["DIALECT"]


_TAGS: Final = KeyValueTags()


class Options(RenderOptions, frozen=True, kw_only=True):
    """`thinking`: `open` begins the answer in reasoning, `off` behind it. `flavour`: whose turns."""

    thinking: Literal["open", "off"] = "open"
    flavour: Literal["glm", "spark2.5"] = "glm"


def render(conversation: Conversation, options: Options) -> Prompt:
    """The whole prompt, up to `<|assistant|><think>` or `<|assistant|></think>`."""
    begins, thinks = options.add_generation_prompt, options.thinking == "open"
    if options.flavour == "spark2.5":
        return spark_prompt(conversation, _TAGS, begins=begins, thinks=thinks)
    out = glm_prompt(conversation, _TAGS)
    if begins:
        out.control("<|assistant|>", "<think>" if thinks else "</think>")
    return Prompt(out.pieces(), CONTROLS, start="reasoning" if begins and thinks else "assistant")


def messages(conversation: Conversation, options: Options) -> list[dict[str, Any]]:
    """Chat messages with the tools in the system message, calls and outputs as the format's text."""
    return told(conversation, _TAGS, CONTROLS)


def write(turn: AssistantTurn) -> str:
    """A turn as the model writes it: one block for each call."""
    return said(turn, _TAGS).text


DIALECT = Dialect(
    name="glm47",
    aliases=("glm5", "spark25", "spark3"),
    model_families="GLM-4.7, GLM-5, Spark-2.5, Spark-3",
    model_globs=("glm-4.7*", "glm-5*", "macaron-v1", "spark-2.5", "spark-3"),
    model_options={name: {"flavour": "spark2.5"} for name in ("spark-2.5", "spark-3", "spark25", "spark3")},
    template_markers=("<arg_key> + <arg_value>",),
    source="chat templates of GLM-4.7, GLM-5 and Spark 2.5; engines' parser spark3",
    tokenizers=("glm4", "spark"),
    stops=(*GLM_ENDS, *SPARK_ENDS),
    options=Options,
    prompt=PromptBy(
        render=render,
        messages=messages,
        write=write,
        marks=TurnMarks(thought=("<think>", "</think>"), controls=CONTROLS),
    ),
    calls=KeyValueForm(_TAGS, ends=(*GLM_ENDS, *SPARK_ENDS)),
)
