"""Seed-OSS: `<seed:tool_call>` around `<function=f>` and `<parameter=k>v</parameter>`, thoughts in `<seed:think>`.

Values are text, all of it: no white space in them is structure. Source: the chat template of Seed-OSS-36B (llama.cpp),
which shows tools as Python functions. It writes objects in history as Python does; here they are JSON.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from callwright.conversation import Conversation, FunctionTool
from callwright.dialects.base import Dialect, RenderOptions
from callwright.dialects.prompts.turns import Turns
from callwright.layout.calls import CallLayout, TaggedArguments, values_as
from callwright.layout.literal import with_python_booleans
from callwright.prompt import PromptBuilder, own_words
from callwright.reading.tagged.calls import ParameterForm, ParameterTags
from callwright.schema.keywords import properties, required
from callwright.schema.plain import resolved_schema
from callwright.schema.shown import ShownKeywords

_BEGIN: Final = "<seed:bos>"
_END: Final = "<seed:eos>"
_OPEN: Final = "<seed:tool_call>"
_CLOSE: Final = "</seed:tool_call>"
_THOUGHT: Final = ("<seed:think>", "</seed:think>")
_BUDGET: Final = "<seed:cot_budget_reflect>"
_CALLS: Final = CallLayout(
    begin=f"{_OPEN}\n<function=${{name}}>\n",
    arguments=TaggedArguments(begin="<parameter=${key}>", end="</parameter>\n"),
    end=f"</function>\n{_CLOSE}",
    between="\n",
)
_SHOWN: Final = values_as(_CALLS, with_python_booleans)
_TAGS: Final = ParameterTags.of(_CALLS)
_CONTROLS: Final = (_BEGIN, _END, "<seed:pad>", _OPEN, _CLOSE, *_THOUGHT, _BUDGET, "</seed:cot_budget_reflect>")
_DEFAULT_SYSTEM: Final = (
    "You are Doubao, a helpful AI assistant. You may call one or more functions to assist with the user query."
)
_HOW_TO: Final = """
工具调用请遵循如下格式:
<seed:tool_call>
<function=example_function_name>
<parameter=example_parameter_1>value_1</parameter>
<parameter=example_parameter_2>This is the value for the second parameter
that can span
multiple lines</parameter>
</function>
</seed:tool_call>
"""
_NO_BUDGET: Final = (
    "You are an intelligent assistant that can answer questions in one step without the need for reasoning and "
    "thinking, that is, your thinking budget is 0. Next, please skip the thinking process and directly start answering "
    "the user's questions."
)
_SOME_BUDGET: Final = (
    "You are an intelligent assistant with reflective ability. In the process of thinking and reasoning, you need to "
    "strictly follow the thinking budget, which is $budget. That is, you need to complete your thinking within "
    "$budget tokens and start answering the user's questions. You will reflect on your thinking process every "
    "$interval tokens, stating how many tokens have been used and how many are left."
)
# How often the model reflects, by its budget.
_INTERVALS: Final = ((0, 0), (512, 128), (1024, 256), (2048, 512), (4096, 512), (8192, 1024), (16384, 1024))
_TYPES: Final = {"string": "str", "number": "int", "integer": "int", "boolean": "bool", "array": "list"}


class Options(RenderOptions, frozen=True, kw_only=True):
    """`thinking_budget`: how many tokens the model may think; 0 = not at all, null leaves it to the model."""

    thinking_budget: int | None = None

    def slots(self) -> Mapping[str, Any]:
        budget = self.thinking_budget or 0
        interval = next((each for limit, each in _INTERVALS if budget <= limit), _INTERVALS[-1][1])
        return {
            "budgeted": self.thinking_budget is not None,
            "budget": str(budget) if budget else "",
            "interval": str(interval),
        }


# --- prompts ---


def _tools(out: PromptBuilder, conversation: Conversation) -> PromptBuilder:
    for tool in conversation.tools:
        out.text("\n".join(["\n", *_function(tool)]))
    return own_words(out, _HOW_TO, _CONTROLS)


def _function(tool: FunctionTool) -> Iterable[str]:
    """A tool as the head of a Python function."""
    parameters = resolved_schema(tool)
    declared = {name: schema if isinstance(schema, dict) else {} for name, schema in properties(parameters).items()}
    needed = required(parameters)
    types = {name: _TYPES.get(str(schema.get("type")), "Any") for name, schema in declared.items()}
    yield "Function:"
    yield f"def {tool.name}({','.join(f'{name}: {kind}' for name, kind in types.items())}):"
    yield '    """'
    yield f"    {(tool.about or '').strip()}\n"
    if declared:
        yield "    Args:"
    for name, schema in declared.items():
        must = "必填" if name in needed else "选填"
        yield f"    - {name} ({types[name]}) [{must}]: {schema.get('description') or ''}"
    yield "" if declared else "\n"
    yield '    """'


_TURNS: Final = Turns(
    controls=_CONTROLS,
    head=(
        "«instructed|tools¦<seed:bos>system\n«text¦$text¦" + _DEFAULT_SYSTEM + "»$tools<seed:eos>»"
        "«budgeted¦<seed:bos>system«budget¦" + _SOME_BUDGET + "¦" + _NO_BUDGET + "»<seed:eos>»"
    ),
    notes_choice=False,
    system="<seed:bos>system\n$text<seed:eos>",
    user="<seed:bos>user\n$text<seed:eos>",
    assistant="<seed:bos>assistant\n$written<seed:eos>",
    written="«<seed:think>$thought:trim</seed:think>\n»$text«text calls¦\n\n»$calls",
    thoughts="all",
    outputs="$each",
    output="<seed:bos>tool\n$text<seed:eos>",
    answer="<seed:bos>assistant\n«budgeted !budget¦<seed:think><seed:cot_budget_reflect>$thought»",
    calls=_CALLS,
    past_calls=_SHOWN,
    tools=_tools,
    chat_tools=_tools,
    chat_output="Output of $name:\n$text",
    chat_between="\n",
)


DIALECT = Dialect(
    name="seed_oss",
    aliases=("seed",),
    model_families="Seed-OSS-36B",
    model_globs=("seed-oss",),
    template_markers=("<seed:tool_call> + <function= + <parameter=", "<seed:tool_call>", "<seed:"),
    source="chat template of Seed-OSS-36B-Instruct (llama.cpp models/templates/ByteDance-Seed-OSS.jinja)",
    tokenizers=("seed_oss",),
    stops=("<seed:eos>",),
    options=Options,
    shown_keywords=ShownKeywords(frozenset(("type", "description"))),
    prompt=_TURNS,
    calls=ParameterForm(_CALLS, _TAGS, thoughts=(_THOUGHT,), ends=(_END,)),
)
