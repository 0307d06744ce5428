"""Forms of calls that are no dialect's, but that models write: Claude's tags and those of its imitators, ReAct,
`tool_code`, a tag named after the tool.

They are read in an answer of any dialect, see `reading.text.foreign`; nothing is written in them. Source: answers of
models quoted in issues of vLLM, Ollama, Cline, opencode and Goose; Anthropic's and Google's own prompts.
"""

import re
from typing import Final

from callwright.dialects.base import ParsedBy, form_of
from callwright.events import CallEnded, CallStarted, ContentDelta, Markup
from callwright.layout.calls import CallLayout, TaggedArguments
from callwright.layout.literal import PythonArguments
from callwright.reading.arguments_writer import ArgumentsWriter
from callwright.reading.json.marked import CallMarks
from callwright.reading.literal.python import PythonForm
from callwright.reading.tagged.calls import ParameterForm, ParameterTags
from callwright.reading.text.answer_text import AnswerText
from callwright.reading.text.foreign import Formats
from callwright.schema.keywords import properties
from callwright.streaming.reader import Markers, Parse, read_until

_EVERYTHING: Final = Markers()
_MAX_CALL: Final = 4_194_304
_OPENED = re.compile(r"\s*<(?P<name>[\w.-]+)>").match


def _tags(layout: CallLayout) -> ParameterForm:
    return ParameterForm(layout, ParameterTags.of(layout, control=False))


def _claude(prefix: str) -> ParameterForm:
    """The tags of Claude, and of models distilled from it."""
    arguments = TaggedArguments(begin=f'<{prefix}parameter name="${{key}}">', end=f"</{prefix}parameter>\n")
    return _tags(
        CallLayout(
            open=f"<{prefix}function_calls>\n",
            begin=f'<{prefix}invoke name="${{name}}">\n',
            arguments=arguments,
            end=f"</{prefix}invoke>\n",
            close=f"</{prefix}function_calls>",
        )
    )


_FUNCTION_TAGS: Final = _tags(
    CallLayout(
        begin='<function name="${name}">\n',
        arguments=TaggedArguments(begin='<parameter name="${key}">', end="</parameter>\n"),
        end="</function>",
    )
)
_SPACED_TAGS: Final = _tags(
    CallLayout(
        begin="<function ${name}>\n",
        arguments=TaggedArguments(begin="<parameter=${key}>\n", end="\n</parameter>\n"),
        end="</function>",
        variants=("<function ",),
    )
)
_NAMED_TAG: Final = CallMarks(
    layout=CallLayout(begin='<tool_call name="${name}">', end="</tool_call>"),
    opens=('<tool_call name="',),
    closes=("</tool_call>",),
    header=re.compile(r'\s*([\w./-]+)"\s*>\s*'),
    special=False,
)
_SOLAR: Final = CallMarks(
    layout=CallLayout(
        open="<|tool_calls|>",
        begin="<|tool_call:begin|>${id}<|tool_call:name|>${name}<|tool_call:args|>",
        end="<|tool_call:end|>",
    ),
    opens=("<|tool_call:begin|>",),
    closes=("<|tool_call:end|>",),
    around=("<|tool_calls|>",),
    header=re.compile(r"[^<]*<\|tool_call:name\|>([\w./-]+)\s*<\|tool_call:args\|>\s*"),
)
_REACT: Final = CallMarks(
    layout=CallLayout(begin="Action: ${name}\nAction Input: "),
    opens=("Action:",),
    header=re.compile(r"\s*([\w./-]+)\s*\nAction Input:\s*"),
    special=False,
)
_TOLD: Final = CallMarks(
    layout=CallLayout(begin="[Calling tool: ${name}(", end=")]", variants=("[Calling tool:",)),
    opens=("[Calling tool:",),
    closes=(")]",),
    header=re.compile(r"\s*([\w./-]+)\(\s*"),
    special=False,
)
_TOOL_CODE: Final = PythonForm(
    CallLayout(
        open="<tool_code>\n",
        begin="${name}(",
        arguments=PythonArguments(),
        end=")",
        close="\n</tool_code>",
        variants=("```tool_code",),
    ),
    (("<tool_code>", "</tool_code>"), ("```tool_code", "```")),
    control=False,
)


# --- a tag named after the tool, with tags named after its parameters ---


_NAMES_AS_TAGS: Final = CallLayout(
    begin="<${name}>\n", arguments=TaggedArguments(begin="<${key}>", end="</${key}>\n"), end="</${name}>"
)


def _names_as_tags(answer: AnswerText, start: str, formats: Formats) -> Parse[None]:
    """Read `<f><k>v</k></f>`; a text that does not begin so is a text. A value goes to the last closer of its tag
    before the tag of another parameter.
    """
    source, tools = answer.source, answer.tools
    text, _ = yield from read_until(source, _EVERYTHING, _MAX_CALL)
    opened = _OPENED(text)
    name = opened["name"] if opened else ""
    tool = tools.get(name)
    if opened is None or tool is None:
        source.emit(ContentDelta(text))
        return
    writer = ArgumentsWriter(source.emit, 0, name, tools)
    source.emit(CallStarted(0, name))
    source.markup(opened.group())
    at, given = opened.end(), set[str]()
    keys = "|".join(map(re.escape, properties(tool.parameters))) or "(?!)"
    parameter = re.compile(
        rf"\s*<(?P<key>{keys})>(?P<value>.*?)</(?P=key)>(?=\s*(?:<(?:{keys})>|</{re.escape(name)}>))", re.DOTALL
    )
    while (found := parameter.match(text, at)) and found["key"] not in given:
        given.add(found["key"])
        writer.key(found["key"])
        writer.json(writer.cast_to_schema(found["value"], properties(tool.parameters)[found["key"]]))
        at = found.end()
    end = re.compile(rf"\s*</{re.escape(name)}>").match(text, at)
    if end is not None:
        writer.close()
        source.emit(Markup(end.group()))
        at = end.end()
    source.emit(CallEnded(0, complete=end is not None))
    if text[at:]:
        source.emit(ContentDelta(text[at:]))


FORMS: Final = (
    form_of("Claude", _claude("")),
    form_of("Claude itself", _claude("antml:")),
    form_of("a function tag", _FUNCTION_TAGS),
    form_of("a spaced function tag", _SPACED_TAGS),
    form_of("a tool_call tag", _NAMED_TAG),
    form_of("Solar Open", _SOLAR),
    form_of("tool_code", _TOOL_CODE),
    form_of("ReAct", _REACT, is_sure=False),
    form_of("a note", _TOLD),
    form_of("Cline", ParsedBy(_NAMES_AS_TAGS, _names_as_tags), is_sure=False),
)
