"""Templates that are odd in one way each: in how calls are written, what they want of messages, what they leave out."""

from typing import Any, Final

import pytest

import callwright
from callwright.chat_template.dialect import find_format, template_dialect
from callwright.chat_template.renderer import TemplateRenderer
from callwright.chat_template.sources import ChatTemplate
from callwright.constraints.constraint import Constraint
from callwright.constraints.lark import Vocabulary, lark
from callwright.constraints.shape import sentence, shape_of
from callwright.conversation import Call, FunctionTool
from callwright.errors import ConfigError
from tests.support.grammar_engines import Llguidance

pytestmark = pytest.mark.processes  # templates run in one of their own

SAY: Final[dict[str, Any]] = {
    "type": "function",
    "function": {
        "name": "say",
        "description": "Says it.",
        "parameters": {"type": "object", "properties": {"text": {"type": "string"}}},
    },
}
ASKED: Final[list[dict[str, Any]]] = [{"role": "user", "content": "Go."}]
TURN: Final = """{%- if tools %}<|sys|>{{ tools | tojson }}<|x|>{% endif %}
{%- for m in messages %}<|{{ m.role }}|>CONTENT
{%- for c in m.tool_calls or [] %}{% set f = c.function %}CALL{% endfor %}<|x|>{% endfor %}"""
BEGIN: Final = "{% if add_generation_prompt %}<|assistant|>{% endif %}"
PARTS: Final = '{% for p in m.content %}{% if p.type == "text" %}{{ p.text }}{% endif %}{% endfor %}'
JSON_CALL: Final = '<act>{"name": "{{ f.name }}", "arguments": {{ f.arguments | tojson }}}</act>'
ARGUMENTS: Final = "{{ f.arguments | tojson }}"
SAID: Final = '{"text": "Hi } there"}'
FOUND: Final = {
    "the name in an attribute": (
        f'<invoke tool="{{{{ f.name }}}}" id="{{{{ c.id }}}}">{ARGUMENTS}</invoke>',
        f'<invoke tool="say" id="c1">{SAID}</invoke>',
    ),
    "brackets of other scripts": (f"⟦呼：{{{{ f.name }}}}⟧{ARGUMENTS}⟦/呼⟧", f"⟦呼：say⟧{SAID}⟦/呼⟧"),
    "a function of an object": (f"\n@{{{{ f.name }}}}({ARGUMENTS});", f"\n@say({SAID});"),
    "a numbered sentence": (
        f"\nCall #{{{{ loop.index }}}}: {{{{ f.name }}}} with {ARGUMENTS}",
        f"\nCall #1: say with {SAID}",
    ),
    "single quotes": (
        "<do to='{{ f.name }}'>{% for k, v in f.arguments.items() %}<arg key='{{ k }}'>{{ v }}</arg>{% endfor %}</do>",
        "<do to='say'><arg key='text'>Hi } there</arg></do>",
    ),
}
MENTIONED: Final = (
    "I will make Call #1 now: say with care.",
    "Write to @say, or to me@say(x).",
    "See ⟦呼：say⟧ for help.",
    '<invoke tool="say"> is a tag.',
)


def made(call: str, content: str = "{{ m.content or '' }}", begin: str = BEGIN) -> str:
    return TURN.replace("CONTENT", content).replace("CALL", call) + begin


@pytest.mark.parametrize("name", FOUND)
def test_calls_are_found_and_read_wherever_they_are_cut(name: str) -> None:
    call, written = FOUND[name]
    dialect = template_dialect(made(call))
    for at in range(len(written) + 1):
        turn = callwright.parse([written[:at], written[at:]], dialect=dialect, tools=[SAY])
        assert [(one.name, one.arguments.replace('":"', '": "')) for one in turn.calls] == [("say", SAID)], at
        assert not turn.content, at


@pytest.mark.parametrize("name", FOUND)
def test_they_are_constrained_to_what_is_read(name: str) -> None:
    dialect = template_dialect(made(FOUND[name][0]))
    tool = FunctionTool("say", "Says it.", SAY["function"]["parameters"])
    shape = shape_of(Constraint(dialect.name, (tool,), demanded=True, parallel=True, start="assistant"))
    node = sentence(shape) if shape is not None else None
    assert node is not None
    controls = dialect.prompt.marks.controls
    names = {control: f"<[{256 + number}]>" for number, control in enumerate(controls)}
    accepts = Llguidance(lark(node, Vocabulary(names)), controls).accepts
    assert accepts(dialect.calls.layout.text([Call("say", SAID)]))
    assert not accepts("I have nothing to say.")
    assert not accepts(dialect.calls.layout.text([Call("sing", SAID)]))


@pytest.mark.parametrize("name", FOUND)
def test_what_only_mentions_a_call_is_text(name: str) -> None:
    dialect = template_dialect(made(FOUND[name][0]))
    for text in MENTIONED:
        turn = callwright.parse(text, dialect=dialect, tools=[SAY])
        assert (turn.content, turn.calls) == (text, ()), text


def test_a_name_that_is_a_tag_itself_is_told_in_words() -> None:
    call = "<{{ f.name }}>{% for k, v in f.arguments.items() %}<{{ k }}>{{ v }}</{{ k }}>{% endfor %}</{{ f.name }}>"
    found = find_format(ChatTemplate(made(call)))
    assert (found.calls, found.why) == (None, "calls that are written so are not read")


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (f'": {JSON_CALL}<|a|>', "calls that are written so are not read"),
        ('({{ f | tojson }}",', "calls that are written so are not read"),
        ("</think>{{ f | tojson }}:```", "calls that are written so are not read"),
        ("</@{{ c.id }}{{ f.name }}{% for k, v in f.arguments.items() %}<p={{ k }}>{{ v }}</p>{% endfor %}=[TOK]", ""),
    ],
)
def test_marks_that_nobody_could_tell_are_none(call: str, why: str) -> None:
    """Quotes, tags of reasoning, a block that is opened and never closed: once they were crashes."""
    found = find_format(ChatTemplate(made(call)))
    assert found.calls is None
    assert why in found.why


def test_calls_that_are_read_one_at_a_time_are_written_so() -> None:
    """Behind this closer the second call would be lost."""
    template = made("{% if loop.first %}=#{% endif %}{{ f | tojson }}#, {{ '' }}")
    found = find_format(ChatTemplate(template)).calls
    assert found is not None
    assert not found.layout.several
    dialect = template_dialect(template)
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": "say", "arguments": '{"text": "Hi"}'}} for n in (1, 2)
    ]
    outputs = [{"role": "tool", "tool_call_id": f"c{n}", "content": f"Said {n}."} for n in (1, 2)]
    messages: list[dict[str, Any]] = [
        *ASKED,
        {"role": "assistant", "content": None, "tool_calls": calls},
        *outputs,
    ]
    text = callwright.render(messages, tools=[SAY], dialect=dialect).text
    assert text.count("<|assistant|>") == 3
    assert text.index("Said 1.") < text.rindex('"say"')


def test_a_template_that_takes_parts_only_gets_parts() -> None:
    """Of plain texts it would show nothing: the model would not see what was said."""
    dialect = template_dialect(made(JSON_CALL, PARTS))
    call = {"id": "c1", "type": "function", "function": {"name": "say", "arguments": '{"text": "Hi"}'}}
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Be kind."},
        *ASKED,
        {"role": "assistant", "content": "I do.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "Said."},
    ]
    text = callwright.render(messages, tools=[SAY], dialect=dialect).text
    assert text.endswith(
        '<|system|>Be kind.<|x|><|user|>Go.<|x|><|assistant|>I do.<act>{"name": "say", "arguments": {"text": "Hi"}}'
        "</act><|x|><|tool|>Said.<|x|><|assistant|>"
    )


@pytest.mark.parametrize("call", [JSON_CALL, ""])
@pytest.mark.parametrize("thought", ["", "{% if m.role == 'assistant' %}<think>\n\n</think>\n\n{% endif %}"])
def test_a_template_without_a_generation_prompt_gets_one(call: str, thought: str) -> None:
    """Else the model would write its own header into the answer."""
    dialect = template_dialect(made(call, thought + "{{ m.content or '' }}", begin=""))
    assert callwright.render(ASKED, dialect=dialect).text == "<|user|>Go.<|x|><|assistant|>"
    before = callwright.render(ASKED, dialect=dialect, add_generation_prompt=False).text
    assert before == "<|user|>Go.<|x|>"


def test_bad_syntax_is_told_each_time() -> None:
    for _ in range(2):
        with pytest.raises(ConfigError, match="TemplateSyntaxError"):
            find_format(ChatTemplate("{% for m in messages %}"))


def test_a_template_that_does_not_show_the_user_is_an_error() -> None:
    with pytest.raises(ConfigError, match="does not show what the user says"):
        template_dialect("<|user|>Hello!<|assistant|>")


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ("", '<act>{"name": "say", "arguments": {}}</act>'),
        ("no JSON", "I called say with arguments that cannot be read: no JSON"),
        ('{"text": ', 'I called say with arguments that cannot be read: {"text": '),
        ("[1]", "I called say with arguments that cannot be read: [1]"),
    ],
)
def test_arguments_that_are_no_object_are_told_in_words_and_none_are_an_empty_one(arguments: str, shown: str) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "say", "arguments": arguments}}
    messages: list[dict[str, Any]] = [
        *ASKED,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "x"},
    ]
    text = callwright.render(messages, tools=[SAY], dialect=template_dialect(made(JSON_CALL))).text
    assert shown in text


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ '<b>a &lt; b</b>' | striptags }}", "a < b"),
        ("{{ 'ab cd' | wordwrap(2) }}", "ab\ncd"),
        ("{{ {'a': 1} | pprint }}", "{'a': 1}"),
        ("{{ lipsum(n=0) }}", ""),
        ("{{ [7] | random }}", "7"),
    ],
)
def test_filters_work_that_load_their_code_late(template: str, text: str) -> None:
    asked = TemplateRenderer(template)
    assert asked.render({}, "2026-01-01") == text
    asked.close()
