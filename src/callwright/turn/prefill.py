"""The begin of an answer that a client has written: the model goes on from there."""

from typing import Any, Final

from msgspec.structs import replace

from callwright.conversation import AssistantTurn, Message, TextPart
from callwright.dialects.base import Dialect
from callwright.prompt import Control, Prompt, Text

# How vLLM and SGLang are told that the last message is to be continued. llama.cpp and Ollama do so without a word.
CONTINUES: Final[dict[str, Any]] = {"continue_final_message": True, "add_generation_prompt": False}
# Stands for any reasoning, to see what stands behind it.
_THOUGHT: Final = "thought\N{BLACK SQUARE}"


def with_prefill(prompt: Prompt, dialect: Dialect, begun: str) -> Prompt:
    """A prompt that ends in the begin of its answer, as the format writes text."""
    message = Message("assistant", (TextPart(begun),))
    thinks = prompt.start == "reasoning"  # then the text stands behind the end of it
    written = dialect.write(AssistantTurn(reasoning=_THOUGHT if thinks else None, message=message))
    lead = written.partition(_THOUGHT)[2] if thinks else written
    lead = lead[: lead.index(begun)].removeprefix(prompt.prefill) if begun in lead else ""
    pieces = [*prompt.pieces, *([Control(lead)] if lead else []), Text(begun)]
    return replace(prompt, pieces=tuple(pieces), prefill=prompt.prefill + lead + begun)
