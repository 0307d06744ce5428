"""Streamed input of a custom tool: the plain text, extracted from the model's output.

Models are shown a function with one string parameter (`callwright.calls.custom_tools`). Most write JSON arguments for
it, `{"input": "print(1)"}`, some the bare text. Free text streams from both. Input with a grammar is held to its end:
only then is it known whether it fits, or would fit without a code fence or a layer of JSON around it.
"""

import json
import re
from collections.abc import Iterator
from typing import Final, Literal

from callwright.calls.coerce import node_text
from callwright.calls.custom_tools import INPUT
from callwright.calls.fit import repair_and_validate
from callwright.calls.streaming_arguments import StreamingArguments
from callwright.calls.toolset import Toolset
from callwright.conversation import FunctionTool
from callwright.events import Problem
from callwright.streaming.reader import may_come
from callwright.tolerant_json.codec import NotJsonError, decode, encode
from callwright.tolerant_json.reader import read_json
from callwright.tolerant_json.wrappers import unfenced

_GAP: Final = r"\s{0,256}"  # white space that is held back
_HEAD = re.compile(rf'{_GAP}\{{{_GAP}"{INPUT}"{_GAP}:{_GAP}"')
_MAY_BE_HEAD = re.compile(may_come([_GAP, r"\{", _GAP, *f'"{INPUT}"', _GAP, ":", _GAP, '"']))
# Other JSON, which is held to its end: a string, or an object whose first key is not the input's.
_OTHER_JSON = re.compile(r'\s{0,256}+(?:"|\{\s{0,256}+")')
# The inside of a JSON string, without a partial escape at its end. Both halves of a surrogate pair stay together.
_BODY = re.compile(
    r'(?:[^"\\]++|\\[^u]|\\u(?![dD][89abAB])[0-9a-fA-F]{4}'
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}(?:\\u[0-9a-fA-F]{4}|(?=[^\\])|(?=\\[^u]))|(?!))*+"
)
_BLANK_LINES = re.compile(r"(?:[ \t]*\r?\n)*").match
# A shell command around the input, as in `apply_patch <<'EOF'`.
_HEREDOC = re.compile(
    r"\s*+(?:[\w./-]++[ \t]++)?<<-?[ \t]*+(?P<quote>['\"]?)(?P<end>\w++)(?P=quote)[ \t]*+\r?\n"
    r"(?P<text>(?s:.*\n)??)(?P=end)\s*+\Z"
)
# How many combinations of wrappers around an input are tried against the grammar.
_MAX_READINGS: Final = 24


class StreamingCustomInput:
    """The input of one call of the custom tool `tool`. `problems` and `complete` are valid after `finish`."""

    def __init__(self, tool: FunctionTool, tools: Toolset) -> None:
        assert tool.custom is not None
        self.complete = True
        self.problems: list[Problem] = []
        self._name = tool.name
        self._tools = tools
        self._grammar = tool.custom.grammar
        self._way: Literal["open", "plain", "held"] = "open" if self._grammar is None else "held"
        self._held: list[str] = []
        self._live: StreamingArguments | None = None  # the arguments, if the input streams out of their JSON
        self._body = _StringBody()
        self._written: list[str] = []

    @property
    def text(self) -> str:
        """All of the input that was sent so far."""
        return "".join(self._written)

    def feed(self, text: str, *, is_last: bool = False) -> str:
        """Read a delta of the arguments; return the text of the input that is now certain. `is_last`: the end of the
        call has arrived with it.
        """
        if self._way == "plain":
            return self._note_sent(text)
        if self._live is not None:
            return self._note_sent(self._body.feed(self._live.feed(text, is_last=is_last)))
        self._held.append(text)
        return self._open() if self._way == "open" else ""

    def finish(self, *, cut: bool) -> str:
        """The call is over, or the output was `cut`; answers the rest of the input."""
        if self._way == "plain":
            self.complete = not cut
            return ""
        if self._live is not None:
            sent = self._note_sent(self._body.feed(self._live.finish(cut=cut)))
            self.complete = self._live.complete
            self.problems = [*self._live.problems, *_left_out(self._live.text)]
            return sent
        text = "".join(self._held)
        if cut:
            self.complete = False
            return self._note_sent(text)
        return self._note_sent(self._choose_input(text))

    def _note_sent(self, text: str) -> str:
        self._written.append(text)
        return text

    def _open(self) -> str:
        """Decide by the first characters: arguments as JSON, other JSON that is held, or bare text."""
        begin = "".join(self._held)
        if _HEAD.match(begin):
            self._live = StreamingArguments(self._name, self._tools)
            return self._note_sent(self._body.feed(self._live.feed(begin)))
        if _MAY_BE_HEAD.match(begin):
            return ""
        if _OTHER_JSON.match(begin):
            self._way = "held"
            return ""
        self._way = "plain"
        return self._note_sent(begin)

    # --- input that is read as a whole ---

    def _choose_input(self, text: str) -> str:
        """The input in a held text: the first reading that the grammar accepts, else as the model likely meant it."""
        meant = self._argument(text)
        said = text if meant is None else meant
        if self._grammar is None:
            return said
        readings = list(self._readings(said))
        if meant is not None:
            readings.append((text, ""))
        for reading, how in readings:
            if self._grammar.accepts(reading):
                if how:
                    self.problems.append(Problem("input_unwrapped", f"the input {how}"))
                return reading
        fault = self._grammar.first_error(said)
        self.problems.append(Problem("invalid_input", f"the input of {self._name!r} does not fit its grammar: {fault}"))
        return said

    def _argument(self, text: str) -> str | None:
        """The input inside JSON arguments; None if the text is not that."""
        if text.lstrip()[:1] not in ("{", '"'):
            return None
        try:
            value = decode(text)
        except NotJsonError:
            pass
        else:
            if isinstance(value, dict) and value.keys() == {INPUT} and isinstance(value[INPUT], str):
                return str(value[INPUT])  # as the model was asked to write it
        node = read_json(text.strip())
        if node is None:
            return None
        # A single text under any key. With a grammar, it may be nested in several objects.
        only = node.members[0].value if len(node.members) == 1 else node
        while self._grammar is not None and len(only.members) == 1:
            only = only.members[0].value
        if only is not node and only.kind == "string":
            return node_text(only)
        fitted = repair_and_validate(node, self._name, self._tools)
        if fitted.faults:
            return None
        try:
            value = fitted.node.value()
        except NotJsonError:
            return None
        said = value.get(INPUT) if isinstance(value, dict) and value.keys() == {INPUT} else None
        return said if isinstance(said, str) else None

    def _readings(self, text: str) -> Iterator[tuple[str, str]]:
        """The input, then the same without possible wrappers, each with a description of the step."""
        waiting = [(text, "")]
        seen: set[str] = set()
        for _ in range(_MAX_READINGS):
            if not waiting:
                return
            reading, how = waiting.pop(0)
            if reading in seen:
                continue
            seen.add(reading)
            yield reading, how
            inner = self._argument(reading)
            if inner is not None:
                waiting.append((inner, "without the JSON around it"))
            fence = unfenced(reading)
            if fence is not None:
                waiting.append((reading[fence[0] : fence[1]], "without the code fence around it"))
            bare = reading[_BLANK_LINES(reading).end() :].rstrip()  # type: ignore[union-attr]  # matches always
            waiting += [
                (bare, how or "without blank lines around it"),
                (f"{bare}\n", how or "with a line feed at its end"),
            ]
            if heredoc := _HEREDOC.match(reading):
                waiting.append((heredoc["text"], "without the shell command around it"))
            if "\r\n" in reading:
                waiting.append((reading.replace("\r\n", "\n"), how or "with line feeds for its line ends"))


def _left_out(arguments: str) -> list[Problem]:
    """A problem for further arguments, which are dropped."""
    try:
        value = decode(arguments)
    except NotJsonError:
        return []
    others = {key: it for key, it in value.items() if key != INPUT} if isinstance(value, dict) else {}
    told = f"beside the input: {', '.join(others)}"
    return [Problem("argument_dropped", told, text=encode(others).decode())] if others else []


class _StringBody:
    """Decodes the first string value of an object while the object's text streams in."""

    def __init__(self) -> None:
        self._rest = ""
        self._begun = False
        self._over = False

    def feed(self, text: str) -> str:
        if self._over:
            return ""
        text = self._rest + text
        if not self._begun:
            head = _HEAD.match(text)
            if head is None:
                self._rest = text
                return ""
            self._begun = True
            text = text[head.end() :]
        end = _BODY.match(text).end()  # type: ignore[union-attr]  # matches always
        self._rest = text[end:]
        self._over = self._rest.startswith('"')
        return _decode_body(text[:end])


def _decode_body(body: str) -> str:
    """Decode the inside of a JSON string; a lone surrogate becomes the replacement character."""
    if "\\" not in body:
        return body
    try:
        return decode(f'"{body}"', str)
    except NotJsonError:
        said: str = json.loads(f'"{body}"', strict=False)
        return said.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
