"""What a schema says is the same for checks, readers and prompts, whatever its author calls a type."""

import json
import random
from typing import Any

import pytest

import callwright
from callwright.conversation import FunctionTool
from callwright.dialects.base import dialect_names, get_dialect
from callwright.openai_format.messages import read_conversation
from callwright.openai_format.tools import read_tools
from callwright.schema.plain import plain_schema, resolved_schema, type_words
from callwright.schema.shown import hidden_keywords

Json = dict[str, Any]
WORDS = {"float": 2.5, "int": 3, "uint32": 7, "long": 9, "bool": True, "list": [1], "dict": {"a": 1}, "str": "x"}

PLAIN: dict[str, tuple[Json, Json]] = {
    "a nullable text": ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
    "a nullable enumeration": (
        {"type": "string", "enum": ["a"], "nullable": True},
        {"type": ["string", "null"], "enum": ["a", None]},
    ),
    "a nullable reference": (
        {"$ref": "#/$defs/A", "description": "A.", "nullable": True},
        {"description": "A.", "anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}]},
    ),
    "not nullable": ({"type": "string", "nullable": False}, {"type": "string", "nullable": False}),
    "type words": ({"type": ["int", "null"]}, {"type": ["integer", "null"]}),
    "capitals": (
        {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}},
        {"type": "object", "properties": {"a": {"type": "string"}}},
    ),
    "anything": ({"type": "any", "description": "x"}, {"description": "x"}),
    "values that look like schemas": (
        {"enum": [{"type": "int", "nullable": True}], "default": {"type": "float"}},
        {"enum": [{"type": "int", "nullable": True}], "default": {"type": "float"}},
    ),
    "a parameter called type": (
        {"type": "object", "properties": {"type": {"type": "bool"}, "nullable": {"type": "null"}}},
        {"type": "object", "properties": {"type": {"type": "boolean"}, "nullable": {"type": "null"}}},
    ),
}


@pytest.mark.parametrize(("given", "wanted"), PLAIN.values(), ids=list(PLAIN))
def test_a_schema_is_read_in_the_words_of_json_schema(given: Json, wanted: Json) -> None:
    made = plain_schema(given)
    assert made == wanted
    assert plain_schema(made) is made, "what is plain stays the same object"


def tool(**properties: Any) -> Json:
    return {
        "type": "function",
        "function": {"name": "plan", "parameters": {"type": "object", "properties": properties}},
    }


@pytest.mark.parametrize("name", dialect_names())
def test_null_is_null_where_a_schema_is_nullable(name: str) -> None:
    offered = tool(note={"type": "string", "nullable": True}, rows={"type": "array", "items": {}, "nullable": True})
    written = callwright.write(
        [{"name": "plan", "arguments": {"note": None, "rows": None}}], tools=[offered], dialect=name
    )
    turn = callwright.parse(written, dialect=name, tools=[offered])
    assert json.loads(turn.calls[0].arguments) == {"note": None, "rows": None}
    assert not turn.problems


@pytest.mark.parametrize("name", dialect_names())
def test_types_in_the_words_of_other_languages_are_types(name: str) -> None:
    offered = tool(**{f"a_{word}": {"type": word} for word in WORDS})
    arguments = {f"a_{word}": value for word, value in WORDS.items()}
    written = callwright.write([{"name": "plan", "arguments": arguments}], tools=[offered], dialect=name)
    turn = callwright.parse(written, dialect=name, tools=[offered])
    assert json.loads(turn.calls[0].arguments) == arguments
    assert "arguments_unchecked" not in [problem.kind for problem in turn.problems]
    wrong = callwright.parse(
        callwright.write([{"name": "plan", "arguments": {"a_int": "many"}}], dialect=name),
        dialect=name,
        tools=[offered],
    )
    assert "invalid_arguments" in [problem.kind for problem in wrong.problems]


def test_the_words_that_are_no_types_are_told() -> None:
    (read,) = read_tools([tool(a={"type": "int"}, b={"type": "array", "items": {"type": ["float", "null"]}})])
    assert type_words(read) == ("int", "float")


def test_a_schema_that_leads_to_itself_is_cut() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}, "value": {"const": 5}}}
    schema = {"type": "object", "properties": {"head": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": node}}
    assert resolved_schema(FunctionTool("plan", parameters=schema)) == {
        "type": "object",
        "properties": {
            "head": {
                "type": "object",
                "properties": {
                    "next": {"type": "object", "description": "(nested: Node again)"},
                    "value": {"enum": [5], "type": "integer"},
                },
            }
        },
    }


class _Schemas:
    """Random schemas in which each keyword says something that nothing else says: `words`, by keyword."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self.words: dict[str, str] = {}
        self.defs: Json = {}

    def word(self, keyword: str) -> str:
        word = f"W{len(self.words)}X"
        self.words[word] = keyword
        return word

    def number(self, keyword: str) -> int:
        number = 90_001 + len(self.words)
        self.words[str(number)] = keyword
        return number

    def schema(self, depth: int = 0) -> Json:
        kinds = ["text", "number", "enum", "const", "null enum", "nullable", "ref", "all", "word"]
        kind = self._chance.choice(kinds + ["object", "array", "union"] * (depth < 3))
        made = self._of(kind, depth)
        if self._chance.random() < 0.6:
            made["description"] = self.word("description")
        return made

    def _of(self, kind: str, depth: int) -> Json:
        match kind:
            case "number":
                return {"type": "integer", "minimum": self.number("minimum"), "default": self.number("default")}
            case "enum":
                return {"type": "string", "enum": [self.word("enum"), self.word("enum")]}
            case "const":
                return {"const": self.word("const")}
            case "null enum":
                return {"type": ["string", "null"], "enum": [self.word("enum"), None]}
            case "nullable":
                return {"type": "string", "nullable": True, "enum": [self.word("enum")]}
            case "ref" | "all":
                key = f"D{len(self.defs)}"
                self.defs[key] = {}
                self.defs[key] = self.schema(depth + 2)
                to = {"$ref": f"#/$defs/{key}"}
                return to if kind == "ref" else {"allOf": [to]}
            case "word":
                return {"type": self._chance.choice([*WORDS])}
            case "object":
                return {"type": "object", "properties": {self.word("properties"): self.schema(depth + 1)}}
            case "array":
                return {"type": "array", "items": self.schema(depth + 1)}
            case "union":
                return {"anyOf": [self.schema(depth + 1), {"type": "null"}]}
        return {"type": "string", "format": self.word("format"), "pattern": self.word("pattern")}


@pytest.mark.parametrize("name", dialect_names())
def test_a_prompt_shows_all_of_a_schema_but_what_its_dialect_says(name: str) -> None:
    dialect = get_dialect(name)
    for seed in range(60):
        schemas = _Schemas(seed)
        properties = {schemas.word("name"): schemas.schema() for _ in range(3)}
        offered = tool(**properties)
        offered["function"]["parameters"]["$defs"] = schemas.defs
        (read,) = read_tools([offered])
        hidden = dialect.hidden_keywords([read])
        asked = [{"role": "user", "content": "Plan."}]
        text = callwright.render(asked, dialect=name, tools=[offered]).text
        told = "".join(
            str(message["content"])
            for message in dialect.messages(read_conversation(asked, [offered], None), dialect.options())
        )
        for word, keyword in schemas.words.items():
            # What stands in a part that is left out is left out with it.
            keyword = (
                "enum" if keyword == "const" and dialect.shown_keywords and dialect.shown_keywords.resolves else keyword
            )
            excused = bool(hidden) and (keyword in hidden or hidden & {"properties", "items", "anyOf", "$ref", "allOf"})
            assert excused or word in text, (seed, keyword, word, offered)
            assert excused or word in told, (seed, keyword, word, offered)


def test_a_dialect_that_shows_all_hides_nothing() -> None:
    (read,) = read_tools([tool(a={"type": "integer", "minimum": 1})])
    assert get_dialect("json").hidden_keywords([read]) == frozenset()
    shown = get_dialect("gemma4").shown_keywords
    assert shown is not None
    assert hidden_keywords(read, shown) == {"minimum"}


@pytest.mark.parametrize("kinds", [["int", ["x"]], [["int"]], ["float", {}], [5], {"a": 1}])
def test_a_type_that_is_no_word_stays_as_it_is(kinds: object) -> None:
    schema = {"type": "object", "properties": {"a": {"type": kinds}}}
    assert plain_schema(schema) == schema
