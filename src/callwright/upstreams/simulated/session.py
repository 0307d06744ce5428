"""The last request of the user, the outputs of tools since, and a summary of all.

Coding agents add to a conversation: context between tags, in the user's messages and in the outputs of tools, and
requests of their own for a summary. A summary that was made here is read again, so that the work continues.
"""

import re
from typing import Final

from msgspec import Struct

from callwright.conversation import CallOutput, Conversation, Message, TextPart

_REFUSED: Final = ("Error: this call was not run.", "Error: no call was run.")  # then the model tries again
_MAX_LINE: Final = 500  # characters of a request or an output in a summary
_MAX_INSTRUCTED: Final = 2_000  # characters of a request that may describe the form of the answer
# Tags of several words, as in `<system-reminder>`: the text between them is context.
_TAG = re.compile(
    r"^[ \t]*<(?P<opens>[a-z]+(?:[-_][a-z]+)+)>|</(?P<closes>[a-z]+(?:[-_][a-z]+)+)>[ \t]*$\n?", re.MULTILINE
)
_NO_CALLS = re.compile(r"\btext only\b|\b(?:do not|don't|never|without) (?:call|us)(?:e|ing)? (?:any )?tools?\b", re.I)
_SUMMARY = re.compile(r"\bsummar(?:y|i[sz]e)\b", re.I)
_OF_ALL = re.compile(r"\b(?:conversation|session|context|so far)\b", re.I)
_LINE = re.compile(r"^(?:Asked: (?P<asked>.+)|Done: (?P<name>\S+) (?:says|failed): (?P<output>.*))$", re.MULTILINE)
_FAILED = re.compile(r"\s*(?:<\w+>)?\s*error\b[:\s]*", re.I)
_ONE_TAG = re.compile(r"^\s*<(?P<tag>\w+)>(?P<text>.*)</(?P=tag)>\s*$", re.DOTALL)


class Output(Struct, frozen=True):
    """The output of a tool, without context. `name`: the tool's, empty if no call has it."""

    name: str
    text: str
    refused: bool = False
    failed: bool = False

    def sentence(self, nameless: str = "The tool") -> str:
        """In a sentence."""
        text = f"{self.name or nameless} {'failed' if self.failed else 'says'}: {self.text}"
        return text if text.endswith(".") else f"{text}."


def session_of(conversation: Conversation) -> tuple[str, list[Output]]:
    """The last request of the user, and the outputs since."""
    requests = [
        (number, _lines(item))
        for number, item in enumerate(conversation.items, 1)
        if isinstance(item, Message) and item.role == "user" and not item.text.startswith(_REFUSED)
    ]
    asking = ((begin, text) for begin, message in reversed(requests) if (text := _without_context(message)))
    begin, asked = next(asking, None) or (requests or [(0, "")])[-1]
    earlier: list[Output] = []
    lines = [*_LINE.finditer(asked)]
    if lines and lines[0]["asked"]:  # a summary: its last request, and the lines after it
        last = max(number for number, line in enumerate(lines) if line["asked"])
        asked = lines[last]["asked"]
        earlier = [Output(line["name"], line["output"]) for line in lines[last + 1 :]]
    return asked, earlier + [output for number, output in _outputs(conversation).items() if number >= begin]


def forbids_calls(asked: str) -> bool:
    """Whether a request wants text, whatever tools there are."""
    return _NO_CALLS.search(asked[:_MAX_INSTRUCTED]) is not None


def asks_for_summary(asked: str) -> bool:
    """Whether a request wants a summary of the whole conversation."""
    return all(words.search(asked[:_MAX_INSTRUCTED]) for words in (_SUMMARY, _OF_ALL))


def summary_of(conversation: Conversation, said: str) -> str:
    """The requests of a conversation and the outputs, a line each; in the block that `said` asks for, if any."""
    outputs = _outputs(conversation)
    lines: list[str] = []
    for number, item in enumerate(conversation.items):
        if number in outputs:
            lines.append(f"Done: {_short(outputs[number].sentence('tool'))}")
        elif isinstance(item, Message) and item.role == "user":
            asked = _without_context(_lines(item))
            if asked and asked != said:
                lines += [match[0] for match in _LINE.finditer(asked)] or [f"Asked: {_short(asked)}"]
    text = "\n".join(lines) or "Nothing was asked for yet."
    return f"<summary>\n{text}\n</summary>" if "<summary>" in said.lower() else text


def _lines(message: Message) -> str:
    """The text of a message. Each part starts a line: agents put their context into parts of their own."""
    return "\n".join(part.text for part in message.parts if isinstance(part, TextPart))


def _without_context(text: str) -> str:
    tags = [*_TAG.finditer(text)]
    last = {tag["closes"]: tag.start() for tag in tags}
    kept: list[str] = []
    at, open_tag = 0, ""
    for tag in tags:
        if open_tag and tag["closes"] == open_tag:
            at, open_tag = tag.end(), ""
        elif not open_tag and last.get(tag["opens"], 0) > tag.start() >= at:
            kept.append(text[at : tag.start()])
            open_tag = tag["opens"]
    return "".join((*kept, text[at:])).strip()


def _outputs(conversation: Conversation) -> dict[int, Output]:
    """The outputs of tools, by their number among the items."""
    found: dict[int, Output] = {}
    for number, name in conversation.named_outputs().items():
        item = conversation.items[number]
        assert isinstance(item, CallOutput)
        text = _without_context(item.text)
        if failed := _FAILED.match(text):
            text = _ONE_TAG.sub(r"\g<text>", text[failed.end() :])
        found[number] = Output(name, text.strip(), item.text.startswith(_REFUSED), failed is not None)
    return found


def _short(text: str) -> str:
    """On one line."""
    line = " ".join(text.split())
    return line if len(line) <= _MAX_LINE else f"{line[:_MAX_LINE]}…"
