"""Outputs read by a checkpoint's own declaration, and declarations that cannot be."""

import json
import random
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import callwright
from callwright import ConfigError, Parser, ResponseTemplate, collect
from callwright.gateway.config.build_models import build_models
from callwright.gateway.config.config import Config, ModelConfig
from callwright.response_template.expression import PatternError
from callwright.response_template.pattern import Pattern, compile_pattern
from callwright.response_template.watch import Watch
from callwright.streaming.reader import silent_reader
from tests.conftest import Served
from tests.support.cases import Case, read_cases, tools
from tests.support.examples import share, some
from tests.support.http_client import ask
from tests.support.outputs import ARGUMENTS, QUESTION, TEXT, THOUGHT, TOOLS, WRITTEN
from tests.support.parsing import lost, merged, pieces, read, read_told
from tests.support.paths import ROOT
from tests.support.servers import ModelServer, chat, said

FOLDER = ROOT / "tests" / "response_template" / "cases"
TEMPLATES = {path.stem: ResponseTemplate.load(path) for path in sorted(FOLDER.glob("*.json"))}
CASES = [case for path in sorted(FOLDER.glob("*.txt")) for case in read_cases(path)]
cases = pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.dialect}: {case.title}")


def request(case: Case) -> dict[str, object]:
    return {**case.request(), "dialect": TEMPLATES[case.dialect]}


@cases
def test_a_case_means_what_it_says(case: Case) -> None:
    events = read([case.output], case.finish, **request(case))
    assert not case.misread(collect(events))


@cases
def test_the_cut_of_the_stream_changes_nothing(case: Case) -> None:
    whole = merged(read([case.output], case.finish, **request(case)))
    assert merged(read(case.output, case.finish, **request(case))) == whole
    assert merged(read_told([case.output], case.finish, **request(case))) == whole
    for seed in range(5):
        assert merged((read, read_told)[seed % 2](pieces(case.output, seed), case.finish, **request(case))) == whole


@cases
def test_no_character_is_lost(case: Case) -> None:
    assert not lost(case.output, read(pieces(case.output, 7), case.finish, check="verbatim", **request(case)))


@cases
def test_an_output_may_end_anywhere(case: Case) -> None:
    finish = ("stop", "length")[len(case.title) % 2]  # no reader is told
    for end in some(range(len(case.output)), len(case.title)):
        output = case.output[:end]
        events = read(pieces(output, end), finish, **request(case))
        assert merged(events) == merged((read, read_told)[end % 2]([output], finish, **request(case)))
        assert not lost(output, read([output], finish, check="verbatim", **request(case)))


# What the families write, in any order.
WRITTEN_ATOMS = {
    "tags": ("<think>", "</think>", "<tool_call>", "</tool_call>", "<|im_end|>"),
    "notation": ("<|channel>thought\n", "<channel|>", "<|tool_call>call:roll_dice", "<tool_call|>", '<|"|>', "sides:"),
    "inline": ("<think>", "<tool_call>", "<function=take_note>", "<parameter=title>", "</parameter>", "</function>"),
    "attributes": ("<say>", "</say>", "<do roll_dice>", '<sides is="6"/>', "</do>", '<x is="'),
    "lines": ("[call roll_dice]\n", "[/call]", "sides=6\n", "x="),
    "channels": (
        "<|channel|>final<|message|>",
        "<|end|>",
        "<|channel|>commentary to=functions.roll_dice ",
        "<|message|>",
    ),
    "actions": ("<|START_THINKING|>", "<|END_THINKING|>", "<|START_ACTION|>", "<|END_ACTION|>", "["),
    "parts": ("<|content_text|>", "<|end_message|>", "<|message_model|>", "<|content_invoke_tool_json|>"),
    "open": ("</think>", "<think>", "<response>\n", "\n</response>", "<tool_call>", "</tool_call>"),
}
ANY_ATOMS = (
    *('{"name": "roll_dice", "arguments": {"sides": 6}}', '{"tool_name": "roll_dice", "parameters": {"sides": 6}}'),
    *(
        '{"sides": 6}',
        "a",
        "Hello ",
        "\n",
        " ",
        "`",
        "```\n",
        '"',
        "{",
        "}",
        "<",
        "</s>",
        '{"name": "roll_dice", "arg',
        "\\",
    ),
)


@pytest.mark.parametrize("family", WRITTEN_ATOMS)
def test_any_output_is_read_whole_and_alike_however_it_is_cut(family: str) -> None:
    chance = random.Random(family)
    asked: dict[str, Any] = {"dialect": TEMPLATES[family], "tools": tools("roll_dice", "take_note")}
    for _ in range(150):
        atoms = (*WRITTEN_ATOMS[family], *WRITTEN_ATOMS[family], *ANY_ATOMS)
        output = "".join(chance.choice(atoms) for _ in range(chance.randint(1, 12)))
        how = {**asked, "start": chance.choice((None, "reasoning"))}
        finish = chance.choice(("stop", "length"))
        whole = merged(read([output], finish, **how))
        assert merged(read(output, finish, **how)) == whole, output
        assert merged(read(pieces(output, 1), finish, **how)) == whole, output
        assert not lost(output, read([output], finish, check="verbatim", **how)), output


# --- what transformers makes of the same ---

_OTHERS_LOSE = "it gives up on the whole message, or drops the call"
# Where we differ from transformers on purpose, and why.
DIFFERENCES = {
    "actions: an answer without its field": "text that stands in no field is content",
    "attributes: what no schema describes is read as declared": "a schema that wants a text gets one",
    "attributes: text in no field is content": "text that stands in no field is content",
    "channels: the end of a call in a string of it": _OTHERS_LOSE,
    "channels: no arguments at all": _OTHERS_LOSE,
    "inline: the end of the call in a value": "the end of a call in a value is text",
    "inline: the end of a value is missing before the next call": "what was written of a value is kept",
    "inline: cut off in a value": "a call that was cut off is none to run",
    "inline: a call in a thought that is never closed": "it is a call",
    "lines: a call between words": "text before a call is kept, and numbers are typed",
    "lines: cut off": "a call that was cut off is none to run",
    "notation: no arguments, and none of the brackets": _OTHERS_LOSE,
    "notation: cut off in a string": _OTHERS_LOSE,
    "parts: a call that has not what its transform wants": _OTHERS_LOSE,
    "parts: cut off": _OTHERS_LOSE,
    "tags: an open thought whose begin is repeated": "the second begin is structure",
    "tags: nobody said that the thought was open": "it is told, and was reasoning",
    "tags: text behind a call is kept": "text before a call is kept",
    "tags: the end of a call in a string of it": _OTHERS_LOSE,
    "tags: the end of a call is missing before the next": _OTHERS_LOSE,
    "tags: the end of a call is missing before text": _OTHERS_LOSE,
    "tags: one broken call of two": _OTHERS_LOSE,
    "tags: single quotes and a missing brace": _OTHERS_LOSE,
    "tags: a thought that ends in a call": "it is a call",
    "tags: a marker in code is a mention": _OTHERS_LOSE,
    "tags: cut off in a call": _OTHERS_LOSE,
}
ORACLE: dict[str, Any] = json.loads((FOLDER / "oracle" / "transformers.json").read_text(encoding="utf-8"))


@cases
def test_a_case_is_read_as_transformers_does_or_better(case: Case) -> None:
    title = f"{case.dialect}: {case.title}"
    turn = collect(read([case.output], case.finish, **request(case)))
    calls = [(call.name, json.loads(call.arguments)) for call in turn.calls if call.complete]
    same = (turn.content, turn.reasoning, calls) == _message(ORACLE["messages"][title])
    assert same == (title not in DIFFERENCES)


def _message(theirs: dict[str, Any]) -> object:
    functions = [call.get("function", call) for call in theirs.get("tool_calls", ())]
    thought = theirs.get("thinking") or theirs.get("reasoning_content")
    calls = [(function.get("name"), function.get("arguments")) for function in functions]
    return None if "error" in theirs else (theirs.get("content") or None, thought, calls)


# --- where the answer begins ---


@pytest.mark.parametrize(
    ("prompt", "output", "reasoning", "content"),
    [
        ("<|im_start|>assistant\n<think>a</think>Old.<|im_start|>assistant\n<think>\n", "b</think>C", "b", "C"),
        ("<|im_start|>assistant\n<think>\n\n</think>\n\n", "C", None, "C"),
        ("<|im_start|>assistant\nWell, ", "C", None, "Well, C"),
        ("<|im_start|>assistant\n", "C", None, "C"),
    ],
)
def test_the_end_of_the_prompt_says_where_the_answer_begins(
    prompt: str, output: str, reasoning: str | None, content: str
) -> None:
    turn = callwright.parse(output, dialect=TEMPLATES["tags"].after(prompt))
    assert (turn.reasoning, turn.content) == (reasoning, content)


# --- streaming ---


@pytest.mark.parametrize(
    ("family", "output", "wanted"),
    [
        ("tags", '<tool_call>{"name": "take_note", "arguments": {"title": "a b', '{"title": "a b'),
        ("notation", '<|tool_call>call:take_note{title:<|"|>a b', '{"title":"a b'),
        ("inline", "<tool_call><function=take_note><parameter=title>\na b", '{"title":"a b'),
        ("channels", '<|channel|>commentary to=functions.take_note<|message|>{"title": "a b', '{"title": "a b'),
    ],
)
def test_arguments_flow(family: str, output: str, wanted: str) -> None:
    parser = Parser(TEMPLATES[family], tools=tools("take_note"))
    events = [event for piece in output for event in parser.feed(piece)]
    assert "".join(event.text for event in events if isinstance(event, callwright.ArgumentsDelta)) == wanted


def test_text_flows_but_for_what_may_be_a_marker() -> None:
    parser = Parser(TEMPLATES["tags"])
    assert merged(parser.feed("Hello <too")) == [callwright.ContentDelta("Hello")]
    assert merged(parser.feed("th>")) == [callwright.ContentDelta(" <tooth>")]


def test_what_goes_on_for_too_long_is_no_marker() -> None:
    output = "[call " + "x" * 2_000 + "]\nnothing"
    whole = callwright.parse(output, dialect=TEMPLATES["lines"])
    assert (whole.content, whole.calls) == (output, ())
    assert callwright.parse(pieces(output, 3), dialect=TEMPLATES["lines"]) == whole


# --- expressions ---

ATOMS = ("a", "b", "<", r"\s", ".", "[^a]", "[ab]", r"\w", " ", "é", r"\S", r"[^\s<]", r"[\w-]", r"\x61", r"[\S\d]")


def _expression(chance: random.Random, depth: int = 0) -> str:
    kind = chance.random()
    if depth > 3 or kind < 0.45:
        return chance.choice(ATOMS)
    if kind < 0.65:
        return "".join(_expression(chance, depth + 1) for _ in range(chance.randint(1, 3)))
    if kind < 0.8:
        return f"(?:{_expression(chance, depth + 1)}|{_expression(chance, depth + 1)})"
    return f"(?:{_expression(chance, depth + 1)})" + chance.choice(("*", "+", "?", "{1,2}", "*?", "+?", "??"))


def _found(pattern: Pattern, text: list[str]) -> object:
    """Where the first match stands in a text that comes in pieces, and its group."""
    source, watching, before = silent_reader(), Watch([(None, pattern)]).begin(start=True), 0
    for piece in [*text, None]:
        source.ended = piece is None
        source.push(piece or "")
        said, found = watching.scan(source)
        before += len(said)
        if found is not None:
            return before, before + len(found.text), found.groups.get("x")
    return None


@pytest.mark.parametrize("seed", range(20))
def test_an_expression_matches_what_it_does_in_python(seed: int) -> None:
    chance = random.Random(seed)
    compared = 0
    while compared < share(200):
        written = f"{chance.choice(('', '^'))}(?P<x>{_expression(chance)}){_expression(chance)}" + chance.choice(
            ("", r"\Z", "(?=a)", r"(?=\Z|b)")
        )
        try:
            pattern = compile_pattern(written)
        except PatternError:  # a repetition of what may be empty
            continue
        text = "".join(chance.choice("abc< é中\0") for _ in range(chance.randint(0, 12)))
        found = re.search(written, text, re.DOTALL)
        wanted = found and (*found.span(), found["x"])
        assert _found(pattern, list(pieces(text, seed))) == wanted, (written, text)
        assert _found(pattern, list(text)) == wanted, (written, text)
        compared += 1


# The begin of each may go on for longer than a delimiter may be, end for good in between, or begin everywhere.
LONG = (r"[^<]*<x>", r"a[ab ]*?c", r"(?:a|ab)+c|b c", r"\s*</x>\s*", r"<[^>]*>")


@pytest.mark.parametrize("seed", range(10))
def test_a_long_text_is_searched_alike_however_it_is_cut(seed: int) -> None:
    chance = random.Random(seed)
    watch = Watch([(written, compile_pattern(written)) for written in chance.sample(LONG, 2)])
    atoms = ("a", "ab", " ", "c", "<", ">", "<x>", "</x>", "é", "b c")
    text = "".join(chance.choice(atoms) * chance.choice((1, 1, 2, 90, 400, 700)) for _ in range(15))

    def found(cut: list[str]) -> list[tuple[int, str, str]]:
        source, watching, at = silent_reader(), watch.begin(), 0
        places: list[tuple[int, str, str]] = []
        for piece in [*cut, ""]:
            source.ended = not piece
            source.push(piece)
            while True:
                said, delimiter = watching.scan(source)
                at += len(said)
                if delimiter is None:
                    break
                places.append((at, delimiter.kind, delimiter.text))
                at, watching = at + len(delimiter.text), watch.begin()
        assert at == len(text)
        return places

    whole = found([text])
    assert whole
    assert found(list(pieces(text, seed))) == whole
    assert found([text[at : at + 300] for at in range(0, len(text), 300)]) == whole


def test_half_of_a_character_is_text() -> None:
    assert callwright.parse("\ud800<think>a\udc00</think>b", dialect=TEMPLATES["tags"]).reasoning == "a\udc00"


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    with pytest.raises(ConfigError, match=r"google-re2 is missing\. Install it: .*\[templates\]"):
        ResponseTemplate(declared({"open_pattern": "<never seen before>"}))


# Each of these takes Python's own engine longer than anybody waits.
@pytest.mark.parametrize(
    ("pattern", "output"),
    [
        (r"(?:a+)+b", "a" * 5_000),
        (r"(?:a|a|aa)+b", "a" * 5_000),
        (r"(?:.*?x){12}y", "x" * 5_000),
        (r"<\s*(?:\s|\n)*(?:\s|\t)*>", "<" + " " * 5_000),
        (r"[ab]*a[ab]{300}c", "abaababbab" * 500),
        (r"(?:(?:[ab]{1,30}){1,30}c)", "ab" * 1_000),
    ],
)
def test_no_expression_hangs(pattern: str, output: str) -> None:
    fields = {
        "thinking": {"open_pattern": pattern, "close_pattern": pattern},
        "content": {"content_args": {"strip": False}},
    }
    template = ResponseTemplate({"start_anchor": "A:", "fields": fields})
    assert callwright.parse(output, dialect=template).content == output


@pytest.mark.parametrize("inside", [" " * 20_000, "<p=a>" * 4_000, "<p=a>" + "b " * 10_000])
def test_no_tag_hangs(inside: str) -> None:
    field = {
        "open": "<f>",
        "close": "</f>",
        "content": "xml-inline",
        "content_args": {"tag_pattern": r"<p=(?P<key>\w+)>\s*(?P<value>.+?)\s*</p>"},
        "transform": {"name": "ping", "arguments": "{content}"},
    }
    template = ResponseTemplate({"start_anchor": "A:", "fields": {"tool_calls": field}})
    turn = callwright.parse(f"<f>{inside}</f>", dialect=template, tools=tools("ping"))
    assert [call.name for call in turn.calls] == ["ping"]


# --- declarations ---


def declared(field: object = None, **template: object) -> dict[str, object]:
    fields = {"content": {}, **({} if field is None else {"tool_calls": field})}
    return {"start_anchor": "A:", "fields": fields, **template}


NAMED = {"open_pattern": "<(?P<name>f)>", "close": "</f>"}
BAD: dict[str, tuple[Any, tuple[str, ...]]] = {
    "a list": ([], ("response_template", "object", "list")),
    "no fields": ({"start_anchor": "A:"}, ("fields",)),
    "empty fields": (declared(fields={}), ("fields", "at least one")),
    "another version": (declared(version=2), ("version", "2")),
    "a name": (declared(start_ancor="A:"), ("start_ancor", "Did you mean 'start_anchor'?")),
    "no anchor": ({"fields": {"content": {}}}, ("start_anchor", "Missing")),
    "two anchors": (declared(start_anchor_pattern="A"), ("start_anchor_pattern", "leave one")),
    "a field that is a text": (declared("<f>"), ("fields.tool_calls", "str")),
    "a name in a field": (declared({"opens": "<f>"}), ("fields.tool_calls.opens", "Did you mean 'open'?")),
    "two begins": (declared({"open": "<f>", "open_pattern": "<f>"}), ("fields.tool_calls.open_pattern", "leave one")),
    "an empty begin": (declared({"open": ""}), ("fields.tool_calls.open", "length >= 1")),
    "no begin of calls": ({"start_anchor": "A:", "fields": {"tool_calls": {}}}, ("fields.tool_calls", "open")),
    "two without a begin": (declared(fields={"content": {}, "thinking": {}}), ("content, thinking",)),
    "an unknown content": (declared({"open": "<f>", "content": "jsn"}), ("tool_calls.content", "Did you mean 'json'?")),
    "a broken expression": (declared({"open_pattern": "(a"}), ("open_pattern", "(a")),
    "an expression that is empty": (declared({"open_pattern": "a*"}), ("open_pattern", "may be empty")),
    **{
        f"the expression {pattern}": (declared({"open_pattern": pattern}), ("tool_calls.open_pattern", what))
        for pattern, what in (
            (r"(a)\1", "backreference"),
            ("(?<=a)b", "lookbehind"),
            ("(?!a)b", "negative lookahead"),
            ("(?=a)ab", "lookahead"),
            ("(?>a)b", "atomic"),
            ("a++b", "possessive"),
            ("(?i)a", "flags"),
            (r"\ba", "\\b"),
            ("(?:a{400}){400}", "too large"),
            (r"\w{100}", "too large"),
            ("a" * 5_000, "too large"),
            (r"[\W]", r"\W"),
            ("[[a]", "backslash"),
            ("(?:a?)*b", "may be empty"),
        )
    },
    "a join of one": (declared({"open": "<f>", "join": "x"}), ("tool_calls.join", "repeats")),
    "groups without a transform": (declared(NAMED), ("tool_calls.transform", "name")),
    "a transform of an unknown group": (
        declared({**NAMED, "transform": {"name": "{nam}"}}),
        ("transform", "'nam'", "Did you mean 'name'?"),
    ),
    "a transform between words": (declared({**NAMED, "transform": {"name": "f_{name}"}}), ("transform", "f_{name}")),
    "each of no transform": (declared({"open": "<f>", "transform_each": True}), ("transform_each",)),
    "tags without a pattern": (declared({"open": "<f>", "content": "xml-inline"}), ("content_args.tag_pattern",)),
    "tags without a value": (
        declared({"open": "<f>", "content": "xml-inline", "content_args": {"tag_pattern": "<(?P<key>a)>"}}),
        ("content_args.tag_pattern", "value"),
    ),
    "an unknown argument": (
        declared({"open": "<f>", "content": "json", "content_args": {"unquotd_keys": True}}),
        ("content_args.unquotd_keys", "Did you mean 'unquoted_keys'?"),
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_declaration_that_cannot_be_is_told(case: str) -> None:
    template, words = BAD[case]
    with pytest.raises(ConfigError) as raised:
        ResponseTemplate(template)
    assert not [word for word in words if word not in str(raised.value)], str(raised.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", ("not valid JSON",)),
        ("5", ("object", "int")),
        ("{}", ("no response_template", "dialect")),
        ('{"response_schema": {}}', ("response_schema", "earlier form")),
        ('{"response_template": {"fields": 5}}', ("response_template.fields", "object")),
    ],
)
def test_a_file_that_cannot_be_is_told(tmp_path: Path, text: str, words: tuple[str, ...]) -> None:
    path = tmp_path / "tokenizer_config.json"
    path.write_text(text)
    with pytest.raises(ConfigError) as raised:
        ResponseTemplate.load(path)
    assert not [word for word in (str(path), *words) if word not in str(raised.value)], str(raised.value)


def test_a_template_is_found_in_a_tokenizers_file(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer_config.json"
    path.write_text(json.dumps({"eos_token": "<|im_end|>", "response_template": declared({"open": "<f>"})}))
    assert callwright.parse("Hi", dialect=ResponseTemplate.load(path)).content == "Hi"


# --- before a server that hands on raw text ---


@pytest.mark.parametrize("stream", [True, False])
def test_the_text_of_a_server_is_read_by_the_template(serve: Served, model: ModelServer, stream: bool) -> None:
    gateway = serve(ModelConfig(name="m", upstream=model.url, response_template=str(FOLDER / "tags.json")))
    written = WRITTEN["hermes"]["call"]
    model.plays(said(*(written[at : at + 6] for at in range(0, len(written), 6))))
    reply = ask(gateway, {"model": "m", "messages": [QUESTION], "tools": TOOLS}, stream=stream)
    assert reply.message["reasoning_content"] == THOUGHT
    assert [call["function"]["arguments"] for call in reply.message["tool_calls"]] == [ARGUMENTS]
    assert model.body["tools"]


def test_without_tools_it_is_read_as_well(serve: Served, model: ModelServer) -> None:
    gateway = serve(ModelConfig(name="m", upstream=model.url, response_template=str(FOLDER / "tags.json")))
    model.plays(chat({"content": f"<think>\n{THOUGHT}\n</think>\n\n{TEXT}"}))
    reply = ask(gateway, {"model": "m", "messages": [QUESTION]}, stream=False)
    assert (reply.message["reasoning_content"], reply.message["content"]) == (THOUGHT, TEXT)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"response_template": "no.json"}, ("'m'", "response_template", "no.json")),
        ({"response_template": str(FOLDER / "tags.txt")}, ("'m'", "tags.txt", "not valid JSON")),
        ({"response_template": "x.json", "mode": "raw", "dialect": "hermes"}, ("response_template", "native", "raw")),
    ],
)
def test_a_setting_that_cannot_be_is_told(settings: dict[str, Any], words: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as raised:
        build_models(Config(models=(ModelConfig(name="m", upstream="http://a/v1", **settings),)))
    assert not [word for word in words if word not in str(raised.value)], str(raised.value)
