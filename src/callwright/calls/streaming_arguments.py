"""Arguments as they stream: repaired and coerced, and sent as soon as each part of them is certain.

The output so far is always a prefix of the final JSON, and the model's own bytes if these were valid.
"""

import re
from collections.abc import Collection, Mapping
from typing import Final

from callwright.calls.arguments_parse import ArgumentsParse, WrittenText, trailing_problems
from callwright.calls.fit import json_problems, step_problems
from callwright.calls.toolset import Toolset
from callwright.calls.whole_arguments import is_valid_as_is
from callwright.events import Problem, ProblemKind
from callwright.schema.compiled import compiled_schema
from callwright.streaming.fast_path import Checked
from callwright.streaming.reader import silent_reader
from callwright.tolerant_json.certain import JsonRepair, by_quotes, doubt, without_words

# What of a string's text may end it or need repair, as the inside of a class of characters.
_MATTERS: Final = r'"\\\x00-\x1f,'
# What of these does not, as JSON, and as text; what may repeat a prompt is left out.
_CERTAIN: Final = r"""\\[\\/bfnrt]|\\"(?![\s,]|\Z)|,(?![ \t]*\Z)"""
_CERTAIN_TEXT: Final = r"""[\x00-\x1f]|"(?![^\S\x00-\x1f]|,|\Z)|,(?![ \t]*\Z)"""
# Text of a string that neither ends it nor needs repair; then what may follow at the end of a delta, to be held back.
_PLAIN = re.compile(rf"[^{_MATTERS}]*+(?:(?:{_CERTAIN}|\\u[0-9a-fA-F]{{4}})[^{_MATTERS}]*+|(?!))*+").match
_UNDECIDED = re.compile(r"""(?:\\(?:"|u[0-9a-fA-F]{0,3})?|,[ \t]{0,60})?\Z""").match
# Names in the texts of JSON.
_NAMED_IN_TEXT = re.compile(r"""(?<![\w$.-])([\w$.-]++)\\"\s*+:""").findall


class StreamingArguments:
    """The arguments of one call of the tool `name`. `problems` and `complete` are valid after `finish`.

    They are a `callwright.streaming.fast_path.Passing`.
    """

    as_json = Checked(_MATTERS, _CERTAIN, r'\\"|,[ \t]{0,60}')
    as_text = Checked(_MATTERS, _CERTAIN_TEXT, '"|, {0,60}')

    def __init__(self, name: str, tools: Toolset) -> None:
        self.complete = True
        self.problems: list[Problem] = []
        self.is_checked = False  # they were found valid as a whole; no later text is part of them
        self.flows = False  # inside a string that streams, all read and nothing held back
        self._name = name
        self._tools = tools
        self._compiled = compiled_schema(tools.get(name))
        self._tail = ""  # the end of that string's text, held back: it may end the string
        self._raw: list[str] = []
        self._out = WrittenText()
        self._parse: ArgumentsParse | None = None  # once one is needed

    @property
    def text(self) -> str:
        """All that was sent so far."""
        return self._out.text

    def feed(self, text: str, *, is_last: bool = False) -> str:
        """Read a delta of the model's arguments; answers the JSON text that has become certain, `""` if none has.

        `is_last`: the end of the call has arrived with it.
        """
        if self.flows and _PLAIN(text).end() == len(text):  # type: ignore[union-attr]  # matches always
            self.pass_on(text, "")
            return text
        is_whole = is_last or not self._raw
        self._raw.append(text)
        if self.is_checked:
            return ""
        if is_whole and (rest := self._rest_as_is()) is not None:
            return rest
        if self._tail or self.flows:
            text, self._tail = self._tail + text, ""
            end = _PLAIN(text).end()  # type: ignore[union-attr]  # matches always
            if end == len(text) or _UNDECIDED(text, end):
                text, self._tail = text[:end], text[end:]
                self.flows = not self._tail
                self._out.note_sent(text)
                return text
        parse = self._parse or self._begin()
        source = parse.source
        source.push(text)
        next(parse.run, None)
        self.flows = parse.flowing and source.at == len(source.text)
        return self._out.send()

    def pass_on(self, text: str, tail: str) -> None:
        """Read text that is certain as it is, and a tail that is held back."""
        self._raw += (text, tail)
        self._out.note_sent(text)
        self._tail, self.flows = tail, not tail

    def finish(self, *, cut: bool) -> str:
        """The call is over, or the output was `cut`; answers the rest of the JSON text."""
        if not (cut or self.is_checked) and (rest := self._rest_as_is()) is not None:
            return rest
        if self.is_checked:
            if behind := "".join(self._raw[1:]):
                self.problems += trailing_problems(behind)
            return ""
        parse = self._parse or self._begin()
        if self._tail:
            parse.source.push(self._tail)
        parse.cut = cut
        parse.source.end()
        for _ in parse.run:
            raise AssertionError("the arguments are all there")
        sent = self._out.send()
        self.complete, self.problems = parse.complete, parse.problems
        self._judge(parse.reader.repairs)
        if not self.complete:
            # A call that was cut off is not repaired further: the model's bytes are sent unchanged.
            raw, all_sent = "".join(self._raw), self.text
            rest = raw[len(all_sent) :] if raw.startswith(all_sent) else ""
            if not raw.startswith(all_sent):
                self.problems.append(Problem("incomplete_arguments", "the arguments as they were written", text=raw))
            self._out.note_sent(rest)
            return sent + rest
        self.problems = step_problems(parse.steps) + self.problems
        return sent

    def _rest_as_is(self) -> str | None:
        """The text left to send if the arguments are valid as they were written, taken as a whole; else None."""
        whole = "".join(self._raw)
        sent = self.text if self._parse is not None else ""
        if not (whole.startswith(sent) and is_valid_as_is(whole, self._compiled)):
            return None
        self._raw[:] = [whole]
        self.is_checked = True
        rest = whole[len(sent) :]
        self._out.note_sent(rest)
        return rest

    def _judge(self, repairs: Mapping[JsonRepair, int]) -> None:
        """Report the repairs; a doubtful one leaves the call unfinished."""
        if not repairs or not self.complete:
            return
        self.problems = json_problems(repairs) + self.problems
        text = "".join(self._raw)
        if text.strip() == "{" and self._tools.requires_something(self._name):  # no argument was written
            self.complete = False
            return
        if why := doubt(repairs, text) or self._merged(repairs):
            self.complete = False
            _, words = without_words(text)
            kind: ProblemKind = "arguments_trailing_text" if words else "non_json_arguments"
            if "repeated_key" not in repairs:
                self.problems.append(Problem(kind, f"not certain: {why}", text=words))

    def _merged(self, repairs: Collection[JsonRepair]) -> str:
        """Why a text with odd quotes may hold more members; `""` if no parameter is named in one."""
        if not by_quotes(repairs):
            return ""
        named = [name for name in _NAMED_IN_TEXT(self.text) if name in self._compiled.properties]
        return f"a text in which {named[0]!r} is named" if named else ""

    def _begin(self) -> ArgumentsParse:
        """Start the parse."""
        parse = ArgumentsParse(silent_reader(), self._out, self._name, self._compiled, self._tools, self._raw)
        self._parse = parse
        return parse
