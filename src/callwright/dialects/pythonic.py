"""Pythonic: `[f(a='x'), g()]` as the whole answer, or between `<|python_start|>` and `<|python_end|>`.

The format of Llama 3.2 and Llama 4. The tools are JSON in the system turn. Source: the chat templates of
Llama-3.2-3B-Instruct and Llama-4-Scout, and Meta's prompt guide for zero-shot function calling. Outputs come back in
the role `ipython`. The models do not think. Llama 4 has turn tokens of its own.
"""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, Literal

from callwright.conversation import Conversation
from callwright.dialects.base import Dialect, ReadBy, RenderOptions
from callwright.dialects.prompts.turns import Turns
from callwright.layout.calls import CallLayout
from callwright.layout.literal import PythonArguments
from callwright.prompt import PromptBuilder
from callwright.reading.literal.python import PythonCalls, PythonForm
from callwright.reading.text.said_before import read_said_before
from callwright.streaming.reader import Parse

_STOPS: Final = ("<|eot_id|>", "<|eom_id|>", "<|eot|>", "<|eom|>")

# Fine-tunes of other families write `<tool_code>` around their calls.
_BLOCKS: Final = (("<|python_start|>", "<|python_end|>"), ("<|python_tag|>", ""), ("<tool_code>", "</tool_code>"))
_CALLS: Final = CallLayout(
    open="[",
    begin="${name}(",
    arguments=PythonArguments(),
    end=")",
    between=", ",
    close="]",
    variants=("<|python_tag|>", "<|python_start|>"),
)
_FORM: Final = PythonForm(_CALLS, _BLOCKS, ends=_STOPS)
_CONTROLS: Final = (
    *("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|header_start|>", "<|header_end|>", *_STOPS),
    *("<|python_start|>", "<|python_end|>", "<|python_tag|>"),
)
_HOW_TO: Final = """If you decide to invoke any of the functions, put them in the format of
[func_name1(params_name1=params_value1, params_name2=params_value2...), func_name2(params)]
You SHOULD NOT include any other text in the response.

Here is a list of functions in JSON format that you can invoke.

"""


class Options(RenderOptions, frozen=True, kw_only=True):
    """`flavour`: whose turn tokens."""

    flavour: Literal["llama3.2", "llama4"] = "llama3.2"


def _tools(out: PromptBuilder, conversation: Conversation) -> None:
    shown = [tool.openai["function"] for tool in conversation.tools]
    out.text(_HOW_TO, json.dumps(shown, ensure_ascii=False, indent=4))


def _turns_between(begin: str, role_end: str, end: str) -> Mapping[str, Any]:
    """The layouts of turns with these tokens around the role, and at the end."""
    return {
        "head": (
            f"<|begin_of_text|>«instructed|tools|notes¦{begin}system{role_end}\n\n$text«instructed tools¦\n\n»$tools"
            f"«notes¦«instructed|tools¦\n\n»$notes»{end}»"
        ),
        "system": f"{begin}system{role_end}\n\n$text{end}",
        "user": f"{begin}user{role_end}\n\n$text{end}",
        "assistant": f"{begin}assistant{role_end}\n\n$written{end}",
        "output": f"{begin}ipython{role_end}\n\n$text{end}",
        "answer": f"{begin}assistant{role_end}\n\n",
    }


_TURNS: Final = Turns(
    controls=_CONTROLS,
    **_turns_between("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
    notes_choice=False,
    trims=("late system", "user"),
    written="$text«text calls¦\n»$calls",
    thoughts="none",
    outputs="$each",
    calls=_CALLS,
    tools=_tools,
    chat_tools=_tools,
    chat_output="[Output of $name]\n$text",
    chat_between="\n",
    flavours={"llama4": _turns_between("<|header_start|>", "<|header_end|>", "<|eot|>")},
)


class _Calls(PythonCalls):
    """Calls in Python, or as the chat template of Llama 4 has them."""

    def begin(self, start: str) -> Parse[None]:
        """Read the words before calls."""
        return read_said_before(self.text)


DIALECT = Dialect(
    name="pythonic",
    aliases=("llama4_pythonic", "llama_pythonic"),
    model_families="Llama 4, ToolACE, watt-tool, fine-tunes that write Python lists",
    model_globs=("llama-4", "toolace", "watt-tool"),
    model_options={name: {"flavour": "llama4"} for name in ("llama-4", "llama4_pythonic")},
    template_markers=("<|python_start|> + <|python_end|>",),
    source="chat template of Llama 4; Meta's prompt guide for Llama 3.2; cards of ToolACE-2-8B and watt-tool-8B",
    tokenizers=("llama3", "llama4"),
    stops=_STOPS,
    options=Options,
    prompt=_TURNS,
    calls=ReadBy(_CALLS, partial(_Calls, form=_FORM)),
)
