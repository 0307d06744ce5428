"""The beginning of an answer, written by a client, that the model continues."""

from typing import Any, Final

from msgspec.structs import replace

from callwright.conversation import AssistantTurn, Message, TextPart
from callwright.dialects.base import Dialect
from callwright.prompt import Control, Prompt, Text

# Fields with which vLLM and SGLang continue the last message. llama.cpp and Ollama do so without any.
CONTINUES: Final[dict[str, Any]] = {"continue_final_message": True, "add_generation_prompt": False}
# Placeholder for any reasoning, to find the text that follows it.
_THOUGHT: Final = "thought\N{BLACK SQUARE}"


def with_prefill(prompt: Prompt, dialect: Dialect, begun: str) -> Prompt:
    """A prompt that ends in the beginning of its answer, as the format writes text."""
    message = Message("assistant", (TextPart(begun),))
    thinks = prompt.start == "reasoning"  # then the text follows the end of it
    written = dialect.write(AssistantTurn(reasoning=_THOUGHT if thinks else None, message=message))
    lead = written.partition(_THOUGHT)[2] if thinks else written
    lead = lead[: lead.index(begun)].removeprefix(prompt.prefill) if begun in lead else ""
    pieces = [*prompt.pieces, *([Control(lead)] if lead else []), Text(begun)]
    return replace(prompt, pieces=tuple(pieces), prefill=prompt.prefill + lead + begun)
