"""The input of a custom tool as it streams: the bare text, out of what the model wrote.

Models are shown a function with one text (`callwright.calls.custom_tools`), and most write its arguments as JSON; some
write the bare text instead. Free text flows out of both. Input with a grammar is held to its end: only then is it known
whether it holds, or would without what was put around it, a code fence or another layer of JSON.
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
from callwright.stream_reader import may_come
from callwright.tolerant_json.codec import NotJsonError, decode, encode
from callwright.tolerant_json.reader import read_json
from callwright.tolerant_json.wrappers import unfenced

__all__ = ["StreamingCustomInput"]

_GAP: Final = r"\s{0,256}"  # white space that is waited for
_HEAD = re.compile(rf'{_GAP}\{{{_GAP}"{INPUT}"{_GAP}:{_GAP}"')
_MAY_BE_HEAD = re.compile(may_come([_GAP, r"\{", _GAP, *f'"{INPUT}"', _GAP, ":", _GAP, '"']))
# JSON of another form: it is read when it is whole. White space before it is held this long.
_OTHER_JSON = re.compile(r'\s{0,256}+(?:"|\{\s{0,256}+")')
# The inside of a JSON string, without an escape at its end that is not all there.
_BODY = re.compile(
    r'(?:[^"\\]++|\\[^u]|\\u(?![dD][89abAB])[0-9a-fA-F]{4}'
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}(?:\\u[0-9a-fA-F]{4}|(?=[^\\])|(?=\\[^u])))*+"
)
_BLANK_LINES = re.compile(r"(?:[ \t]*\r?\n)*").match
# What models call an input instead.
_OTHER_NAMES: Final = ("text", "content", "body", "code", "script", "patch", "diff", "value", "data", "raw", "string")
# A command of a shell that is given a text, as in `apply_patch <<'EOF'`.
_HEREDOC = re.compile(
    r"\s*+(?:[\w./-]++[ \t]++)?<<-?[ \t]*+(?P<quote>['\"]?)(?P<end>\w++)(?P=quote)[ \t]*+\r?\n"
    r"(?P<text>(?s:.*\n)??)(?P=end)\s*+\Z"
)
# So many ways of taking off what was put around an input are tried.
_MAX_READINGS: Final = 24


class StreamingCustomInput:
    """The input of one call of `tool`. `problems` and `complete` hold when it is finished, `text` is all of it."""

    def __init__(self, tool: FunctionTool, tools: Toolset) -> None:
        assert tool.custom is not None
        self.complete = True
        self.problems: list[Problem] = []
        self._name = tool.name
        self._tools = tools
        self._grammar = tool.custom.grammar
        self._way: Literal["open", "plain", "held"] = "open" if self._grammar is None else "held"
        self._held: list[str] = []
        self._live: StreamingArguments | None = None  # the arguments, where the input stands in their JSON
        self._body = _StringBody()
        self._written: list[str] = []

    @property
    def text(self) -> str:
        """All that was sent so far."""
        return "".join(self._written)

    def feed(self, text: str) -> str:
        """Read more of what the model writes; answers what of the input has become certain."""
        if self._way == "plain":
            return self._sent(text)
        if self._live is not None:
            return self._sent(self._body.feed(self._live.feed(text)))
        self._held.append(text)
        return self._opened() if self._way == "open" else ""

    def finish(self, *, cut: bool) -> str:
        """The model has ended the call, or the output was `cut`; answers what is left."""
        if self._way == "plain":
            self.complete = not cut
            return ""
        if self._live is not None:
            sent = self._sent(self._body.feed(self._live.finish(cut=cut)))
            self.complete = self._live.complete
            self.problems = [*self._live.problems, *_left_out(self._live.text)]
            return sent
        text = "".join(self._held)
        if cut:
            self.complete = False
            return self._sent(text)
        return self._sent(self._settled(text))

    def _sent(self, text: str) -> str:
        self._written.append(text)
        return text

    def _opened(self) -> str:
        """Decide by its begin how the input is written."""
        begin = "".join(self._held)
        if _HEAD.match(begin):
            self._live = StreamingArguments(self._name, self._tools)
            return self._sent(self._body.feed(self._live.feed(begin)))
        if _MAY_BE_HEAD.match(begin):
            return ""
        if _OTHER_JSON.match(begin):
            self._way = "held"
            return ""
        self._way = "plain"
        return self._sent(begin)

    # --- input that is read as a whole ---

    def _settled(self, text: str) -> str:
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
        """The input in a JSON text of the arguments; None when there is none."""
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
        (only,) = node.members if len(node.members) == 1 else (None,)
        if only is not None and only.name in (*_OTHER_NAMES, self._name):
            return node_text(only.value)
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
        """An input, and what it is without what may have been put around it, each with words for that."""
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
    """What stood beside the input in its arguments."""
    try:
        value = decode(arguments)
    except NotJsonError:
        return []
    others = {key: it for key, it in value.items() if key != INPUT} if isinstance(value, dict) else {}
    told = f"beside the input: {', '.join(others)}"
    return [Problem("argument_dropped", told, text=encode(others).decode())] if others else []


class _StringBody:
    """What the first string value of an object says, from the object's text in pieces."""

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
        return _said(text[:end])


def _said(body: str) -> str:
    """The text of the inside of a JSON string; half of a surrogate pair becomes the replacement character."""
    if "\\" not in body:
        return body
    try:
        return decode(f'"{body}"', str)
    except NotJsonError:
        said: str = json.loads(f'"{body}"', strict=False)
        return said.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
