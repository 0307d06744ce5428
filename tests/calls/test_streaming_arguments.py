"""Arguments in a stream: good ones go out as they come, mended ones as the whole is mended, half ones stay open."""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.calls.fit import repair_and_validate
from callwright.calls.streaming_arguments import StreamingArguments
from callwright.calls.toolset import Toolset
from callwright.conversation import FunctionTool
from callwright.tolerant_json.codec import decode
from callwright.tolerant_json.reader import read_json
from tests.support.choices import cut
from tests.support.examples import examples
from tests.tolerant_json.test_reader import MUTATORS, PROGRAMS, STRINGS

Schema = dict[str, Any]
TEXT, WHOLE, NUMBER, FLAG = ({"type": kind} for kind in ("string", "integer", "number", "boolean"))


def tools_with(schema: Schema) -> Toolset:
    return Toolset([FunctionTool("use", None, schema), FunctionTool("ping", None, None)])


def stream(schema: Schema, parts: Iterable[str], *, is_cut: bool = False) -> tuple[StreamingArguments, list[str]]:
    """Arguments read from parts, and all that was sent after each of them and at the end."""
    live = StreamingArguments("use", tools_with(schema))
    sent = [""]
    for part in parts:
        sent.append(sent[-1] + live.feed(part))
    sent.append(sent[-1] + live.finish(cut=is_cut))
    assert sent[-1] == live.text
    return live, sent


# --- schemas with values ---

# Names that have aliases, spellings and one-letter neighbours, and names of wrappers.
NAMES = ("path", "query", "text", "max_results", "message", "fileName", "input", "x", "name", "größe", 'a"b')
Typed = tuple[Schema, Any]


def leaf() -> st.SearchStrategy[Typed]:
    members = ["north", "south west", "east"]
    return st.one_of(
        st.tuples(st.just(TEXT), STRINGS),
        st.tuples(st.just(WHOLE), st.integers(-(10**20), 10**20)),
        st.tuples(st.just(NUMBER), st.sampled_from([0.5, -1, 1e30, 12.25])),
        st.tuples(st.just(FLAG), st.booleans()),
        st.tuples(st.just({"type": "string", "enum": members}), st.sampled_from(members)),
        st.tuples(st.just({"type": ["integer", "null"]}), st.sampled_from([None, 3])),
        st.tuples(st.just({"anyOf": [TEXT, {"type": "null"}]}), STRINGS | st.none()),
        st.tuples(st.just({"anyOf": [TEXT, WHOLE, {"type": "array", "items": TEXT}]}), STRINGS | st.just(["a"])),
        st.tuples(st.just({"$ref": "#/$defs/text"}), STRINGS),
        st.tuples(st.just({"allOf": [{"$ref": "#/$defs/count"}]}), st.integers(0, 9)),
        st.tuples(st.just({}), STRINGS | st.sampled_from([None, 1, [{}], {"a": [None]}])),
        st.tuples(
            st.just({"type": "object", "additionalProperties": WHOLE}), st.sampled_from([{}, {"p": 1, "text": 2}])
        ),
    )


@st.composite
def array(draw: st.DrawFn, inner: st.SearchStrategy[Typed]) -> Typed:
    schema, value = draw(inner)
    return {"type": "array", "items": schema}, [value] * draw(st.integers(0, 3))


@st.composite
def object_(draw: st.DrawFn, inner: st.SearchStrategy[Typed]) -> Typed:
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=4))
    members = {name: draw(inner) for name in names}
    given_ = [name for name in names if draw(st.integers(0, 3))]
    schema: Schema = {"type": "object", "properties": {name: members[name][0] for name in names}}
    if draw(st.booleans()):
        schema["required"] = given_[:2]
    if draw(st.booleans()):
        schema["additionalProperties"] = False
    return schema, {name: members[name][1] for name in draw(st.permutations(given_))}


INNER: st.SearchStrategy[Typed] = st.recursive(leaf(), lambda inner: array(inner) | object_(inner), max_leaves=5)


@st.composite
def typed_arguments(draw: st.DrawFn) -> Typed:
    schema, value = draw(object_(INNER))
    return {**schema, "$defs": {"text": TEXT, "count": {"$ref": "#/$defs/whole"}, "whole": WHOLE}}, value


FORMS: list[dict[str, Any]] = [{}, {"indent": 1}, {"separators": (",", ":")}, {"separators": (" , ", "\n:\t")}]
CALLS = st.builds(
    lambda typed, ascii_, form: (typed[0], json.dumps(typed[1], ensure_ascii=ascii_, **form)),
    typed_arguments(),
    st.booleans(),
    st.sampled_from(FORMS),
)
SIZES = st.lists(st.integers(1, 25), min_size=1, max_size=6)


def in_cuts(text: str, sizes: list[int]) -> Iterator[list[str]]:
    yield [text]
    yield list(text)
    yield cut(text, sizes)


def assert_grows(sent: list[str], final: str) -> None:
    assert all(final.startswith(earlier) for earlier in sent)


# --- good arguments ---


@examples(100)
@given(call=CALLS, sizes=SIZES)
def test_valid_arguments_go_out_byte_for_byte(call: tuple[Schema, str], sizes: list[int]) -> None:
    schema, text = call
    for parts in in_cuts(text, sizes):
        live, sent = stream(schema, parts)
        assert sent[-1] == text
        assert live.complete
        assert not live.problems
        assert_grows(sent, text)


@pytest.mark.parametrize(
    ("more", "problems"),
    [
        ([], []),
        (["}"], []),
        ([" ", "} "], []),
        (["</end>"], ["arguments_trailing_text"]),
        (["\n", "so"], ["arguments_trailing_text"]),
    ],
)
def test_arguments_that_come_whole_go_out_at_once_whatever_follows(more: list[str], problems: list[str]) -> None:
    schema = {"type": "object", "properties": {"path": TEXT, "x": WHOLE}}
    text = '{"path": "dunes.txt",  "x": 4}'
    live, sent = stream(schema, [text, *more])
    assert set(sent[1:]) == {text}
    assert live.complete
    assert [problem.kind for problem in live.problems] == problems


def is_utf8(text: str) -> bool:
    """Whether the value of a JSON text has no half of a surrogate pair in it."""
    try:
        json.dumps(json.loads(text), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("ascii_", [True, False])
@pytest.mark.parametrize(
    ("schema", "wrap"),
    [
        ({"type": "object", "properties": {"a": TEXT}}, lambda text: {"a": text}),
        ({"type": "object", "properties": {"a": {"type": ["string", "null"]}}}, lambda text: {"a": text}),
        ({"type": "object", "properties": {"a": {"anyOf": [TEXT, WHOLE]}}}, lambda text: {"a": text}),
        (
            {"type": "object", "properties": {"a": {"$ref": "#/$defs/t"}}, "$defs": {"t": TEXT}},
            lambda text: {"a": text},
        ),
        ({"type": "object", "properties": {"a": {"type": "array", "items": TEXT}}}, lambda text: {"a": ["b", text]}),
        ({"type": "object", "properties": {"a": {"type": "object"}}}, lambda text: {"a": {"b": {"c": text}}}),
        ({"type": "object"}, lambda text: {"a": text}),
        ({}, lambda text: {"x": 1, "a": text}),
    ],
)
def test_a_text_flows(program: str, ascii_: bool, schema: Schema, wrap: Callable[[str], object]) -> None:
    """What was sent is behind what was written by no more than what may still end the string."""
    text = json.dumps(wrap(program), ensure_ascii=ascii_)
    _, sent = stream(schema, list(text))
    begin, end = text.index(json.dumps(program, ensure_ascii=ascii_)), text.rindex('"')
    assert sent[-1] == text
    assert all(at - len(sent[at]) <= 12 for at in range(begin + 1, end))
    assert len(sent[(begin + end) // 2]) > begin


@pytest.mark.parametrize(
    ("schema", "value"),
    [({"type": "string", "enum": ["north", "south"]}, '"north"'), (WHOLE, "12345"), (NUMBER, "0.125"), (FLAG, "false")],
)
def test_what_must_be_judged_waits_for_its_end(schema: Schema, value: str) -> None:
    text = f'{{"a": {value}, "b": 1}}'
    _, sent = stream({"type": "object", "properties": {"a": schema}}, list(text))
    assert sent[-1] == text
    end = text.index(value) + len(value)
    assert value[1:-1] not in sent[end - 1]
    assert value in sent[text.index(": 1}") + 1]


# --- arguments that must be mended ---


def with_texts(text: str) -> str:
    """Numbers and booleans as texts."""
    return json.dumps(changed(json.loads(text), lambda value: str(value) if isinstance(value, int | float) else value))


def with_numbers_for_texts(text: str) -> str:
    return json.dumps(changed(json.loads(text), lambda value: len(value) if isinstance(value, str) else value))


def in_texts(text: str) -> str:
    """Lists and objects in the arguments as texts."""
    return json.dumps(
        {key: json.dumps(value) if isinstance(value, list | dict) else value for key, value in json.loads(text).items()}
    )


def with_nulls(text: str) -> str:
    return json.dumps({**dict.fromkeys(("text", "x", "max_results")), **json.loads(text)})


def changed(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, dict):
        return {key: changed(inner, change) for key, inner in value.items()}
    return [changed(inner, change) for inner in value] if isinstance(value, list) else change(value)


OTHER_NAMES = {
    '"path"': '"filepath"',
    '"query"': '"search_query"',
    '"text"': '"content"',
    '"max_results"': '"limit"',
    '"message"': '"mesage"',
    '"fileName"': '"file_name"',
    '"x"': '"X"',
}


def with_other_names(text: str) -> str:
    for name, other in OTHER_NAMES.items():
        text = text.replace(f"{name}:", f"{other}:")
    return text


# What is wrong with the values and names of an object, and then with how the whole is written.
CONTENT_MISTAKES: dict[str, Callable[[str], str]] = {
    "none": str,
    "texts": with_texts,
    "numbers": with_numbers_for_texts,
    "JSON in texts": in_texts,
    "nulls": with_nulls,
    "other names": with_other_names,
    "other names and texts": lambda text: with_other_names(with_texts(text)),
    "an alias beside its name": lambda text: with_member(text, '"filename": "a"'),
    "no value": lambda text: with_member(text, '"text":'),
    "half a number": lambda text: with_member(text, '"x": 1e'),
}
FORM_MISTAKES: dict[str, Callable[[str], str]] = {
    **{title: mutator for title, mutator in MUTATORS.items() if title != "Python"},
    "none": str,
    "a wrapper": lambda text: f'{{"arguments": {text}}}',
    "a call in the arguments": lambda text: f'{{"name": "use", "arguments": {text}}}',
    "a text around it": json.dumps,
    "a list around it": lambda text: f"[{text}]",
}
MISTAKES = st.tuples(st.sampled_from(sorted(CONTENT_MISTAKES)), st.sampled_from(sorted(FORM_MISTAKES)))


def with_member(text: str, member: str) -> str:
    return text[:-1] + ("," if json.loads(text) else "") + member + "}"


def written(call: tuple[Schema, str], mistakes: tuple[str, str]) -> str:
    """The arguments with mistakes."""
    return FORM_MISTAKES[mistakes[1]](CONTENT_MISTAKES[mistakes[0]](call[1]))


@examples(250)
@given(call=CALLS, mistakes=MISTAKES, sizes=SIZES)
def test_mended_arguments_are_the_same_in_every_cut_and_fit(
    call: tuple[Schema, str], mistakes: tuple[str, str], sizes: list[int]
) -> None:
    schema, text = call[0], written(call, mistakes)
    first: StreamingArguments | None = None
    for parts in in_cuts(text, sizes):
        live, sent = stream(schema, parts)
        assert_grows(sent, live.text)
        first = first or live
        assert (live.text, live.problems, live.complete) == (first.text, first.problems, first.complete)
    node = read_json(text)
    if first is None or node is None or not is_utf8(node.text(completed=True)):
        return
    fitted = repair_and_validate(node, "use", tools_with(schema))
    if not fitted.faults:
        assert first.complete
        assert tools_with(schema).faults("use", decode(first.text)) == [], first.text


# Schema, arguments, what goes out: what had to be held is written behind what flowed.
HELD: list[tuple[Schema, str, str]] = [
    (
        {"properties": {"in": {"properties": {"a": TEXT, "path": TEXT}}}},
        '{"in": {"a": "x", "filename": "y", "z": 1}, "b": 2}',
        '{"in": {"a": "x", "path": "y", "z": 1}, "b": 2}',
    ),
    (
        {"properties": {"l": {"type": "array", "items": {"properties": {"a": WHOLE, "path": TEXT}}}}},
        '{"l": [{"a": "1", "file": "y"}, {"file": "z", "a": "2"}, {"q": 1, "file": "v"}]}',
        '{"l": [{"a": 1, "path": "y"}, {"path": "z", "a": 2}, {"q": 1, "path": "v"}]}',
    ),
    ({"properties": {"path": TEXT}}, ' {"z": {"y": [1]}, "file": "x"}', ' {"z": {"y": [1]}, "path": "x"}'),
]


@pytest.mark.parametrize(("schema", "text", "out"), HELD)
def test_what_was_held_follows_what_flowed(schema: Schema, text: str, out: str) -> None:
    for parts in in_cuts(text, [3, 1, 7]):
        live, sent = stream(schema, parts)
        assert (sent[-1], live.complete) == (out, True)
        assert_grows(sent, out)


BRANCHES = {
    "anyOf": [
        {"properties": {"kind": {"const": "a"}, "size": WHOLE, "path": TEXT}, "required": ["kind"]},
        {"properties": {"kind": {"const": "b"}, "path": TEXT}, "required": ["kind"]},
    ]
}


@pytest.mark.parametrize(
    ("text", "out"),
    [
        ('{"size": "7", "kind": "a"}', '{"size": 7, "kind": "a"}'),
        ('{"size": "7", "kind": "b"}', '{"size": "7", "kind": "b"}'),  # of that branch it is no member
        ('{"kind": "b", "size": "7"}', '{"kind": "b", "size": "7"}'),
        ('{"path": "x", "kind": "a", "size": "7"}', '{"path": "x", "kind": "a", "size": 7}'),
    ],
)
def test_a_member_of_some_branches_waits_for_the_constant_that_chooses(text: str, out: str) -> None:
    for parts in in_cuts(text, [3, 1, 7]):
        live, sent = stream(BRANCHES, parts)
        assert (sent[-1], live.complete) == (out, True)
        assert_grows(sent, out)


@pytest.mark.parametrize(("begun", "sent"), [('{"path": nu', '{"path": '), ('{"path": "a\\', '{"path": "a')])
def test_half_a_value_is_sent_by_no_more_than_was_written(begun: str, sent: str) -> None:
    schema = {"properties": {"path": {"anyOf": [TEXT, {"type": "null"}]}}}
    for is_cut in (True, False):
        live, _ = stream(schema, list(begun), is_cut=is_cut)
        assert not live.complete
        assert begun.startswith(live.text)
        assert live.text.startswith(sent)


# --- arguments that are cut off ---


@examples(200)
@given(call=CALLS, mistakes=MISTAKES, at=st.integers(0, 10_000), sizes=SIZES)
def test_what_is_cut_off_is_not_closed(
    call: tuple[Schema, str], mistakes: tuple[str, str], at: int, sizes: list[int]
) -> None:
    schema, text = call[0], written(call, mistakes)
    uncut = stream(schema, [text])[0].text
    begun = text[: at % (len(text) + 1)]
    first: StreamingArguments | None = None
    for parts in in_cuts(begun, sizes):
        live, sent = stream(schema, parts, is_cut=True)
        assert_grows(sent, live.text)
        first = first or live
        assert (live.text, live.complete) == (first.text, first.complete)
        if not live.complete:
            assert uncut.startswith(live.text) or begun.startswith(live.text)
        elif begun.strip() and mistakes[0] not in ("no value", "half a number"):
            json.loads(live.text)


def test_a_schema_that_cannot_be_checked_mends_alike_in_every_cut() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": {"$ref": "#/$defs/none"}}}}
    assert {stream(schema, parts)[1][-1] for parts in (['{"a": 1}'], '{"a": 1}')} == {'{"a": [1]}'}
