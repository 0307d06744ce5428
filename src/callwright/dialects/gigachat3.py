"""GigaChat 3: `<|function_call|>{"name": …, "arguments": {…}}`, or the same in a message `function call`.

The format of GigaChat 3 and 3.1; the last bracket ends a call. Source: the chat template of GigaChat3.1-10B: the
tools are TypeScript in the system turn. The template shows one call of a turn; all are shown here.
"""

from typing import Final, Literal

from callwright.calls.history import HistoryRules
from callwright.conversation import Conversation
from callwright.dialects.base import Dialect
from callwright.dialects.prompts.options import ThinkingOptions
from callwright.dialects.prompts.turns import Turns
from callwright.layout.calls import CallLayout, in_json
from callwright.prompt import PromptBuilder
from callwright.reading.json.marked import CallMarks
from callwright.schema.typescript_whole import whole_declaration


class Options(ThinkingOptions, frozen=True, kw_only=True):
    """`thinking`: `model` leaves it to the model, `open` begins the answer in reasoning, `off` with a closed, empty
    one. `flavour`: calls follow a token in 3.1 and later, and are in a turn `function call` in 3.
    """

    flavour: Literal["3.1", "3"] = "3.1"


_ROLE: Final = "<|role_sep|>\n"
_END: Final = "<|message_sep|>"
_CALLS: Final = CallLayout(begin="<|function_call|>" + in_json(), end="}")
_IN_TURNS: Final = CallLayout(begin=f"{_END}\n\nfunction call{_ROLE}" + in_json(), end="}")
_MARKS: Final = CallMarks.of(_CALLS, opens=(f"{_END}\n\nfunction call{_ROLE}",), ends=(_END,))


def _tools(out: PromptBuilder, conversation: Conversation) -> None:
    shown = "\n\n".join(whole_declaration(tool) for tool in conversation.tools)
    out.text(f"# Tools\n\n## functions\n\nnamespace functions {{\n{shown}\n}}")


_TURNS: Final = Turns(
    controls=("<s>", "</s>", _END, "<|role_sep|>", "<|function_call|>"),
    head="<s>«text|tools¦system<|role_sep|>\n$text«text tools¦\n\n»$tools<|message_sep|>\n\n»",
    system="system<|role_sep|>\n$text<|message_sep|>\n\n",
    user="user<|role_sep|>\n$text<|message_sep|>\n\n",
    assistant="assistant<|role_sep|>\n$written<|message_sep|>\n\n",
    written="«<think>\n$thought:trim\n</think>\n\n»$text$calls",
    outputs="$each",
    output="function result<|role_sep|>\n$text<|message_sep|>\n\n",
    answer="assistant<|role_sep|>\n«off¦<think>\n\n</think>\n\n»«open¦<think>\n$thought»",
    calls=_CALLS,
    tools=_tools,
    flavours={"3": {"past_calls": _IN_TURNS}},
)

DIALECT = Dialect(
    name="gigachat3",
    aliases=("gigachat", "gigachat31"),
    model_families="GigaChat 3, 3.1",
    model_globs=("gigachat-3", "gigachat-3.1"),
    model_options={name: {"flavour": "3"} for name in ("gigachat-3", "gigachat-3.1-audio")},
    template_markers=("<|function_call|>", "function call<|role_sep|>", "role_sep + 'function call'"),
    history_rules=HistoryRules(single_calls=True),
    source="chat templates of GigaChat3-10B-A1.8B and GigaChat3.1-10B-A1.8B",
    tokenizers=("gigachat3",),
    stops=("<|message_sep|>", "</s>"),
    options=Options,
    prompt=_TURNS,
    calls=_MARKS,
)
