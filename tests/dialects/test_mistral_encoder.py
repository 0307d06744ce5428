"""Our prompts against those that Mistral's own encoder makes of the same conversations, in each of its versions."""

import json
import re
from typing import Any, Final

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from callwright import Parser, collect, render
from callwright.conversation import Call, CallOutput, Conversation, Message, TextPart
from callwright.dialects._mistral import call_id
from callwright.dialects.base import get_dialect
from callwright.dialects.detect import by_name, options_by_name
from tests.oracle.generated import Generated, conversations, texts
from tests.oracle.mistral import VERSIONS, RefusedError, prompt_of
from tests.support.examples import examples

EFFORTS: Final = {"none": "none", "minimal": "none", **dict.fromkeys(("low", "medium", "high", "xhigh", "max"), "high")}
REASONS: Final = ("v13", "v15")


def with_their_ids(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages with ids that the encoder takes, where it takes only those of its own form."""
    ids: dict[str, str] = {}
    for message in messages:
        for call in message.get("tool_calls", ()):
            ids[call["id"]] = call_id(call["id"], len(ids))
    return [
        {
            **message,
            **({"tool_call_id": ids[message["tool_call_id"]]} if "tool_call_id" in message else {}),
            **(
                {"tool_calls": [{**call, "id": ids[call["id"]]} for call in message["tool_calls"]]}
                if "tool_calls" in message
                else {}
            ),
        }
        for message in messages
    ]


def without_reasoning(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in one.items() if key != "reasoning_content"} for one in messages]


@pytest.mark.parametrize("version", VERSIONS)
@given(data=st.data())
@examples(400)
def test_a_prompt_is_what_mistrals_own_encoder_makes(version: str, data: st.DataObject) -> None:
    asked: Generated = data.draw(conversations(beside_calls=not version.startswith("v3")))
    dialect, options = VERSIONS[version]
    messages = asked.messages if version in REASONS else without_reasoning(asked.messages)
    effort = data.draw(st.sampled_from([None, *EFFORTS])) if version == "v15" else None
    try:
        theirs = prompt_of(version, with_their_ids(messages), asked.tools, EFFORTS.get(effort or ""))
    except RefusedError:
        assume(False)
    assume(not re.search('"content": (NaN|-?Infinity), "call_id"', theirs))  # which is not JSON; we write a text
    told = {} if effort is None else {"reasoning_effort": effort}
    assert render(messages, tools=asked.tools, dialect=dialect, **options, **told).text == theirs


@pytest.mark.parametrize("version", ["v3, SentencePiece", "v3, Tekken", "v7, Tekken", "v11"])
def test_reasoning_is_shown_where_the_format_has_a_place_for_it(version: str) -> None:
    dialect, options = VERSIONS[version]
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "How deep is it?"},
        {"role": "assistant", "reasoning_content": "I look.", "content": None, "tool_calls": [made("abcdefghi")]},
        {"role": "tool", "tool_call_id": "abcdefghi", "content": "12 m"},
    ]
    shown = render(messages, dialect=dialect, **options).text
    assert ("<think>I look.</think>[TOOL_CALLS]" in shown) == (version == "v11")
    assert ("I look." in shown) == (version == "v11")


def made(id_: str) -> dict[str, Any]:
    return {"id": id_, "type": "function", "function": {"name": "f", "arguments": "{}"}}


@given(st.lists(st.one_of(texts, st.sampled_from(["call00000", "abcdefghi", "call_1", "call_2"])), max_size=8))
@examples(300)
def test_an_id_of_the_models_own_form_stays_and_any_other_becomes_one(given_ids: list[str]) -> None:
    shown = [call_id(given_id, number) for number, given_id in enumerate(given_ids)]
    assert all(re.fullmatch(r"[0-9a-zA-Z]{9}", id_) for id_ in shown)
    for given_id, id_ in zip(given_ids, shown, strict=True):
        if re.fullmatch(r"[0-9a-zA-Z]{9}", given_id):
            assert id_ == given_id
    foreign = [id_ for given_id, id_ in zip(given_ids, shown, strict=True) if given_id not in ("", id_)]
    assert len({*foreign}) == len(foreign)
    assert not {*foreign} & {given_id for given_id in given_ids if given_id in shown}


@pytest.mark.parametrize("version", [name for name in VERSIONS if name not in REASONS])
def test_ids_stay_while_a_conversation_grows(version: str) -> None:
    dialect, options = VERSIONS[version]
    found = get_dialect(dialect)
    items: tuple[Message | Call | CallOutput, ...] = (Message("user", (TextPart("Dig."),)),)
    before: list[str] = []
    for id_ in ("call_1", "abcdefghi", "call00000", "toolu_1", "call00003", "call_2"):
        items = (*items, Call("dig", "{}", id=id_), CallOutput(id_, (TextPart("Moss."),)))
        prompt = found.render(Conversation(items), found.options(**options)).text
        shown = re.findall(r'(?<=\[CALL_ID\])\w{9}|(?<="id": ")\w{9}', prompt)
        results = re.findall(
            r'(?<=\[TOOL_RESULTS\])\w{9}(?=\[)|(?<=\[TOOL_RESULTS\] )\w{9}|(?<="call_id": ")\w{9}', prompt
        )
        assert shown == results
        assert shown[:-1] == before
        assert len({*shown}) == len(shown)
        before = shown


def test_the_id_that_a_model_writes_is_the_calls_and_comes_back() -> None:
    output = (
        "[TOOL_CALLS]f[CALL_ID]Ab3dE6gH9[ARGS]{}[TOOL_CALLS]f[CALL_ID]Ab3dE6gH9[ARGS]{}[TOOL_CALLS]f[CALL_ID]x[ARGS]{}"
    )
    parser = Parser("mistral_v11", tools=[{"type": "function", "function": {"name": "f"}}])
    turn = collect([event for piece in output for event in parser.feed(piece)] + parser.finish("stop"))
    assert [call.id for call in turn.calls] == ["Ab3dE6gH9", "", ""]
    message = {"role": "assistant", "content": None, "tool_calls": [turn.calls[0].as_openai(turn.calls[0].id)]}
    assert render([message], dialect="mistral_v11").text.endswith("[TOOL_CALLS]f[CALL_ID]Ab3dE6gH9[ARGS]{}</s>")


@pytest.mark.parametrize(
    ("model", "dialect", "options"),
    [
        ("mistralai/Mistral-7B-Instruct-v0.3", "mistral_v3", {"spaces": True}),
        ("mistralai/Mistral-Nemo-Instruct-2407", "mistral_v3", {}),
        ("mistralai/Mistral-Large-Instruct-2407", "mistral_v3", {"spaces": True}),
        ("mistralai/Mistral-Large-Instruct-2411", "mistral_v3", {"flavour": "v7", "spaces": True}),
        ("mistralai/Mixtral-8x22B-Instruct-v0.1", "mistral_v3", {"spaces": True}),
        ("mistralai/Mistral-Small-Instruct-2409", "mistral_v3", {"spaces": True}),
        ("mistralai/Ministral-8B-Instruct-2410", "mistral_v3", {}),
        ("mistralai/Mistral-Small-24B-Instruct-2501", "mistral_v3", {"flavour": "v7"}),
        ("mistralai/Mistral-Small-3.1-24B-Instruct-2503", "mistral_v3", {"flavour": "v7"}),
        ("mistral-small:24b", "mistral_v3", {"flavour": "v7"}),
        ("mistral-small3.1:24b", "mistral_v3", {"flavour": "v7"}),
        ("mistralai/Devstral-Small-2505", "mistral_v3", {"flavour": "v7"}),
        ("mistralai/Mistral-Small-3.2-24B-Instruct-2506", "mistral_v11", {}),
        ("mistral-small3.2:24b", "mistral_v11", {}),
        ("mistralai/Magistral-Small-2506", "mistral_v11", {"flavour": "v11"}),
        ("mistralai/Magistral-Small-2509", "mistral_v11", {"flavour": "v13"}),
        ("mistralai/Devstral-Small-2507", "mistral_v11", {"flavour": "v13"}),
        ("mistralai/Ministral-3-14B-Reasoning-2512", "mistral_v11", {"flavour": "v13"}),
        ("mistralai/Mistral-Large-3-675B-Instruct-2512", "mistral_v11", {"flavour": "v13"}),
        ("mistralai/Mistral-Small-4-119B-2603", "mistral_v11", {"flavour": "v15"}),
        ("mistralai/Mistral-Medium-3.5-128B", "mistral_v11", {"flavour": "v15"}),
    ],
)
def test_a_name_tells_the_options(model: str, dialect: str, options: dict[str, Any]) -> None:
    found = by_name(model)
    assert found is not None
    assert found.dialect == dialect, found.reason
    assert dict(options_by_name(dialect, model)) == options


@pytest.mark.parametrize("options", [{"thinking": "off"}, {"thinking": "off", "reasoning_effort": "high"}, {}])
def test_a_model_that_is_told_its_effort_is_told_so_only_there(options: dict[str, Any]) -> None:
    prompt = render([{"role": "user", "content": "Hi"}], dialect="mistral_v11", flavour="v15", **options).text
    settings = json.dumps({"reasoning_effort": "none"})
    assert prompt == f"<s>[MODEL_SETTINGS]{settings}[/MODEL_SETTINGS][INST]Hi[/INST]"
