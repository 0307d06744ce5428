"""A shape as a structural tag, for xgrammar: vLLM, SGLang, TensorRT-LLM.

Control tokens are written as text, which their tokens match. The stop token after the last call is left out: the engine
allows it by itself once the grammar is complete. Arguments that are not JSON are a grammar in the tag.
"""

from typing import Any, Final, assert_never

from callwright.constraints.format_pieces import Fixed, Number
from callwright.constraints.gbnf_writer import gbnf
from callwright.constraints.tree import (
    Alternatives,
    Concatenation,
    GrammarNode,
    Json,
    Literal,
    Optional,
    Pattern,
    Ref,
    Repeat,
    Text,
    TextUntil,
    Triggered,
    Values,
)

# A model may write blanks forever without a limit. Known to xgrammar from 0.2.4 on; older ones ignore it. (vLLM's
# `disable_any_whitespace` and `whitespace_pattern` are for a whole server: in a request they have no effect, vllm#49520
# and #26362.)
_MAX_BLANKS: Final = 1


def structural_tag(node: GrammarNode) -> dict[str, Any]:
    """The tag as a value."""
    return {"type": "structural_tag", "format": _format(node)}


def json_format(schema: object) -> dict[str, Any]:
    """JSON of a schema, with one blank at most between two parts."""
    return {"type": "json_schema", "json_schema": schema, "max_whitespace_cnt": _MAX_BLANKS}


def _format(node: GrammarNode) -> dict[str, Any]:
    match node:
        case Literal(fixed):
            return _sequence(_fixed(fixed))
        case Json() | Values() | Repeat():
            return {"type": "grammar", "grammar": gbnf(node).grammar}
        case TextUntil(_, words) if words is not None and words.lark is None:
            return {"type": "grammar", "grammar": gbnf(node).grammar}
        case TextUntil(end):
            return {"type": "tag", "begin": "", "content": {"type": "any_text"}, "end": _text(end)}
        case Text():
            return {"type": "any_text"}
        case Pattern(expression):
            return {"type": "regex", "pattern": expression}
        case Ref():
            raise AssertionError
        case Concatenation(nodes):
            return _sequence([_format(inner) for inner in nodes])
        case Alternatives(nodes):
            return {"type": "or", "elements": [_format(inner) for inner in nodes]}
        case Optional(inner):
            return {"type": "optional", "content": _format(inner)}
        case Triggered(trigger, rest, end, again):
            tag = {"type": "tag", "begin": trigger, "content": _format(rest), "end": _text(end)}
            return {
                "type": "triggered_tags",
                "triggers": [trigger],
                "tags": [tag],
                "at_least_one": False,
                "stop_after_first": again is None,
            }
        case _:
            assert_never(node)


def _sequence(elements: list[dict[str, Any]]) -> dict[str, Any]:
    """Rows in rows as one, neighbouring texts joined."""
    flat: list[dict[str, Any]] = []
    for element in elements:
        for part in element["elements"] if element["type"] == "sequence" else [element]:
            if flat and part["type"] == flat[-1]["type"] == "const_string":
                flat[-1] = {"type": "const_string", "value": flat[-1]["value"] + part["value"]}
            else:
                flat.append(part)
    return flat[0] if len(flat) == 1 else {"type": "sequence", "elements": flat or [_const("")]}


def _fixed(fixed: Fixed) -> list[dict[str, Any]]:
    return [
        {"type": "regex", "pattern": piece.pattern} if isinstance(piece, Number) else _const(piece.text)
        for piece in fixed
    ]


def _const(text: str) -> dict[str, Any]:
    return {"type": "const_string", "value": text}


def _text(fixed: Fixed) -> str:
    return "".join(piece.text for piece in fixed if not isinstance(piece, Number))
