"""Splices of the control tokens of all tokenizers all over a conversation: none survives in a prompt, or in messages of
mode prompt; and what a model repeats of them comes out as it was.
"""

import callwright
from callwright.dialects.tokenizers import TOKENIZERS, added_tokens
from callwright.prompt import neutralise
from fuzz import words
from tests.support.choices import Choices
from tests.support.control_tokens import assert_none_forged, chat_texts, everywhere, found, tokens_of

__all__ = ["run"]

_NAMES = tuple(TOKENIZERS)
_ALL = tuple(sorted({token for name in _NAMES for token in added_tokens(name)}))
_BETWEEN = ("", "", " ", "\n", "<", "|", ">", "[", "]", "</", "|>", "<|", "x", "é", '"', "\\")


def run(draw: Choices) -> None:
    """See the module."""
    dialect = draw.about = draw.one(words.DIALECTS)
    text = "x" + "".join(draw.several(6, lambda: draw.one(_BETWEEN) + _piece(draw))) + draw.one(_BETWEEN)
    prompt = everywhere(dialect, text, draw.one(("auto", "required", "none")))
    assert_none_forged(prompt, tokens_of(dialect) | {*prompt.marks})
    # The headings of `json` mean something in a completion only.
    tokens = tokens_of(dialect) | (frozenset() if dialect == "json" else {*prompt.marks})
    plain, told = chat_texts(dialect, "x"), chat_texts(dialect, text)
    assert [found(each, tokens) for each in told] == [found(each, tokens) for each in plain]
    parser = callwright.Parser("hermes", start="message", check="verbatim")
    shown = f"It says: {neutralise(text, _ALL)}."
    turn = callwright.collect([event for piece in draw.cuts(shown) for event in parser.feed(piece)] + parser.finish())
    assert turn.content == f"It says: {text}.", "what is repeated is not what was said"


def _piece(draw: Choices) -> str:
    token = draw.one(added_tokens(draw.one(_NAMES)))
    return token if draw.once_in(2) else token[draw.number(len(token)) :] + token[: draw.number(len(token))]
