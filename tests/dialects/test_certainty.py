"""What is complete is what was meant, in every format: outputs that are cut off, mixed with words, or say it twice.

Each dialect writes two calls in several shapes. They are disturbed at each place, of which a brief run tries some.
"""

import json
from collections.abc import Callable, Iterator, Sequence

import pytest

import callwright
from callwright.dialects.base import dialect_names
from tests.support import certainty
from tests.support.certainty import SHAPES, Disturbed, Shape
from tests.support.examples import some
from tests.support.parsing import merged, pieces, read

names = pytest.mark.parametrize("name", dialect_names())
shapes = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)


def _tried(make: Callable[[Shape, str], Iterator[Disturbed]], shape: Shape, name: str) -> Sequence[Disturbed]:
    return some(list(make(shape, name)), dialect_names().index(name) + len(shape.name))


@names
@shapes
def test_what_is_undisturbed_is_complete_exact_and_without_a_problem(name: str, shape: Shape) -> None:
    written = certainty.write(shape, name)
    for output in (written, list(written), *(pieces(written, seed) for seed in range(3))):
        turn = callwright.parse(output, dialect=name, tools=certainty.tools_of(shape))
        assert not turn.problems
        assert not turn.content
        assert [call.name for call in turn.calls] == [name for name, _ in shape.calls]
        assert not certainty.violation(turn, shape, Disturbed(written, 0, ""), name)


@names
@shapes
def test_a_call_of_an_output_that_ends_too_early_is_complete_only_as_it_was_meant(name: str, shape: Shape) -> None:
    for disturbed in _tried(certainty.cut, shape, name):
        turn = callwright.parse(disturbed.output, dialect=name, tools=certainty.tools_of(shape))
        assert not certainty.violation(turn, shape, disturbed, name), disturbed


@names
@shapes
def test_a_call_that_has_begun_is_never_again_text_in_silence(name: str, shape: Shape) -> None:
    output = certainty.write(shape, name)
    begun = 0
    for end in range(len(output)):
        turn = callwright.parse(output[:end], dialect=name, tools=certainty.tools_of(shape))
        assert len(turn.calls) >= begun or turn.problems, output[:end]
        begun = max(begun, len(turn.calls))


@names
@shapes
def test_words_between_the_tags_change_no_call_and_are_not_lost(name: str, shape: Shape) -> None:
    for disturbed in _tried(certainty.inserted, shape, name):
        turn = callwright.parse(disturbed.output, dialect=name, tools=certainty.tools_of(shape))
        assert not certainty.violation(turn, shape, disturbed, name), disturbed
        assert not certainty.lost_words(turn), disturbed


@names
@shapes
def test_a_parameter_that_is_given_twice_is_a_problem_and_no_call(name: str, shape: Shape) -> None:
    for disturbed in certainty.twice(shape, name):
        turn = callwright.parse(disturbed.output, dialect=name, tools=certainty.tools_of(shape))
        assert turn.problems, disturbed
        assert not turn.calls or not turn.calls[0].complete, disturbed


@names
@shapes
def test_what_is_disturbed_is_read_alike_however_it_is_cut(name: str, shape: Shape) -> None:
    for make in (certainty.cut, certainty.inserted):
        for disturbed in some(_tried(make, shape, name), 3):
            tools = certainty.tools_of(shape)
            whole = merged(read([disturbed.output], dialect=name, tools=tools))
            assert merged(read(list(disturbed.output), dialect=name, tools=tools)) == whole, disturbed
            assert merged(read(pieces(disturbed.output, 5), dialect=name, tools=tools)) == whole, disturbed


@names
@pytest.mark.parametrize("quoted", ["{own}", "see {own} there", "{own}{own}"])
def test_a_call_of_the_format_in_a_value_is_never_misread_in_silence(name: str, quoted: str) -> None:
    shape = SHAPES[3]
    own = certainty.write(SHAPES[0], name)
    calls = [("save_note", {"title": "on calls", "body": quoted.format(own=own)}), shape.calls[1]]
    held = Shape("calls in a value", (calls[0], calls[1]), shape.schemas)
    written = certainty.write(held, name)
    tools = certainty.tools_of(held)
    turn = callwright.parse(written, dialect=name, tools=tools)
    if not turn.problems:
        assert not certainty.violation(turn, held, Disturbed(written, 0, ""), name)
        assert len(turn.calls) == len(calls)
    whole = merged(read([written], dialect=name, tools=tools))
    assert merged(read(list(written), dialect=name, tools=tools)) == whole


HALVES = ("-", "1e", "2e-", "+", "3.5E")


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("name", dialect_names())
def test_half_a_number_makes_no_complete_call(name: str, half: str) -> None:
    """`{"level": 1e}` went out as it was, complete, and was no JSON."""
    parameters = {"type": "object", "properties": {"level": {"type": "number"}, "to": {"type": "string"}}}
    offered = [{"type": "function", "function": {"name": "fade", "parameters": parameters}}]
    for arguments in ({"level": 77123}, {"level": 77123, "to": "dark"}, {"to": "dark", "level": 77123}):
        written = callwright.write([{"name": "fade", "arguments": arguments}], tools=offered, dialect=name)
        output = written.replace("77123", half)
        for cut in (output, list(output)):
            for call in callwright.parse(cut, dialect=name, tools=offered).calls:
                assert not call.complete or json.loads(call.arguments) == {**arguments, "level": half}


@pytest.mark.parametrize("name", dialect_names())
def test_a_call_that_is_cut_before_its_arguments_has_none(name: str) -> None:
    offered = [{"type": "function", "function": {"name": "ping", "parameters": {"type": "object", "properties": {}}}}]
    written = callwright.write([{"name": "ping", "arguments": {}}], tools=offered, dialect=name)
    told = 0
    for end in range(len(written)):
        turn = callwright.parse(written[:end], dialect=name, tools=offered, finish_reason="length")
        for call in turn.calls:
            if not call.complete and not {"{", "("} & {*written[:end].partition("ping")[2]}:
                told += 1
                assert call.arguments == "", written[:end]
    assert told or name not in ("hermes", "glm47", "qwen3_coder")


@pytest.mark.parametrize(
    "key", ["due date", "@type", "og:title", "og", "km/h", "a,b", "x{", "n=", "1st", "größe", "it's"]
)
@names
def test_any_name_of_a_parameter_is_read_as_it_is_written(name: str, key: str) -> None:
    inner = {"type": "object", "properties": {key: {"type": "integer"}, "at": {"type": "integer"}}}
    members = {"og": {"type": "string"}, key: {"type": "string"}, "within": inner}
    offered = [{"type": "function", "function": {"name": "tag", "parameters": {"properties": members}}}]
    given = {"og": "a, b", key: f"no {key}: here", "within": {key: 3, "at": 4}}
    written = callwright.write([{"name": "tag", "arguments": given}], tools=offered, dialect=name)
    for output in (written, list(written), *(pieces(written, seed) for seed in range(3))):
        turn = callwright.parse(output, dialect=name, tools=offered)
        assert [(json.loads(call.arguments), call.complete) for call in turn.calls] == [(given, True)]
        assert not turn.problems


@pytest.mark.parametrize("name", dialect_names())
def test_half_a_character_in_a_history_takes_no_other_argument_with_it(name: str) -> None:
    written = callwright.write([{"name": "note", "arguments": '{"text": "\\ud83d", "pages": 412}'}], dialect=name)
    assert "412" in written


TEXT = {"type": "string"}
MOOR = {"berth": "north quay", "boat": {"name": "Ida", "crew": 37}}
OTHER = {"berth": "old pier", "boat": {"name": "Eva", "crew": 2}}
BOAT = {"type": "object", "properties": {"name": {"type": "string"}, "crew": {"type": "integer"}}}
HARBOUR = [
    {"type": "function", "function": {"name": "moor", "parameters": {"properties": {"berth": TEXT, "boat": BOAT}}}},
    {"type": "function", "function": {"name": "ping", "parameters": {"type": "object", "properties": {}}}},
]
# What may be written wrong, and what is written then.
SLIPS = {
    "a colon before an object": [('"boat": {', '"boat" {'), ('"boat":{', '"boat" {')],
    "a quote behind a name": [('"boat": {', '"boat: {'), ('"boat":{', '"boat:{')],
    "a quote behind a text": [('quay"', "quay"), ('Ida"', "Ida")],
    "a quote before a name twice": [('"boat"', '""boat"'), ('"crew"', '""crew"')],
    "a quote too many": [('boat"', 'boat""'), ('="boat"', '=boat"'), ('"berth', '""berth')],
    "the end of a name": [('="boat"', '="boat'), ('boat">', 'boat"'), ("=boat>", "=boat")],
    "a sign twice": [('name="boat"', 'name=="boat"')],
    "an object that ends too early": [
        ('quay",', 'quay"},'),
        ('quay",', 'quay"} '),
        ('quay",', 'quay"},,'),
        ('quay", "boat"', 'quay"}, boat'),
        ('quay","boat"', 'quay"}, boat'),
    ],
    "its first brace": [('{"berth"', '"berth"')],
    "half of a tag": [("<arg_key>", "arg_key>"), ("<arg_value>", "arg_value>"), ("</arg_key>", "/arg_key>")],
    "the stroke of a tag": [("</arg_key>", "<arg_key>"), ("</arg_value>", "<arg_value>"), ("</param", "<param")],
}


@pytest.mark.parametrize("slip", SLIPS)
@names
def test_a_slip_never_makes_a_complete_call_of_something_else(name: str, slip: str) -> None:
    for calls in ([("moor", MOOR)], [("moor", MOOR), ("ping", {})], [("moor", MOOR), ("moor", OTHER)]):
        asked = [{"name": called, "arguments": arguments} for called, arguments in calls]
        written = callwright.write(asked, tools=HARBOUR, dialect=name)
        for right, wrong in SLIPS[slip]:
            for slipped in {written.replace(right, wrong), written.replace(right, wrong, 1)} - {written}:
                for output in (slipped, f'{slipped}\nThat is the "boat", and so on.'):
                    for call in callwright.parse(output, dialect=name, tools=HARBOUR).calls:
                        if call.complete and call.name in dict(calls):
                            assert (call.name, json.loads(call.arguments)) in calls, output


def test_a_text_that_is_never_closed_makes_no_call_of_two_blocks() -> None:
    calls = ('{"tool": "moor", "arguments": {"berth": "north}}', '{"tool": "ping", "arguments": {}}')
    output = "\n".join(f"```json\n{call}\n```" for call in calls)
    for told in (output, list(output)):
        turn = callwright.parse(told, dialect="json", tools=HARBOUR)
        assert not turn.calls
        assert turn.content == output
        assert [problem.kind for problem in turn.problems] == ["malformed_call"]
