"""Requests that are nearly right, and what becomes of one that was read: the bodies that go to model servers."""

from typing import Any

import msgspec

from callwright import RequestError
from callwright.constraints.compile import compiled, constraint_key
from callwright.conversation import Conversation
from callwright.tolerant_json.codec import encode
from callwright.turn.model import Mode, Model
from callwright.turn.output import GenerationReader
from callwright.turn.plan import build_generation_request
from callwright.upstreams import chat, completions
from callwright.upstreams.simulated.scripted import ScriptedUpstream
from callwright.wire.errors import error_body
from fuzz import values, words
from tests.support.choices import Choices
from tests.support.control_tokens import assert_none_forged, tokens_of

__all__ = ["body", "refused", "tool", "upstream_bodies_hold"]

UPSTREAM = ScriptedUpstream(())
GRAMMARS = ('start: "a"', "start: x", "start: /a+/", "start: start", "[a-z]+", "(", "start: (", "")
MODES: tuple[Mode, ...] = ("native", "prompt", "raw", "raw")
SERVERS: tuple[Any, ...] = ("openai", "vllm", "sglang", "llamacpp", "ollama")
RAW = (completions._openai_body, completions._vllm_body, completions._sglang_body, completions._llamacpp_body)
TARGETS: tuple[Any, ...] = ("llguidance", "xgrammar", "gbnf", "json")


def tool(draw: Choices, name: str, *, shape: str) -> dict[str, Any]:
    """A tool in the shape of one of the APIs."""
    if draw.once_in(6):
        given: dict[str, Any] = {"name": name}
        if draw.once_in(2):
            grammar = {"syntax": draw.one(("lark", "regex", "bnf")), "definition": draw.one(GRAMMARS)}
            given["format"] = {"type": "grammar", **({"grammar": grammar} if shape == "chat" else grammar)}
        kind = "custom"
    else:
        given = {"name": name, "description": values.string(draw)}
        if not draw.once_in(6):
            given["parameters"] = values.arguments(draw, sane=not draw.once_in(3))
        if draw.once_in(5):
            given["strict"] = draw.one((True, False, None))
        kind = "function"
    return {"type": kind, kind: given} if shape == "chat" else {"type": kind, **given}


def body(draw: Choices, request: dict[str, Any]) -> bytes:
    """A request with some things in it changed, and now and then its bytes."""
    for _ in range(draw.one((0, 0, 0, 1, 1, 2, 3))):
        request = values.mutated(draw, request)
    text = encode(request)
    if draw.once_in(8):
        at = draw.number(0xFFFF) % (len(text) + 1)
        text = text[:at] + draw.bytes(12) + text[at + draw.number(4) :]
    return text


def refused(error: RequestError) -> None:
    """A refusal is one of the client's, in OpenAI's form."""
    assert 400 <= error.status < 500
    told = error_body(error)
    assert told.error.message
    encode(told)


def upstream_bodies_hold(draw: Choices, conversation: Conversation, fields: dict[str, Any]) -> None:
    """What a model is asked in one of the ways can be sent, and no text in it has become a control token."""
    mode: Mode = draw.one(MODES)
    dialect = draw.one(words.DIALECTS)
    draw.about = f"{mode} {dialect}"
    model = Model(
        name="m",
        upstream=UPSTREAM,
        upstream_model=draw.one(("m", "qwen3", "gpt-oss", "mistral")),
        mode=mode,
        dialect=None if mode == "native" else dialect,
        arguments_as_objects=draw.once_in(3),
        describe_media=draw.once_in(2),
    )
    try:
        generation = build_generation_request(model, conversation, fields, "2026-01-01")
    except RequestError as error:
        refused(error)
        return
    if generation.constraint is not None:
        compiled(generation.constraint, draw.one(TARGETS), constraint_key(generation.constraint))
    prompt = generation.prompt
    if prompt is None:
        msgspec.json.decode(encode({"messages": generation.messages, **chat._offered(generation, draw.one(SERVERS))}))
    else:
        msgspec.json.decode(encode(draw.one(RAW)(generation)))
        assert prompt.text == "".join(piece.text for piece in prompt.pieces)
        assert_none_forged(prompt, {*prompt.marks, *tokens_of(dialect)})
    GenerationReader(model, generation).finish()
