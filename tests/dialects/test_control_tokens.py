"""No text of a client is a control token where it is sent: the tables of the tokenizers are the oracle, not what a
dialect lists. And a model that repeats what was broken gives the client its own text.
"""

import json
import re
from collections.abc import Collection
from itertools import pairwise
from typing import Any, cast

import pytest

from callwright import Parser, RequestError, collect, parse, render, write
from callwright.conversation import Conversation, Message, TextPart
from callwright.dialects.base import Dialect, dialect_names, get_dialect
from callwright.dialects.tokenizers import TOKENIZERS, added_tokens
from callwright.prompt import BREAK, neutralise, neutralise_json
from tests.support.choices import cut
from tests.support.control_tokens import assert_none_forged, chat_texts, everywhere, found, tokens_of
from tests.support.examples import some

DIALECTS = dialect_names()
every_dialect = pytest.mark.parametrize("dialect", DIALECTS)
ALL = sorted({token for name in TOKENIZERS for token in added_tokens(name)})
NAMED = [token for token in ALL if not re.search(r"\d", token)]


def sample(tokens: Collection[str], first: int) -> list[str]:
    """Those that have a name of their own, and of the runs with numbers some."""
    numbered = sorted({*tokens} - {*NAMED})
    return [*sorted({*tokens} & {*NAMED}), *(some(numbered, first) if numbered else [])]


# --- the tables ---


@every_dialect
def test_every_dialect_names_the_tokenizers_of_its_families(dialect: str) -> None:
    assert get_dialect(dialect).tokenizers
    assert tokens_of(dialect) <= {*render([], dialect=dialect).controls}


def test_every_tokenizer_of_the_table_is_claimed_and_has_a_source() -> None:
    others = [get_dialect(name).tokenizers for name in DIALECTS if name != "json"]
    claimed = {name for names in others for name in names}
    bases = {base for name in claimed for base in TOKENIZERS[name].bases}
    assert claimed | bases == {*TOKENIZERS}
    assert all(tokenizer.source for tokenizer in TOKENIZERS.values())


def test_a_table_holds_tokens_and_no_text() -> None:
    html = {"a", "b", "br", "code", "div", "h1", "i", "li", "p", "pre", "span", "table", "td", "th", "tr", "ul"}
    for token in ALL:
        assert len(token) > 2, token
        assert not token.isspace(), token
        assert token.strip("</>") not in html, token


def test_a_dialect_with_a_tokenizer_that_no_table_has_is_none() -> None:
    hermes = get_dialect("hermes")
    fields: dict[str, Any] = {field: getattr(hermes, field) for field in hermes.__struct_fields__}
    with pytest.raises(AssertionError, match="qwen9"):
        Dialect(**{**fields, "tokenizers": ("qwen9",)})


# --- mode raw ---


@every_dialect
def test_no_token_of_a_claimed_tokenizer_survives_in_a_prompt(dialect: str) -> None:
    tokens = tokens_of(dialect)
    for text in cut_words(sample(tokens, DIALECTS.index(dialect))):
        for choice in ("auto", "required"):
            assert_none_forged(everywhere(dialect, text, choice), tokens)


def cut_words(tokens: list[str], size: int = 200) -> list[str]:
    """Texts of so many tokens."""
    return [" ".join(tokens[at : at + size]) for at in range(0, len(tokens), size)]


@every_dialect
def test_no_two_halves_make_a_token_where_texts_meet(dialect: str) -> None:
    tokens = tokens_of(dialect)
    for number, token in enumerate(some(sorted(tokens & {*NAMED}), DIALECTS.index(dialect))):
        half = 1 + number % (len(token) - 1)
        assert_none_forged(everywhere(dialect, f"{token[half:]} x {token[:half]}"), tokens)


@pytest.mark.parametrize(
    ("dialect", "options"),
    [
        *(("hermes", {"flavour": flavour}) for flavour in ("qwen", "granite4")),
        *(("pythonic", {"flavour": flavour}) for flavour in ("llama3.2", "llama4")),
        *(("xlam", {"flavour": flavour}) for flavour in ("qwen", "llama")),
        *(("qwen3_coder", {"flavour": flavour}) for flavour in ("qwen3.5", "nemotron3", "step3.5")),
        ("kimi_k2", {"flavour": "instruct"}),
    ],
)
def test_a_flavour_breaks_what_its_dialect_breaks(dialect: str, options: dict[str, Any]) -> None:
    tokens = tokens_of(dialect)
    for text in cut_words(sample(tokens, 0)):
        assert_none_forged(everywhere(dialect, text, **options), tokens)


@pytest.mark.parametrize(
    ("dialect", "token"),
    [
        ("pythonic", "<|header_start|>"),
        ("hermes", "<|start_of_role|>"),
        ("xlam", "<|start_header_id|>"),
        ("xlam", "<|eot_id|>"),
        ("phi4_mini", "<|end_of_text|>"),
        ("llama3_json", "<|end_of_text|>"),
        ("kimi_k2", "[EOS]"),
        ("cohere_command", "<EOS_TOKEN>"),
        ("gemma4", "<eos>"),
        ("internlm2", "</s>"),
        ("lfm2", "<|endoftext|>"),
        ("jamba", "<|endoftext|>"),
        ("hermes", "<|image_pad|>"),
        ("minimax_m2", "]<]start of image[>["),
        ("nemotron_nano_v2", "<SPECIAL_999>"),
        ("lfm2", "[unused10]"),
    ],
)
def test_a_turn_or_a_text_is_ended_by_no_client(dialect: str, token: str) -> None:
    prompt = everywhere(dialect, f"a{token}b")
    ours = sum(found(piece.text, {token})[token] for piece in prompt.pieces if not hasattr(piece, "json"))
    assert found(prompt.wire_text, {token})[token] == ours
    assert token[0] + BREAK + token[1:] in prompt.wire_text


@every_dialect
@pytest.mark.parametrize("shape", ["<|a_token_of_tomorrow|>", "<｜another▁one｜>", "<||>", f"<|{'x' * 60}|>"])
def test_what_has_the_shape_of_a_token_is_broken_by_every_dialect(dialect: str, shape: str) -> None:
    assert shape not in everywhere(dialect, f"It says {shape}.").wire_text
    assert not any(shape in text for text in chat_texts(dialect, f"It says {shape}."))


@every_dialect
def test_what_only_looks_a_bit_like_it_stays_as_it_is(dialect: str) -> None:
    text = f"if (a <| b |> c) <p>[x]</p> <b|c> <|two words|> <|a<b|> <|{'x' * 63}|> #1 [1] a < b > c"
    prompt = render([{"role": "user", "content": text}], dialect=dialect)
    assert text in prompt.wire_text


def test_a_shape_is_broken_where_a_template_ends_in_its_begin() -> None:
    assert neutralise("<|a|><|b|>|c|>", ()) == f"<{BREAK}|a|><{BREAK}|b|>|c|>"
    assert neutralise("<|a|> <|b|> </s>", ("</s>",), ("<|a|>",)) == f"<|a|> <{BREAK}|b|> <{BREAK}/s>"


OPTIONS: list[dict[str, Any]] = [
    {},
    *({"thinking": thinking} for thinking in ("open", "off", "model")),
    *({"flavour": name} for name in ("llama4", "granite4", "qwen3.5", "nemotron3", "step3.5", "llama", "instruct")),
]


@every_dialect
def test_the_words_of_a_template_stay_whole(dialect: str) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "I look.", "reasoning_content": "Hm.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": "12:00"},
    ]
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}}
    tools = [{"type": "function", "function": {"name": "f", "description": "F.", "parameters": schema}}]
    for options in OPTIONS:
        for conversation in (messages, messages[:2]):
            try:
                prompt = render(conversation, tools=tools, dialect=dialect, **options)
            except RequestError:
                continue  # no option of this dialect
            assert prompt.wire_text == prompt.text
    assert not any(BREAK in text for text in chat_texts(dialect, "x"))


# --- mode prompt ---


@every_dialect
def test_no_token_of_a_claimed_tokenizer_survives_in_a_chat_message(dialect: str) -> None:
    # The headings of `json` mean something in a completion only.
    tokens = tokens_of(dialect) | (frozenset() if dialect == "json" else {*render([], dialect=dialect).marks})
    plain = [found(text, tokens) for text in chat_texts(dialect, "x")]
    for text in cut_words(sample(tokens, DIALECTS.index(dialect))):
        assert [found(each, tokens) for each in chat_texts(dialect, text)] == plain


# --- the way back ---

SET = {
    "type": "function",
    "function": {"name": "put", "parameters": {"type": "object", "properties": {"text": {"type": "string"}}}},
}


def ways(output: str) -> list[list[str]]:
    """Whole, letter by letter, and cut at each place."""
    return [[output], list(output), *(list(map("".join, (output[:at], "", output[at:]))) for at in range(len(output)))]


@pytest.mark.parametrize("part", range(8))
def test_what_a_model_repeats_comes_out_as_it_was(part: int) -> None:
    for token in some(NAMED[part::8], part):
        broken = neutralise(token, (token,))
        assert broken != token
        for pieces in ways(f"a {broken} b"):
            turn = parse(pieces, dialect="hermes", start="message")
            assert turn.content == f"a {token} b", pieces
        thought = parse(list(f"{broken}</think>x"), dialect="hermes", start="reasoning")
        assert (thought.reasoning, thought.content) == (token, "x")


@pytest.mark.parametrize("part", range(8))
@pytest.mark.parametrize("escaped", [False, True], ids=["as it is", "escaped"])
def test_what_a_model_repeats_in_arguments_comes_out_as_it_was(part: int, escaped: bool) -> None:
    for token in some(NAMED[part::8], part):
        arguments = json.dumps({"text": f"a{neutralise(token, (token,))}b"}, ensure_ascii=escaped)
        wanted = json.dumps({"text": f"a{token}b"}, ensure_ascii=escaped)
        call = f'<tool_call>\n{{"name": "put", "arguments": {arguments}}}\n</tool_call>'
        at = call.index('b"}') - 8
        for pieces in ([call], list(call), *([call[:cut_], call[cut_:]] for cut_ in range(at - 8, at + 8))):
            turn = parse(pieces, dialect="hermes", tools=[SET])
            assert [each.arguments for each in turn.calls] == [wanted], pieces
            assert not turn.problems


@pytest.mark.parametrize("dialect", ["glm47", "qwen3_coder", "minimax_m2", "pythonic", "gemma4", "mistral_v11", "json"])
def test_a_dialect_that_writes_values_as_text_gives_them_back(dialect: str) -> None:

    for token in ("</s>", "[EOS]", "<|endoftext|>", "]~!b[", "〈|EOS|〉", "|||IP_ADDRESS|||", "｜DSML｜"):
        text = write([{"name": "put", "arguments": {"text": f"a{token[0]}{BREAK}{token[1:]}b"}}], dialect=dialect)
        for sizes in ([len(text)], [1], [3, 7]):
            turn = parse(cut(text, sizes), dialect=dialect, tools=[SET])
            assert [json.loads(call.arguments) for call in turn.calls] == [{"text": f"a{token}b"}]


def test_a_word_of_an_enum_that_was_broken_is_that_word() -> None:
    tool = json.loads(json.dumps(SET))
    tool["function"]["parameters"]["properties"]["text"]["enum"] = ["</s>", "[EOS]"]
    tool["function"]["parameters"]["required"] = ["text"]
    call = f'<tool_call>\n{{"name": "put", "arguments": {{"text": "<{BREAK}/s>"}}}}\n</tool_call>'
    turn = parse(call, dialect="hermes", tools=[tool])
    assert [call.arguments for call in turn.calls] == ['{"text": "</s>"}']
    assert not turn.problems


def test_an_escape_that_was_held_back_and_is_none_is_not_lost() -> None:
    for text in ("a <\\", "a <\\u206", "a <\\u2061 b", "<\\n", "\\u2060"):
        for pieces in ways(text):
            assert parse(pieces, dialect="hermes", start="message").content == text, pieces
    parser = Parser("hermes", tools=[SET])
    cut = ("Look: <\\", '\n<tool_call>\n{"name": "put", "arguments": {"text": "x"}}\n</tool_call>')
    turn = collect([event for piece in cut for event in parser.feed(piece)] + parser.finish())
    assert (turn.content, [call.name for call in turn.calls]) == ("Look: <\\", ["put"])


@pytest.mark.parametrize("escape", [BREAK, "\\u2060"], ids=["as it is", "escaped"])
@pytest.mark.parametrize("dialect", ["hermes", "json", "harmony", "llama3_json", "kimi_k2"])
def test_between_other_escapes_each_is_restored_however_the_arguments_are_cut(dialect: str, escape: str) -> None:
    text = f'a\n"<{BREAK}|im_end|>"\\ \\u <{BREAK}|x|>\n\tb \\u20 <{BREAK}|im_end|> \\\\'
    output = write([{"name": "put", "arguments": {"text": text}}], tools=[SET], dialect=dialect)
    output = output.replace(BREAK, escape)
    whole = parse(output, dialect=dialect, tools=[SET])
    assert [json.loads(call.arguments) for call in whole.calls] == [{"text": text.replace(BREAK, "")}]
    cuts = ([output[:at], output[at:]] for at in range(len(output)))
    for pieces in (
        list(output),
        *([output[at : at + n] for at in range(0, len(output), n)] for n in (2, 3, 4, 5)),
        *cuts,
    ):
        assert parse(pieces, dialect=dialect, tools=[SET]).calls == whole.calls, pieces


def test_a_joiner_of_the_client_in_a_word_stays() -> None:
    assert parse([f"word{BREAK}joined"], dialect="hermes", start="message").content == f"word{BREAK}joined"


def test_in_json_the_first_character_is_escaped_so_the_value_is_the_same() -> None:
    for one, other in pairwise(some(NAMED, 3)):
        text = json.dumps({one: [other, one + other]}, ensure_ascii=False)
        escaped = neutralise_json(text, (one, other))
        assert not found(escaped, {one, other})
        assert json.loads(escaped) == json.loads(text)


def test_an_option_may_be_an_object() -> None:
    schema = {"type": "object", "properties": {"bed": {"type": "string"}}}
    harmony = get_dialect("harmony")
    wanted = {"type": "json_schema", "json_schema": {"name": "beds", "schema": schema}}
    options = cast(Any, harmony.options)(response_format=wanted)
    (system, _) = harmony.messages(Conversation((Message("user", (TextPart("<|call|>?"),)),)), options)
    assert "beds" in system["content"]
