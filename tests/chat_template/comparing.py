"""What is found of the known templates, held against the dialects that are declared for them."""

import json
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from callwright.calls.toolset import Toolset
from callwright.chat_template.dialect import TemplateFindings, dialect_of
from callwright.chat_template.sources import ChatTemplate
from callwright.constraints.constraint import Constraint
from callwright.constraints.lark import Vocabulary, lark
from callwright.constraints.shape import sentence, shape_of
from callwright.conversation import AssistantTurn, Call, FunctionTool, Message, TextPart
from callwright.dialects.base import Dialect, add_dialect, get_dialect
from callwright.reading.collect import collect
from callwright.reading.parser import OutputParser, PassThrough
from tests.oracle.probing import Probed, findings, read_probed
from tests.support.grammar_engines import Llguidance

TOOLS = (
    FunctionTool(
        "book_berth",
        None,
        {
            "type": "object",
            "properties": {
                "harbour": {"type": "string"},
                "nights": {"type": "integer"},
                "shore_power": {"type": "boolean"},
                "crew": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["harbour"],
            "additionalProperties": False,
        },
    ),
    FunctionTool("moor", None, {"type": "object", "properties": {"line": {"type": "string"}}}),
)
FIRST = Call("book_berth", json.dumps({"harbour": "Oban, north pier", "nights": 2}), id="callberth")
SECOND = Call("moor", json.dumps({"line": "stern"}), id="callstern")
FULL = Call(
    "book_berth", '{"harbour": "Tobermory", "nights": 1, "shore_power": true, "crew": ["Ann", "Rob"]}', id="callfully"
)
SAID = "I look for a berth."


class Compared(Struct, frozen=True):
    """One template. `read`: what the declared dialect writes is read alike; `written`: calls are written alike;
    `constrained`: the grammar of a demanded call takes what the template writes, and no text.
    """

    template: str
    declared: str
    found: bool
    read: bool
    written: bool
    constrained: bool
    why: str

    @property
    def is_alike(self) -> bool:
        return self.found and self.read and self.written and self.constrained


def compared() -> Iterator[Compared]:
    """Every template that was recorded."""
    for number, probed in enumerate(read_probed()):
        yield _compared(number, probed)


def found_dialect(number: int, probed: Probed, found: TemplateFindings) -> Dialect:
    return add_dialect(dialect_of(f"template-known{number}", ChatTemplate(""), found))


def _compared(number: int, probed: Probed) -> Compared:
    found = findings(probed)
    declared = get_dialect(probed["dialect"])
    why = ", ".join(filter(None, [found.why, *found.differs]))
    if found.calls is None:
        return Compared(probed["template"], declared.name, False, False, False, False, why)
    dialect = found_dialect(number, probed, found)
    several = found.calls.layout.several and declared.calls.layout.several
    turns = [[FIRST], [FULL], *([[FIRST, SECOND]] if several else [])]
    return Compared(
        probed["template"],
        declared.name,
        True,
        all(_reads(dialect, declared, calls, said) for calls in turns for said in ("", SAID)),
        all(found.calls.layout.text(calls).strip() == declared.calls.layout.text(calls).strip() for calls in turns),
        _constrains(dialect),
        why,
    )


def _reads(dialect: Dialect, declared: Dialect, calls: Sequence[Call], said: str) -> bool:
    text = declared.write(AssistantTurn(None, Message("assistant", (TextPart(said),)) if said else None, list(calls)))
    return _read(dialect, text) == _read(declared, text)


def _read(dialect: Dialect, text: str) -> tuple[str, list[tuple[str, object]]]:
    parser = OutputParser(dialect, Toolset(TOOLS), PassThrough(), "assistant")
    turn = collect([*parser.feed(text), *parser.finish()])
    return (turn.content or "").strip(), [(call.name, json.loads(call.arguments)) for call in turn.calls]


def _constrains(dialect: Dialect) -> bool:
    shape = shape_of(Constraint(dialect.name, TOOLS, demanded=True, parallel=True, start="assistant"))
    node = sentence(shape, stop=False) if shape is not None else None
    if node is None:
        return False
    controls = dialect.prompt.marks.controls
    names = {control: f"<[{256 + number}]>" for number, control in enumerate(controls)}
    held = Llguidance(lark(node, Vocabulary(names)), controls)
    layout = dialect.calls.layout
    return held.accepts(layout.text([replace(FIRST, id="")]).removesuffix(layout.stop)) and not held.accepts(SAID)
