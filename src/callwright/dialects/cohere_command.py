"""Command: `<|START_ACTION|>` and a list of `{"tool_call_id": …, "tool_name": …, "parameters": {…}}`.

The format of Command R7B, A, A Reasoning and Command 4 (A+, North Mini Code), whose text is between `START_TEXT`
tokens. Source: the chat template of c4ai-command-r7b-12-2024; Command 4 is checked against `cohere-melody` 0.15.3. The
tools are JSON in the system turn, ids are numbers.
"""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal

from callwright.conversation import Conversation
from callwright.dialects._cohere import ANSWERS, CITATIONS, COMMAND, TEXT, THOUGHT, TURNS, CohereCalls, Effort
from callwright.dialects.base import Dialect, ReadBy
from callwright.dialects.prompts.in_words import put_example
from callwright.dialects.prompts.options import ThinkingOptions
from callwright.dialects.prompts.turns import Result, Turns
from callwright.layout.calls import CallLayout, in_json, written_anew
from callwright.prompt import PromptBuilder
from callwright.reading.json.marked import CallMarks


class Options(ThinkingOptions, frozen=True, kw_only=True):
    """`thinking`: `model` leaves it to the model, `open` begins the answer in reasoning, `off` with a closed, empty
    one. `reasoning_effort`: `none` is `off`; any other level is `open` in Command 4. `flavour`: Command R7B and A, or
    Command 4, in which text of any role is between tokens.
    """

    flavour: Literal["command_a", "command4"] = "command_a"
    reasoning_effort: Effort | None = None

    def slots(self) -> Mapping[str, Any]:
        if self.reasoning_effort == "none":
            return {"open": False, "off": True}
        raised = self.reasoning_effort and self.thinking == "model" and self.flavour == "command4"
        return {"open": True} if raised else {}


_ACTION: Final = ("<|START_ACTION|>", "<|END_ACTION|>")
_TEXT: Final = ("<|START_RESPONSE|>", "<|END_RESPONSE|>")
_RESULT: Final = ("<|START_TOOL_RESULT|>", "<|END_TOOL_RESULT|>")
_CALLS: Final = CallLayout(
    open=f"{_ACTION[0]}[",
    begin="\n    " + in_json("tool_name", "parameters", lead='"tool_call_id": "${number}", '),
    end="}",
    between=",",
    close=f"\n]{_ACTION[1]}",
)
_MARKS: Final = CallMarks.of(
    _CALLS,
    around=(*_TEXT, *TEXT, *CITATIONS),
    thoughts=(THOUGHT,),
    ends=("<|END_OF_TURN_TOKEN|>",),
    end_thoughts=ANSWERS,
)


def _tools(out: PromptBuilder, conversation: Conversation) -> None:
    functions = [{**tool.as_openai()["function"], "responses": None} for tool in conversation.tools]
    lines = ",\n    ".join(json.dumps(function, ensure_ascii=False) for function in functions)
    out.text(
        "# System Preamble\nYou may use the tools below. First plan, then write the tools to call as a JSON list; "
        "their results come in the next turn.\n\n## Available Tools\nHere is the list of tools that you have available "
        f"to you:\n\n```json\n[\n    {lines}\n]\n```\n\nThe form of a call:\n"
    )
    put_example(out, _CALLS, _ACTION)


def _results(out: PromptBuilder, results: Sequence[Result]) -> None:
    _put_results(out, results, "{}")


def _results_of_4(out: PromptBuilder, results: Sequence[Result]) -> None:
    _put_results(out, results, '{{"content": {}}}')


def _put_results(out: PromptBuilder, results: Sequence[Result], told: str) -> None:
    shown = [
        f'    {{\n        "tool_call_id": "{result.number}",\n        "results": {{\n            "0": '
        f'{told.format(json.dumps(result.text, ensure_ascii=False))}\n        }},\n        "is_error": null\n    }}'
        for result in results
    ]
    out.control(_RESULT[0]).json("[\n" + ",\n".join(shown) + "\n]").control(_RESULT[1])


_CONTROLS: Final = (*TURNS, *_ACTION, *THOUGHT, *_TEXT, *_RESULT, *TEXT)
_TURNS: Final = Turns(
    controls=_CONTROLS,
    head=(
        "<BOS_TOKEN>«text|tools¦<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>$tools«text tools¦\n\n»"
        "$text<|END_OF_TURN_TOKEN|>»"
    ),
    system="<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>$text<|END_OF_TURN_TOKEN|>",
    user="<|START_OF_TURN_TOKEN|><|USER_TOKEN|>$text<|END_OF_TURN_TOKEN|>",
    assistant=(
        "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>"
        "«calls !text !thought¦<|START_THINKING|><|END_THINKING|>»$written<|END_OF_TURN_TOKEN|>"
    ),
    written="«<|START_THINKING|>$thought:trim<|END_THINKING|>»«<|START_RESPONSE|>$text<|END_RESPONSE|>»$calls",
    outputs="<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>$each<|END_OF_TURN_TOKEN|>",
    output=_results,
    answer=(
        "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>«off¦<|START_THINKING|><|END_THINKING|>»"
        "«open¦<|START_THINKING|>$thought»"
    ),
    calls=_CALLS,
    tools=_tools,
    flavours={"command4": {**COMMAND, "past_calls": written_anew(_CALLS), "output": _results_of_4}},
)


# The chat templates of these leave the thought open.
_OF_4: Final = ("command-4", "command-a-plus", "north-mini")

DIALECT = Dialect(
    name="cohere_command",
    aliases=("cohere_command3", "cohere_command4", "cohere", "command_a", "command_r7b"),
    model_families="Command R7B, Command A, Command A Reasoning, Command 4, Command A+, North Mini Code",
    model_globs=("command-r7b", "command-a", *_OF_4),
    model_options={glob: {"flavour": "command4", "thinking": "open"} for glob in (*_OF_4, "cohere_command4")},
    template_markers=("<|START_ACTION|>",),
    source="chat templates of c4ai-command-r7b-12-2024 and North Mini Code; Cohere's own encoder, "
    "cohere-melody 0.15.3: Command 4",
    tokenizers=("cohere",),
    stops=("<|END_OF_TURN_TOKEN|>",),
    stop_token_ids=(255001,),
    options=Options,
    prompt=_TURNS,
    calls=ReadBy(_CALLS, partial(CohereCalls, form=_MARKS)),
)
