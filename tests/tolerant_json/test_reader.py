"""Tolerant JSON: each repair by example, good JSON untouched, any text read alike however it is cut."""

import json
import re
import sys
from collections.abc import Callable
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

import callwright
from callwright.tolerant_json.reader import MAX_DEPTH, JsonRepair, TooDeepError, read_json
from callwright.tolerant_json.tree import Node
from tests.support.choices import cut
from tests.support.examples import examples
from tests.support.parsing import pieces
from tests.support.tolerant import Read, read

fuzz = examples(50)


def read_in_every_cut(text: str) -> Read:
    """Read a text whole, by characters and in random pieces: it must come to the same."""
    whole = read([text])
    for parts in (list(text), *(list(pieces(text, seed)) for seed in range(4))):
        assert read(parts)[:4] == whole[:4]
    return whole


# --- one rule each ---

# What was written, the value it says, and the rules by which it was repaired.
RULES: list[tuple[str, str, object, set[JsonRepair]]] = [
    ("a drive and folders", r'{"dir": "D:\Wharf\lists"}', {"dir": r"D:\Wharf\lists"}, {"bad_escape"}),
    ("a pattern", r'{"re": "^\d{2}\.\w+$"}', {"re": r"^\d{2}\.\w+$"}, {"bad_escape"}),
    ("escaped apostrophes", r'{"who": "Anna\'s"}', {"who": "Anna's"}, {"bad_escape"}),
    ("escaped Markdown", r'{"md": "\*keel\_length\* \[m\]"}', {"md": "*keel_length* [m]"}, {"bad_escape"}),
    ("a line that goes on", '{"t": "port \\\nside"}', {"t": "port side"}, {"bad_escape"}),
    ("one that goes on as on Windows", '{"t": "port \\\r\nside"}', {"t": "port side"}, {"bad_escape"}),
    ("half a code point", r'{"t": "\u00zz"}', {"t": r"\u00zz"}, {"bad_escape"}),
    ("a folder before a key", r'{"dir": "D:\hull\", "deep": 2}', {"dir": "D:\\hull\\", "deep": 2}, {"bad_escape"}),
    ("single quotes", "{'bed': 'north'}", {"bed": "north"}, {"bad_quotes"}),
    ("backticks", '{"bed": `north`}', {"bed": "north"}, {"bad_quotes"}),
    ("smart quotes", "{“bed”: “north”, ‘row’: ‘2’}", {"bed": "north", "row": "2"}, {"bad_quotes"}),
    ("triple quotes", '{"t": """say "ah" now"""}', {"t": 'say "ah" now'}, {"bad_quotes", "inner_quote"}),
    ("triple single quotes", "{'t': '''it's'''}", {"t": "it's"}, {"bad_quotes", "inner_quote"}),
    ("double quotes in single ones", """{'t': 'a "fine" day'}""", {"t": 'a "fine" day'}, {"bad_quotes"}),
    ("an escaped quote in single ones", r"""{'t': 'so \"fine\"'}""", {"t": 'so "fine"'}, {"bad_quotes"}),
    ("a comment to the line's end", '{"a": 1, // knots\n"b": 2}', {"a": 1, "b": 2}, {"comment"}),
    ("a comment in a line", '{"a": /* "b": */ 1}', {"a": 1}, {"comment"}),
    ("a comment with a hash", '{# sails\n"a": "x" # one\n}', {"a": "x"}, {"comment"}),
    ("a comment behind a string", '{"a": "x" // why, "b": 3\n, "c": 4}', {"a": "x", "c": 4}, {"comment"}),
    ("comments between two strings", '{"a": "x", /* 1 */ // 2\n"b": "y"}', {"a": "x", "b": "y"}, {"comment"}),
    ("a comment that never ends", '{"a": 1} /* and', {"a": 1}, set()),
    ("a raw newline", '{"t": "one\ntwo\n"}', {"t": "one\ntwo\n"}, {"control_character"}),
    ("a raw tab and a zero", '{"t": "a\tb\x00"}', {"t": "a\tb\0"}, {"control_character"}),
    ("dots for more", '{"a": [1, 2, ...]}', {"a": [1, 2]}, {"ellipsis", "extra_comma"}),
    ("dots for members", '{"a": 1, ...}', {"a": 1}, {"ellipsis", "extra_comma"}),
    ("a trailing comma", '{"a": [1, 2,],}', {"a": [1, 2]}, {"extra_comma"}),
    ("a doubled comma", '{"a": 1,, "b": 2}', {"a": 1, "b": 2}, {"extra_comma"}),
    ("a leading comma", '[, "a"]', ["a"], {"extra_comma"}),
    ("a trailing comma behind a final newline", '{"t": "end\\n",}', {"t": "end\n"}, {"extra_comma"}),
    ("speech", '{"t": "The "big" ship"}', {"t": 'The "big" ship'}, {"inner_quote"}),
    ("speech with a comma", '{"t": ""Aye," he said."}', {"t": '"Aye," he said.'}, {"inner_quote"}),
    ("speech at the end", '{"t": "he said "aye"", "n": 1}', {"t": 'he said "aye"', "n": 1}, {"inner_quote"}),
    ("an inch mark", '{"t": "27" screen", "n": 1}', {"t": '27" screen', "n": 1}, {"inner_quote", "odd_quotes"}),
    ("an apostrophe", "{'t': 'it's done', 'n': 1}", {"t": "it's done", "n": 1}, {"bad_quotes", "inner_quote"}),
    ("an attribute", '{"t": "<a href="x" id="y">z</a>"}', {"t": '<a href="x" id="y">z</a>'}, {"inner_quote"}),
    ("a call in code", '{"t": "log("a, b")", "n": 1}', {"t": 'log("a, b")', "n": 1}, {"inner_quote"}),
    ("named arguments", '{"t": "open("f", mode="r")"}', {"t": 'open("f", mode="r")'}, {"inner_quote"}),
    ("an index", '{"t": "d["k"] = e["l"]", "n": 1}', {"t": 'd["k"] = e["l"]', "n": 1}, {"inner_quote"}),
    ("a list in code", '{"t": "x = ["a", "b"]", "n": 1}', {"t": 'x = ["a", "b"]', "n": 1}, {"inner_quote"}),
    (
        "a member without its colon",
        '{"t": "keel", "bed" {"row": 1, "n": 2}}',
        {"t": 'keel", "bed" {"row": 1', "n": 2},
        {"early_end", "inner_quote", "missing_quote"},
    ),
    ("a quote too many", '{""bed": 1}', {'"bed': 1}, {"inner_quote", "odd_quotes", "quote_in_key"}),
    ("a quote too many at the end", '["north""]', ['north"'], {"inner_quote", "odd_quotes"}),
    ("a separator", '{"t": "x.split(", ")", "n": 1}', {"t": 'x.split(", ")', "n": 1}, {"inner_quote"}),
    ("JSON in a string", '{"t": "{"a": "b", "c": [1]}"}', {"t": '{"a": "b", "c": [1]}'}, {"inner_quote"}),
    ("JSON before a key", '{"t": "{"a": 1, "b": 2}", "n": 3}', {"t": '{"a": 1, "b": 2}', "n": 3}, {"inner_quote"}),
    ("JSON in a list", '["{"a": "b"}", {"c": "d"}]', ['{"a": "b"}', {"c": "d"}], {"inner_quote"}),
    (
        "code with an object",
        '{"t": "f({"a": "b"})\ng({"c": 1})", "n": 1}',
        {"t": 'f({"a": "b"})\ng({"c": 1})', "n": 1},
        {"inner_quote", "control_character"},
    ),
    (
        "code with a comment",
        '{"t": "x = "a"  # first\ny = 2", "n": 1}',
        {"t": 'x = "a"  # first\ny = 2', "n": 1},
        {"inner_quote", "control_character"},
    ),
    (
        "code with branches",
        '{"t": "if a:\n x = "b"\nelse:\n x = "c"", "n": 1}',
        {"t": 'if a:\n x = "b"\nelse:\n x = "c"', "n": 1},
        {"inner_quote", "control_character"},
    ),
    (
        "Python's literals",
        '{"a": True, "b": None, "c": False}',
        {"a": True, "b": None, "c": False},
        {"literal_spelling"},
    ),
    ("undefined, NULL", '{"a": undefined, "b": NULL}', {"a": None, "b": None}, {"literal_spelling"}),
    ("closers at the end", '{"a": {"b": [1, 2', {"a": {"b": [1, 2]}}, {"missing_closer"}),
    ("an equals sign", '{"a" = 1, "b" => 2}', {"a": 1, "b": 2}, {"missing_colon"}),
    ("no colon", '{"a" 1}', {"a": 1}, {"missing_colon"}),
    ("keys with equals signs", '{a="x", b="y"}', {"a": "x", "b": "y"}, {"missing_colon", "unquoted_key"}),
    ("lines for commas", '[["a"]\ntrue\n["b"]\nc]', [["a"], True, ["b"], "c"], {"missing_comma", "unquoted_text"}),
    ("no comma in a list", '["a" "b"\n"c"]', ["a", "b", "c"], {"missing_comma"}),
    ("no comma in an object", '{"a": "x"\n "b": 2 "c": true}', {"a": "x", "b": 2, "c": True}, {"missing_comma"}),
    ("no closing quote", '{"a": "north, "b": 2}', {"a": "north", "b": 2}, {"missing_quote"}),
    (
        "no closing quote behind speech",
        '{"a": "so "hi, "b": 2}',
        {"a": 'so "hi', "b": 2},
        {"missing_quote", "inner_quote"},
    ),
    ("no opening quote of a key", '{bed": "north"}', {"bed": "north"}, {"missing_quote"}),
    ("no value", '{"a": , "b": 2}', {"a": None, "b": 2}, {"missing_value"}),
    ("no last value", '{"b": 2, "a":}', {"b": 2, "a": None}, {"missing_value"}),
    ("a plus sign, bare points", '{"a": +5, "b": .5, "c": 5.}', {"a": 5, "b": 0.5, "c": 5.0}, {"number_form"}),
    ("groups of digits", '{"a": 1_000}', {"a": 1000}, {"number_form"}),
    ("half a number", '{"a": 1e, "b": 2}', {"a": 1.0, "b": 2}, {"half_value"}),
    ("a tuple", '{"a": (1, "b")}', {"a": [1, "b"]}, {"tuple"}),
    ("bare keys", "{bed: 1, row-2: 2, größe: 3, 4: 5}", {"bed": 1, "row-2": 2, "größe": 3, "4": 5}, {"unquoted_key"}),
    ("words", '{"a": north bed, "b": 1}', {"a": "north bed", "b": 1}, {"unquoted_text"}),
    ("an address", '{"u": https://ex.org/a?b=c#d}', {"u": "https://ex.org/a?b=c#d"}, {"unquoted_text"}),
    ("a day, a version", '{"d": 2026-03-01, "v": 1.4.2}', {"d": "2026-03-01", "v": "1.4.2"}, {"unquoted_text"}),
    ("zeros before a number", '{"a": 007}', {"a": "007"}, {"number_form"}),
    ("the same twice", '{"a": 1, "a": 1}', {"a": 1}, {"same_key"}),
    ("another value", '{"b": {"a": 1, "a": 2}}', {"b": {"a": 2}}, {"repeated_key"}),
    ("no number", '{"a": NaN, "b": Infinity}', {"a": "NaN", "b": "Infinity"}, {"unquoted_text"}),
    ("wide blanks", '{\u00a0\ufeff"a":\u30001\u2003}', {"a": 1}, {"white_space"}),
    ("a brace for a bracket", '{"a": [1, 2}, "b": 3}', {"a": [1, 2], "b": 3}, {"wrong_closer"}),
    ("a bracket for a brace", '{"a": "b"]', {"a": "b"}, {"wrong_closer"}),
    ("a stray parenthesis", '{"a": [1])}', {"a": [1]}, {"wrong_closer"}),
    ("doubled braces", '{{"a": 1}}', {"a": 1}, {"wrong_closer"}),
]


@pytest.mark.parametrize(("written", "value", "rules"), [row[1:] for row in RULES], ids=[row[0] for row in RULES])
def test_a_fault_is_read_as_it_was_meant(written: str, value: object, rules: set[JsonRepair]) -> None:
    found = read_in_every_cut(written)
    assert found.node.value(completed=True) == value
    assert found.repairs.keys() == rules


def test_each_rule_has_an_example() -> None:
    assert set().union(*(row[3] for row in RULES)) == set(get_args(JsonRepair))


# --- good JSON ---

# What code, prose and files are made of that stands in strings.
TEXTS = (
    *(
        '"',
        "'",
        "`",
        "“",
        "”",
        "‘",
        "’",
        '"""',
        "\\",
        '\\"',
        "\\\\",
        "\\n",
        "\\u0041",
        "\n",
        "\t",
        "\r\n",
        "\x00",
        "\x7f",
    ),
    *("{", "}", "[", "]", "(", ")", '"}', '"]', "}}", '{"a": "b"}', '"a": 1', ",", ", ", '", "', '": "', ":", ";", "="),
    *(
        "//",
        "/*",
        "*/",
        "#",
        "# x",
        "True",
        "None",
        "null",
        "...",
        "```",
        "\n```\n",
        "</tool_call>",
        "<|im_end|>",
        "<b>",
    ),
    *('print("a, b")', "it's", "x = {'k': \"v\"}", "C:\\tmp\\new", r"^\d+\.(\w*)$", "SELECT \"a\" FROM 'b';", "$(ls)"),
    *("é", "水", "⛵", "\u2028", "\u00a0", "\ufeff", "\ud83d", " ", "  ", "-1", "1e5", "a", "key"),
)
STRINGS = st.lists(st.sampled_from(TEXTS), max_size=7).map("".join) | st.text(max_size=6)
SCALARS = STRINGS | st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([None, True, False, -7, 10**25])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(STRINGS, inner, max_size=4), max_leaves=8
)
FORMS: list[dict[str, Any]] = [
    {},
    {"indent": 2},
    {"indent": "\t"},
    {"separators": (",", ":")},
    {"separators": (" ,\n", " :\t")},
    {"separators": (",\r\n", "  : ")},
]
JSON_TEXTS = st.builds(
    lambda value, ascii_, form: json.dumps(value, ensure_ascii=ascii_, **form),
    st.lists(VALUES, max_size=4) | st.dictionaries(STRINGS, VALUES, max_size=4),
    st.booleans(),
    st.sampled_from(FORMS),
)
SIZES = st.lists(st.integers(1, 25), min_size=1, max_size=6)


@fuzz
@given(text=JSON_TEXTS, sizes=SIZES, behind=st.sampled_from(["", "\n", "}", "</tool_call>", "\nSo it is.", ", {", "x"]))
def test_good_json_is_never_altered(text: str, sizes: list[int], behind: str) -> None:
    for parts in ([text + behind], list(text + behind), cut(text + behind, sizes)):
        found = read(parts)
        assert (found.text, found.repairs, found.cut) == (text, {}, False)


# What coding models put into one string.
PROGRAMS = (
    'def f(a, b="x"):\n    """Say "hi"."""\n    return {"a": a, "b": [b, \'c\']}  # {"d": 1}, "e": 2\n',
    "import re\nP = re.compile(r\"['](\\w+)[']\\s*:\")\nprint(f\"{P!r}, {json.dumps({'a': 1})}\")\n",
    '{"name": "pier", "version": "1.0.0", "scripts": {"test": "jest"}, "files": ["a", "b"]}\n',
    '# Title\n\n- *one* `two`\n\n```python\nx = {"a": 1}\n```\n\n| a | b |\n',
    '<a class="b" onclick=\'f("x")\'>It\'s &quot;fine&quot;</a><!-- "c": {} -->',
    'SELECT "name", \'it\'\'s\' FROM "ships" WHERE note LIKE \'%"%\'; -- why, "what"',
    "C:\\Users\\new\\table\\ \\\\host\\share\\",
    'sed -E \'s/"([^"]*)", *"/\\1/g\' "$f" | jq \'.[] | {"a": .b}\' > "out.json"',
    '", "x": "y"}]}</tool_call>\n<tool_call>{"name": "ping", "arguments": {"',
)
MISTAKES: list[Callable[[str], str]] = [
    lambda text: f"{text[:-1]},}}",
    lambda text: f"{{,{text[1:]}",
    lambda text: f'{text[:-1]}, "z": True,}}',
    lambda text: f"{text[:-1]}, z: 1}}",
    lambda text: text[:-1],
    lambda text: f"{{// first\n{text[1:]}",
    lambda text: text.replace('"n": 7', "'n': 7"),
    lambda text: text.replace('"n": 7', "n = 7"),
    lambda text: text.replace('"n": 7,', '"n": 7'),
]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("ascii_", [True, False])
def test_a_good_string_is_not_touched_when_another_place_is_wrong(program: str, ascii_: bool) -> None:
    good = json.dumps({"n": 7, "program": program, "list": [program, program]}, ensure_ascii=ascii_)
    assert read_in_every_cut(good)[:4] == (good, {}, False, "")
    for mistake in MISTAKES:
        value = read_in_every_cut(mistake(good)).node.value()
        assert isinstance(value, dict)
        assert (value["n"], value["program"], value["list"]) == (7, program, [program, program])


@pytest.mark.parametrize("program", [*PROGRAMS[:6], PROGRAMS[7]])
def test_code_whose_quotes_were_not_escaped_is_not_torn_apart(program: str) -> None:
    """Where no reading is certain the string takes the rest, and the value is cut then: never half of the code."""
    for raw in (program, program.replace("\n", "\\n")):
        for written in (f'{{"program": "{raw}", "n": 7}}', f'{{"n": 7, "program": "{raw}"}}'):
            found = read_in_every_cut(written)
            assert found.cut or found.node.value() == {"n": 7, "program": program}


# --- mutators ---


def outside(text: str, change: Callable[[str], str]) -> str:
    """A JSON text with something changed outside its strings."""
    strings = re.compile(r'("(?:[^"\\]|\\.)*")')
    return "".join(part if number % 2 else change(part) for number, part in enumerate(strings.split(text)))


MUTATORS: dict[str, Callable[[str], str]] = {
    "trailing commas": lambda text: outside(text, lambda part: part.replace("}", ",}").replace("]", ",]")),
    "doubled commas": lambda text: outside(text, lambda part: part.replace(",", ",,")),
    "lines for commas": lambda text: outside(text, lambda part: part.replace(", ", "\n")),
    "comments": lambda text: outside(
        text, lambda part: part.replace(",", ", // a: 'b', {\n").replace(":", ": /* 1, */")
    ),
    "hashes": lambda text: outside(text, lambda part: part.replace(",", " # so\n,").replace("{", "{ # open\n")),
    "Python's literals": lambda text: outside(
        text, lambda part: part.replace("true", "True").replace("false", "False").replace("null", "None")
    ),
    "equals signs": lambda text: outside(text, lambda part: part.replace(":", " =")),
    "arrows": lambda text: outside(text, lambda part: part.replace(":", " =>")),
    "no closers": lambda text: text.rstrip("}]"),
    "wide blanks": lambda text: outside(text, lambda part: part.replace(" ", "\u3000")),
    "tuples": lambda text: outside(text, lambda part: part.replace("[", "(").replace("]", ")")),
    "closers too many": lambda text: f"{text}}}}}]",
    "raw newlines": lambda text: re.sub(r"(?<!\\)((?:\\\\)*)\\n", "\\1\n", text),
    "a fence": lambda text: f"{text}\n```\n",
    "Python": lambda text: repr(json.loads(text)),
}
NAMES = st.text("abcdefgxyz_", min_size=2, max_size=6)
# Values of calls as they mostly are: names, numbers, and strings of words and code.
PHRASES = st.lists(
    st.sampled_from(
        ["tide", "x = 1", "two, three", "f(a)", "é", "it is", "{k}", "[1]", "a: b", "#", "//", "\n", "\t", '"q"', "\\"]
    ),
    min_size=1,
    max_size=4,
).map(" ".join)
CALL_VALUES = st.recursive(
    PHRASES | st.integers(-99, 10**9) | st.sampled_from([True, False, None, 0.5, -1.25]),
    lambda inner: st.lists(inner, min_size=1, max_size=3) | st.dictionaries(NAMES, inner, min_size=1, max_size=3),
    max_leaves=6,
)
ARGUMENTS = st.dictionaries(NAMES, CALL_VALUES, min_size=1, max_size=4)


@pytest.mark.parametrize("mutator", MUTATORS)
@fuzz
@given(arguments=ARGUMENTS, ascii_=st.booleans(), sizes=SIZES)
def test_a_mutated_object_says_what_it_said(
    mutator: str, arguments: dict[str, Any], ascii_: bool, sizes: list[int]
) -> None:
    written = MUTATORS[mutator](json.dumps(arguments, ensure_ascii=ascii_))
    for parts in ([written], list(written), cut(written, sizes)):
        assert read(parts).node.value() == arguments, written


WORDS = st.sampled_from(["north", "two words", "v1.2", "2026-01-02", "https://ex.org/a", "größe", "a-b_c", "10-20"])
BARE = st.recursive(
    WORDS | st.integers(-9, 99) | st.booleans(),
    lambda inner: st.lists(inner, min_size=1, max_size=3) | st.dictionaries(NAMES, inner, min_size=1, max_size=3),
    max_leaves=6,
)


@fuzz
@given(arguments=st.dictionaries(NAMES, BARE, min_size=1, max_size=4), sizes=SIZES)
def test_an_object_without_any_quotes_says_the_same(arguments: dict[str, Any], sizes: list[int]) -> None:
    written = json.dumps(arguments, ensure_ascii=False).replace('"', "")
    for parts in ([written], cut(written, sizes)):
        assert read(parts).node.value() == arguments, written


@fuzz
@given(arguments=st.dictionaries(NAMES, BARE, min_size=1, max_size=4), marks=st.sampled_from("''|``|“”|‘’".split("|")))
def test_an_object_in_other_quotes_says_the_same(arguments: dict[str, Any], marks: str) -> None:
    strings = re.compile(r'"([^"]*)"')
    written = strings.sub(rf"{marks[0]}\1{marks[1]}", json.dumps(arguments, ensure_ascii=False))
    assert read_in_every_cut(written).node.value() == arguments, written


# --- any text ---

ATOMS = (
    *TEXTS,
    *(
        '{"',
        '"a":',
        '"a": ',
        '"k": "v"',
        "[1, 2]",
        "tr",
        "1e",
        "007",
        ".5",
        "+5",
        "1_0",
        "NaN",
        "?",
        "@",
        "//x\n",
        "/* c */",
    ),
    *(
        "\\x",
        "\\_",
        "\\u12",
        "\\ud83d",
        "\\ude00",
        "\\\r",
        "\\\r\n",
        "'b'",
        "“c”",
        "=>",
        "`d`",
        "'''",
        "``",
        "..",
        '\\",',
    ),
    *(" " * 300, "e" * 260, " " * 520),
)


def is_whole(node: Node) -> bool:
    """Whether each part of a value was written."""
    parts = [node]
    for part in parts:
        parts += [entry.value for entry in (*part.members, *part.items)]
    return all(part.kind not in ("missing", "half") for part in parts)


@examples(400)
@given(
    begin=st.sampled_from(["{", "[", '{"a": ', '{"a": "', '["', "{'a': '", '[{"a": "b', '{"a": "b" "c" ']),
    atoms=st.lists(st.sampled_from(ATOMS), max_size=16),
    sizes=SIZES,
)
def test_any_text_is_read_to_its_end_and_alike_in_every_cut(begin: str, atoms: list[str], sizes: list[int]) -> None:
    text = begin + "".join(atoms)
    whole = read([text])
    assert text.endswith(whole.rest)
    for parts in (list(text), cut(text, sizes)):
        assert read(parts)[:4] == whole[:4]
    if is_whole(whole.node):
        json.loads(whole.text)


# --- hostile ---

HOSTILE: dict[str, Callable[[int], str]] = {
    "one string": lambda size: '{"a": "' + "x" * 20 * size + '"}',
    "a string of commas": lambda size: '{"a": "' + ", " * size + '"}',
    "a string of escapes": lambda size: '{"a": "' + "\\n" * size + '"}',
    "a string of raw newlines": lambda size: '{"a": "' + "\n" * size + '"}',
    "quotes": lambda size: '{"a": "' + '"' * size,
    "quotes and commas": lambda size: '{"a": "' + '", ' * size,
    "quotes and closers": lambda size: '{"a": "' + '"}' * size,
    "code in a string": lambda size: '{"a": "' + 'f({"b": "c"}, d="e")\n' * (size // 10) + '"}',
    "escaped quotes and commas": lambda size: '{"a": "' + '\\",' * size + '"}',
    "blanks": lambda size: "{" + " " * 20 * size + "}",
    "comments": lambda size: "{" + "/**/" * size + "}",
    "one comment": lambda size: "{/*" + "*" * 20 * size + "*/}",
    "comments behind a string": lambda size: '{"a": "b" ' + "/**/" * size + "}",
    "commas": lambda size: "[" + "," * size + "]",
    "numbers": lambda size: "[" + "1, " * size + "1]",
    "digits": lambda size: "[" + "1" * 20 * size + "]",
    "numbers without commas": lambda size: "[" + "1 " * size + "]",
    "words": lambda size: "[" + "a b " * size + "]",
    "members": lambda size: "{" + '"a": 1, ' * size + "}",
    "lists": lambda size: "[" + "[], " * size + "]",
    "parentheses": lambda size: "{" + ")" * size + "}",
    "colons": lambda size: "{" + ":" * size + "}",
    "backticks": lambda size: "[" + "`" * size + "]",
    "dots": lambda size: "[" + "..." * size + "]",
}


def calls_for(text: str, size: int) -> int:
    """How many functions are called while a text is read that comes in pieces of a size."""
    count = 0

    def tick(*_: object) -> None:
        nonlocal count
        count += 1

    parts = [text[at : at + size] for at in range(0, len(text), size)]
    sys.setprofile(tick)
    try:
        read(parts)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("title", HOSTILE)
@pytest.mark.parametrize("size", [7, 10**9])
def test_the_work_grows_as_the_text(title: str, size: int) -> None:
    """Counted in calls of functions; `bench/floods.py` has the times."""
    one, four = (calls_for(HOSTILE[title](length), size) for length in (400, 1_600))
    assert four <= 5 * one + 100


@pytest.mark.parametrize("bracket", ["[", "(", '{"a":', "[(", '{"a": [{"b": "c", "d":'])
@pytest.mark.parametrize("size", [1, 10**9])
def test_brackets_without_end_are_too_deep(bracket: str, size: int) -> None:
    text = "[" + bracket * 100_000
    with pytest.raises(TooDeepError, match=f"more deeply than {MAX_DEPTH} levels"):
        read(text[at : at + size] for at in range(0, len(text), size))
    assert read_json(text) is None


def test_a_value_as_deep_as_allowed_is_read() -> None:
    text = "[" * MAX_DEPTH + "1" + "]" * MAX_DEPTH
    assert read_in_every_cut(text)[:3] == (text, {}, False)
    with pytest.raises(TooDeepError):
        read([f"[{text}]"])


def test_a_megabyte_in_one_string_is_passed_on_as_it_comes() -> None:
    body = 'x = \\"y\\", {1: 2};\\n' * 50_000
    text = f'{{"a": "{body}"}}'
    for size in (997, len(text)):
        found = read(text[at : at + size] for at in range(0, len(text), size))
        assert found[:4] == (text, {}, False, "")


def test_thoughts_in_any_number_stand_before_a_value() -> None:
    assert callwright.loads("a</think>" * 5_000 + "[1]") == [1]


@pytest.mark.parametrize("word", ["4" * 200_000 + "x", "4_" * 100_000 + "x", "4." + "4" * 200_000 + "x"])
def test_a_long_word_that_begins_as_a_number_is_read_once(word: str) -> None:
    assert read(["[" + word + "]"]).text == f'["{word}"]'


@pytest.mark.parametrize(("text", "out"), [("[1\n7", "[1\n,7]"), ("[1.5 -2]", "[1.5 ,-2]")])
def test_the_end_of_a_word_is_found_in_every_cut(text: str, out: str) -> None:
    for parts in ([text], list(text), [text[:-1], text[-1]]):
        assert read(parts).text == out
