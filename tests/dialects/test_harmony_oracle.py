"""Harmony against the library of its makers (the fork oss-harmony): TypeScript, prompts and legal outputs agree."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import msgspec
import openai_harmony as library
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright import Turn, parse, render, typescript
from callwright.conversation import Conversation, FunctionTool, Message, TextPart
from callwright.dialects.base import get_dialect
from callwright.dialects.harmony.prompt import Options
from callwright.dialects.harmony.tokens import CALL, CHANNEL, CONSTRAIN, CONTROLS, END, MESSAGE, RETURN, START
from tests.support.cases import tools
from tests.support.examples import examples

Schema = bool | dict[str, Any]
Json = dict[str, Any]

checked = examples(200)


@cache
def encoding() -> Any:
    return library.load_harmony_encoding(library.HarmonyEncodingName.HARMONY_GPT_OSS)


# --- texts and values ---

ATOMS = (
    "a",
    "Bc",
    "7",
    " ",
    '"',
    "'",
    "\\",
    "/",
    "//",
    "{",
    "}",
    "[",
    "|",
    "<",
    "é",
    "水",
    "†",
    "⛵",
    "null",
    ",",
    "\t",
)
BREAKS = ("\n", "\n\n")


def texts(*atoms: str, least: int = 0, most: int = 6) -> st.SearchStrategy[str]:
    """Texts of these atoms."""
    return st.lists(st.sampled_from(atoms), min_size=least, max_size=most).map("".join)


LINE = texts(*ATOMS, *CONTROLS)
TEXT = texts(*ATOMS, *CONTROLS, *BREAKS)
OBJECTS = TEXT.map(lambda text: json.dumps({"said": text}, ensure_ascii=False) if text else "{}")
# Floats that every JSON writer spells the same way; the others have a test of their own.
PLAIN_FLOATS = st.sampled_from([0.5, -2.25, 100.0, 123456.789, 1e16, 1e20, -0.0])
SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | PLAIN_FLOATS | TEXT
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(LINE, inner, max_size=3),
    max_leaves=5,
)

# --- schemas ---

KEYS = st.sampled_from(["a", "b", "unit", "when?", "two words", "größe", 'q"', "0", "", "<|end|>"])
TYPES = ("string", "number", "integer", "boolean", "array", "object", "null")
NOTES = st.fixed_dictionaries(
    {},
    optional={
        "title": TEXT,
        "description": TEXT,
        "default": VALUES,
        "examples": st.lists(TEXT | st.integers() | st.none(), max_size=3),
        "nullable": st.booleans(),
    },
)
MEMBERS = st.lists(TEXT | st.integers(0, 9) | st.none() | st.booleans(), max_size=4)


def noted(own: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    """A schema with a title, a description and the like."""
    return st.tuples(NOTES, own).map(lambda parts: parts[0] | parts[1])


LEAVES: st.SearchStrategy[Schema] = st.booleans() | noted(
    st.one_of(
        st.fixed_dictionaries({"type": st.just("string")}, optional={"enum": MEMBERS}),
        st.fixed_dictionaries({"type": st.sampled_from(["number", "integer", "boolean", "null"])}),
        st.fixed_dictionaries({"type": st.lists(st.sampled_from(TYPES), min_size=1, max_size=3)}),
        st.fixed_dictionaries({}, optional={"enum": MEMBERS, "const": VALUES}),
        st.fixed_dictionaries({}, optional={"anyOf": st.just([{"type": "string"}]), "$ref": st.just("#/$defs/x")}),
    )
)


def objects(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Json]:
    """Schemas of objects."""
    return noted(
        st.fixed_dictionaries(
            {"type": st.just("object")},
            optional={
                "properties": st.dictionaries(KEYS, inner, max_size=4),
                "required": st.lists(KEYS, max_size=3),
                "additionalProperties": st.booleans(),
            },
        )
    )


def larger(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    """Schemas that hold others."""
    arrays = noted(st.fixed_dictionaries({"type": st.just("array")}, optional={"items": inner}))
    choices = noted(
        st.fixed_dictionaries({"oneOf": st.lists(inner, max_size=3)}, optional={"type": st.sampled_from(TYPES)})
    )
    return objects(inner) | objects(inner) | arrays | choices


SCHEMAS = st.recursive(LEAVES, larger, max_leaves=8)
PARAMETERS: st.SearchStrategy[Json | None] = st.one_of(
    st.none(), objects(SCHEMAS), SCHEMAS.map(lambda schema: schema if isinstance(schema, dict) else {})
)
NAMES = st.sampled_from(["roll_dice", "take_note", "tide-table", "garden.water", "Sound Lamp", "f"])


class Tool(NamedTuple):
    """A tool in both worlds."""

    name: str
    description: str | None
    parameters: Json | None

    def chat(self) -> Json:
        """As clients send it."""
        fields = {"description": self.description, "parameters": self.parameters}
        return {
            "type": "function",
            "function": {"name": self.name} | {key: value for key, value in fields.items() if value is not None},
        }

    def of_library(self) -> Any:
        """As the library wants it: it knows no missing description."""
        return library.ToolDescription.new(self.name, self.description or "", self.parameters)


TOOLS = st.builds(Tool, NAMES, st.none() | LINE | TEXT.map("{}.".format), PARAMETERS)


def declared_by_library(tool: Tool) -> str:
    """The library's text for one tool."""
    content = library.DeveloperContent.new().with_function_tools([tool.of_library()])
    text = encoding().decode(encoding().render(library.Message.from_role_and_content(library.Role.DEVELOPER, content)))
    begin, end = "namespace functions {\n\n", "\n\n} // namespace functions<|end|>"
    return str(text[text.index(begin) + len(begin) : text.rindex(end)])


@checked
@given(TOOLS)
def test_a_schema_becomes_the_librarys_typescript(tool: Tool) -> None:
    assert typescript(tool.chat()) == declared_by_library(tool)


@checked
@given(texts("a", "bc", " ", "\n", "\r\n", "\r", "\u2028", "\x0b", "// "))
def test_a_description_is_split_into_the_librarys_lines(description: str) -> None:
    tool = Tool("f", description, None)
    assert typescript(tool.chat()) == declared_by_library(tool)


# The library reads numbers with more digits or larger exponents only nearly.
EXACT_FLOATS = st.builds(
    lambda digits, zeros: float(f"{digits}e{zeros}"), st.integers(-(10**15), 10**15), st.integers(-22, 7)
)


@checked
@given(EXACT_FLOATS | st.sampled_from([1e-05, 1e-06, 1e-07, 0.0001, 1e15, 1e17]))
def test_a_default_is_spelled_as_the_library_spells_it(default: float) -> None:
    tool = Tool("f", None, {"type": "object", "properties": {"rate": {"type": "number", "default": default}}})
    assert typescript(tool.chat()) == declared_by_library(tool)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": []},
        {"type": ["integer", 1, None, "null"]},
        {"type": "string", "enum": "abc", "default": "a"},
        {"type": "object", "properties": {"a": {}}, "required": "a"},
        {"type": "object", "properties": {"a": {}}, "required": 1},
        {"type": "object", "properties": ["a"], "required": [1]},
        {"type": "object", "properties": "a"},
        {"type": "array", "items": None},
        {"oneOf": {"type": "string"}, "type": "string"},
        {"title": 1, "description": ["x"], "examples": "y", "nullable": "yes", "type": 5},
    ],
)
def test_a_schema_with_values_of_a_wrong_type_becomes_the_librarys_typescript(schema: Json) -> None:
    for parameters in ({"type": "object", "properties": {"a": schema}}, schema):
        tool = Tool("f", None, parameters)
        assert typescript(tool.chat()) == declared_by_library(tool)


VARIANT: Json = {"type": "string", "enum": ["x"], "default": 'a"b'}


@pytest.mark.parametrize(
    "parameters",
    [
        {"oneOf": [VARIANT]},
        {"type": "object", "properties": {"a": {"oneOf": [VARIANT]}}},
        {"type": "object", "properties": {"a": {"oneOf": [{"oneOf": [VARIANT]}]}}},
        {"type": "object", "properties": {"a": {"type": "array", "items": {"oneOf": [VARIANT]}}}},
    ],
    ids=["top level", "property", "variant of a variant", "items"],
)
def test_a_default_among_choices_is_spelled_as_the_library_spells_it_there(parameters: Json) -> None:
    tool = Tool("f", None, parameters)
    assert typescript(tool.chat()) == declared_by_library(tool)


# --- conversations ---

ROLES = library.Role


class Said(NamedTuple):
    """A conversation in both worlds, without its system message."""

    instructions: list[str]
    chat: list[Json]
    messages: list[Any]


def message(role: Any, text: str, channel: str = "") -> Any:
    """A message of the library."""
    made = library.Message.from_role_and_content(role, text)
    return made.with_channel(channel) if channel else made


def call_of_library(name: str, arguments: str) -> Any:
    """A call as the library wants it."""
    made = message(ROLES.ASSISTANT, arguments, "commentary").with_recipient(f"functions.{name}")
    return made.with_content_type(f"{CONSTRAIN}json")


def output_of_library(name: str, text: str) -> Any:
    """An output of a tool as the library wants it."""
    author = library.Author.new(ROLES.TOOL, f"functions.{name}")
    made = library.Message.from_author_and_content(author, text)
    return made.with_recipient("assistant").with_channel("commentary")


@st.composite
def conversations(draw: st.DrawFn, names: Sequence[str]) -> Said:
    """Users ask, the assistant thinks, talks, calls and answers, or not yet; late instructions come in between."""
    said = Said([], [], [])
    for text in draw(st.lists(TEXT, max_size=2)):
        role = draw(st.sampled_from(["system", "developer"]))
        said.instructions.append(text)
        said.chat.append({"role": role, "content": text})
    for _ in range(draw(st.integers(1, 3))):
        said_by_user(draw, said)
        for _ in range(draw(st.integers(0, 2))):
            calls = draw(st.lists(st.tuples(st.sampled_from(names), OBJECTS), min_size=1, max_size=2))
            said_by_assistant(draw, said, calls)
        if draw(st.booleans()):
            said_by_assistant(draw, said, [])
    return said


def said_by_user(draw: st.DrawFn, said: Said) -> None:
    """A user asks; perhaps a developer adds something."""
    text = draw(TEXT)
    said.chat.append({"role": "user", "content": text})
    said.messages.append(message(ROLES.USER, text))
    if draw(st.booleans()):
        text = draw(TEXT)
        said.chat.append({"role": "developer", "content": text})
        content = library.DeveloperContent.new().with_instructions(text)
        said.messages.append(library.Message.from_role_and_content(ROLES.DEVELOPER, content))


def said_by_assistant(draw: st.DrawFn, said: Said, calls: Sequence[tuple[str, str]]) -> None:
    """The assistant answers, or calls and gets its outputs."""
    reasoning, content = draw(TEXT), draw(TEXT)
    own: Json = {"role": "assistant", "content": content}
    if reasoning:
        own["reasoning"] = reasoning
        said.messages.append(message(ROLES.ASSISTANT, reasoning, "analysis"))
    if content or not calls:
        said.messages.append(message(ROLES.ASSISTANT, content, "commentary" if calls else "final"))
    said.chat.append(own)
    if not calls:
        return
    ids = [f"call_{len(said.chat)}_{number}" for number, _ in enumerate(calls)]
    own["tool_calls"] = [
        {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}
        for id_, (name, arguments) in zip(ids, calls, strict=True)
    ]
    said.messages.extend(call_of_library(name, arguments) for name, arguments in calls)
    outputs = {id_: draw(TEXT) for id_ in ids}
    for id_ in draw(st.permutations(ids)):
        said.chat.append({"role": "tool", "tool_call_id": id_, "content": outputs[id_]})
    for (name, _), text in zip(calls, outputs.values(), strict=True):  # the model sees them in the order of its calls
        said.messages.append(output_of_library(name, text))


OPTIONS = st.fixed_dictionaries(
    {
        "reasoning_effort": st.sampled_from(["low", "medium", "high"]),
        "current_date": st.none() | st.just("2026-03-01"),
        "knowledge_cutoff": st.none() | st.just("2024-06"),
        "model_identity": st.just("You are ChatGPT, a large language model trained by OpenAI.") | LINE,
        "valid_channels": st.sampled_from([("analysis", "commentary", "final"), ("final",), ()]),
        "builtin_tools": st.sampled_from([(), ("browser",), ("python",), ("python", "browser")]),
    }
)
ENDINGS = st.sampled_from(["completion", "history", "training"])


def system_of_library(options: Mapping[str, Any]) -> Any:
    """The system message that our options mean."""
    content = library.SystemContent(
        model_identity=options["model_identity"],
        reasoning_effort=library.ReasoningEffort(options["reasoning_effort"].title()),
        conversation_start_date=options["current_date"],
        knowledge_cutoff=options["knowledge_cutoff"],
    ).with_required_channels(list(options["valid_channels"]))
    for name in options["builtin_tools"]:
        content = content.with_browser_tool() if name == "browser" else content.with_python_tool()
    return library.Message.from_role_and_content(ROLES.SYSTEM, content)


def rendered_by_library(said: Said, given_tools: Sequence[Tool], options: Mapping[str, Any], ending: str) -> str:
    """The library's prompt."""
    messages = [system_of_library(options)]
    if said.instructions or given_tools:
        content = library.DeveloperContent.new()
        if said.instructions:
            content = content.with_instructions("\n\n".join(said.instructions))
        if given_tools:
            content = content.with_function_tools([tool.of_library() for tool in given_tools])
        messages.append(library.Message.from_role_and_content(ROLES.DEVELOPER, content))
    conversation = library.Conversation.from_messages(messages + said.messages)
    match ending:
        case "completion":
            tokens = encoding().render_conversation_for_completion(conversation, ROLES.ASSISTANT)
        case "training":
            tokens = encoding().render_conversation_for_training(conversation)
        case _:
            tokens = encoding().render_conversation(conversation)
    return str(encoding().decode(tokens))


def rendered(said: Said, given_tools: Sequence[Tool], options: Mapping[str, Any], ending: str) -> str:
    """Our prompt, told to be like the library's."""
    return render(
        said.chat,
        dialect="harmony",
        tools=[tool.chat() for tool in given_tools],
        header_order="oss",
        drop_analysis="library",
        add_generation_prompt=ending == "completion",
        training=ending == "training",
        **options,
    ).text


DEFAULTS: Mapping[str, Any] = {
    "reasoning_effort": "medium",
    "current_date": None,
    "knowledge_cutoff": "2024-06",
    "model_identity": "You are ChatGPT, a large language model trained by OpenAI.",
    "valid_channels": ("analysis", "commentary", "final"),
    "builtin_tools": (),
}
FEW_TOOLS = st.lists(TOOLS, max_size=2, unique_by=lambda tool: tool.name)


@checked
@given(conversations(["roll_dice", "tide-table", "garden.water", "Sound Lamp"]), FEW_TOOLS, OPTIONS, ENDINGS)
def test_a_conversation_becomes_the_librarys_prompt(
    said: Said, given_tools: list[Tool], options: Json, ending: str
) -> None:
    assert rendered(said, given_tools, options, ending) == rendered_by_library(said, given_tools, options, ending)


NAMESPACE = library.ToolNamespaceConfig(
    name="multi_tool_use",
    description=(
        "This tool serves as a wrapper for utilizing multiple tools. Each tool that can be used must be specified in "
        "the tool sections. Only tools in the functions namespace are permitted.\nEnsure that the parameters provided "
        "to each tool are valid according to that tool's specification."
    ),
    tools=[
        library.ToolDescription.new(
            "parallel",
            "Use this function to run multiple tools simultaneously, but only if they can operate in parallel. Do this "
            "even if the prompt suggests using the tools sequentially.",
            parameters={
                "type": "object",
                "properties": {
                    "tool_uses": {
                        "description": "The tools to be executed in parallel. NOTE: only functions tools are permitted",
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {
                                "recipient_name": {
                                    "type": "string",
                                    "description": "The name of the tool to use. The format should either be just the "
                                    "name of the tool, or in the format namespace.function_name for plugin and "
                                    "function tools.",
                                },
                                "parameters": {
                                    "type": ["object"],
                                    "description": "The parameters to pass to the tool. Ensure these are valid "
                                    "according to the tool's own specifications.",
                                },
                            },
                            "required": ["recipient_name", "parameters"],
                        },
                    }
                },
                "required": ["tool_uses"],
            },
        )
    ],
)


@checked
@given(st.lists(TOOLS, min_size=1, max_size=2, unique_by=lambda tool: tool.name))
def test_the_tool_that_makes_several_calls_is_rendered_as_the_library_renders_a_namespace(
    given_tools: list[Tool],
) -> None:
    content = library.DeveloperContent.new().with_function_tools([tool.of_library() for tool in given_tools])
    developer = library.Message.from_role_and_content(ROLES.DEVELOPER, content.with_tools(NAMESPACE))
    messages = [system_of_library(DEFAULTS), developer, message(ROLES.USER, "Both.")]
    tokens = encoding().render_conversation_for_completion(
        library.Conversation.from_messages(messages), ROLES.ASSISTANT
    )
    said = Said([], [{"role": "user", "content": "Both."}], [])

    prompt = rendered(said, given_tools, {**DEFAULTS, "multi_tool_use": True}, "completion")
    assert prompt == encoding().decode(tokens)


def test_the_tool_that_makes_several_calls_is_shown_only_where_several_are_allowed() -> None:
    harmony = get_dialect("harmony")
    asked = Conversation((Message("user", (TextPart("Both."),)),), (FunctionTool("ping"),))
    one_at_most = msgspec.structs.replace(asked, parallel_tool_calls=False)
    no_tools = msgspec.structs.replace(asked, tools=())
    options = Options(multi_tool_use=True)

    for conversation, shown in ((asked, True), (one_at_most, False), (no_tools, False)):
        chat = json.dumps(harmony.messages(conversation, options))
        assert ("multi_tool_use" in harmony.render(conversation, options).text) is shown
        assert ("multi_tool_use" in chat) is shown


@pytest.mark.parametrize("names", [("browser",), ("python",), ("browser", "python"), ("python", "browser")])
def test_the_built_in_tools_are_described_in_the_librarys_words(names: tuple[str, ...]) -> None:
    said = Said([], [{"role": "user", "content": "Look it up."}], [message(ROLES.USER, "Look it up.")])
    options = {**DEFAULTS, "builtin_tools": names}
    for given_tools in ([], [Tool("ping", "Answers.", None)]):
        expected = rendered_by_library(said, given_tools, options, "completion")
        assert rendered(said, given_tools, options, "completion") == expected


@pytest.mark.parametrize("name", ["python", "browser.search"])
def test_a_clients_own_tool_named_like_a_built_in_one_is_a_function(name: str) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": '{"code": "1"}'}}
    said = Said(
        [],
        [
            {"role": "user", "content": "Run it."},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": "1"},
        ],
        [message(ROLES.USER, "Run it."), call_of_library(name, '{"code": "1"}'), output_of_library(name, "1")],
    )
    own = [Tool(name, "Runs code.", {"type": "object", "properties": {"code": {"type": "string"}}})]
    assert rendered(said, own, DEFAULTS, "completion") == rendered_by_library(said, own, DEFAULTS, "completion")


# --- outputs ---

# In a body, markers that end no message are text.
BODY = texts(*ATOMS, *BREAKS, CHANNEL, MESSAGE, CONSTRAIN, least=1)
# A preamble that is an object may be a call whose name was lost; the library does not look for those.
PREAMBLE = BODY.filter(lambda body: not body.lstrip().startswith("{"))
CODE = texts("x", "1", "+", "(", ")", " ", "\n", CHANNEL, least=1).filter(lambda code: code[0] == "x")
RECIPIENTS = st.sampled_from(["functions.roll_dice", "roll_dice", "functions.garden.water", "functions.nobody", "ping"])
ARGUMENTS = st.tuples(st.dictionaries(LINE, VALUES, max_size=3), st.sampled_from([None, 1, 2]), st.booleans()).map(
    lambda parts: json.dumps(parts[0], indent=parts[1], ensure_ascii=parts[2])
)
CALLS = st.one_of(
    st.tuples(RECIPIENTS, ARGUMENTS), st.tuples(RECIPIENTS, ARGUMENTS), st.tuples(st.just("python"), CODE)
)


class Control(str):
    """A control token; other strings are text."""

    __slots__ = ()


Pieces = list[str]


@st.composite
def outputs(draw: st.DrawFn) -> Pieces:
    """What a model may write behind `<|start|>assistant`."""
    pieces: Pieces = []
    for channel in draw(st.lists(st.sampled_from(["analysis", "analysis", "commentary"]), max_size=4)):
        body = draw(BODY if channel == "analysis" else PREAMBLE)
        pieces += [Control(CHANNEL), channel, Control(MESSAGE), body, Control(END), Control(START), "assistant"]
    if draw(st.booleans()):
        ends = draw(st.sampled_from([[Control(RETURN)], [Control(END)], []]))
        return [*pieces, Control(CHANNEL), "final", Control(MESSAGE), draw(BODY), *ends]
    for recipient, arguments in draw(st.lists(CALLS, min_size=1, max_size=3)):
        pieces += [*call_header(draw, recipient), Control(MESSAGE), arguments]
        pieces += [Control(CALL), Control(START), "assistant"]
    return pieces[: -2 if draw(st.booleans()) else -3]  # the engine kept the last stop token, or not


def call_header(draw: st.DrawFn, recipient: str) -> Pieces:
    """Every legal header of a call."""
    channel = draw(st.sampled_from(["commentary", "analysis"]))
    kind = draw(
        st.sampled_from([[], [" json"], [" code"], [" ", Control(CONSTRAIN), "json"], [Control(CONSTRAIN), "json"]])
    )
    if draw(st.booleans()):
        return [f" to={recipient}", Control(CHANNEL), channel, *kind]
    return [Control(CHANNEL), f"{channel} to={recipient}", *kind]


def read_by_library(pieces: Pieces) -> tuple[str | None, str | None, list[tuple[str, str]]]:
    """Content, reasoning and calls as the library reads them, joined the way we join them."""
    parser = library.StreamableParser(encoding(), ROLES.ASSISTANT)
    for piece in pieces:
        special = isinstance(piece, Control)
        tokens = encoding().encode(piece, allowed_special="all" if special else set(), disallowed_special=())
        for token in tokens:
            parser.process(token)
    parser.process_eos()
    content, reasoning, calls = [], [], []
    for read in parser.messages:
        text = read.content[0].text
        if read.recipient is not None:
            calls.append((read.recipient.removeprefix("functions."), text))
        elif read.channel == "analysis":
            reasoning.append(text)
        else:
            content.append(text)
    return "\n".join(content) or None, "\n".join(reasoning) or None, calls


@checked
@given(outputs())
def test_a_legal_output_reads_as_the_library_reads_it(pieces: Pieces) -> None:
    turn: Turn = parse("".join(pieces), dialect="harmony", tools=tools("roll_dice", "garden.water", "ping"))
    ours = (turn.content, turn.reasoning, [(call.name, call.arguments) for call in turn.calls])
    assert ours == read_by_library(pieces)
    # Arguments that are no JSON have their end in the stop token alone.
    assert all(call.complete for call in turn.calls[:-1])
    ended = pieces[-1] in ("<|call|>", "<|end|>", "<|return|>")
    assert not turn.calls or turn.calls[-1].complete or not (ended or turn.calls[-1].arguments.endswith("}"))
    kinds = {"unknown_tool", "invalid_arguments", "non_json_arguments", "incomplete_arguments"}
    assert {problem.kind for problem in turn.problems} <= kinds
