"""A tolerant JSON reader: the JSON repair for text that may still be streaming in.

Reads in one pass, and returns a tree of `Node`s whose text is strict JSON: the model's own bytes if they were valid,
else repaired (`{a: 1,}` becomes `{"a": 1}`). Each repair is counted by its rule. Knows no schema.

Nothing is invented: in `{"a": }` the value is `missing`, in `{"a": 1e` it is a `half`, and a text that ends inside a
value sets `JsonReader.cut`. Code that turns a value into a call must refuse these, and values that `certain` doubts.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final, cast

from callwright.streaming.reader import Parse, StreamReader, finished, silent_reader
from callwright.tolerant_json.certain import JsonRepair, doubt
from callwright.tolerant_json.codec import NotJsonError, encode
from callwright.tolerant_json.escapes import CONTROLS, ESCAPE, UNICODE, escape, may_be_escape
from callwright.tolerant_json.scalars import scalar
from callwright.tolerant_json.strings import (
    AHEAD,
    JSON,
    LOOSE_JSON,
    QUOTES,
    Where,
    backslash_ends,
    comma_at_end,
    judge_quote,
    key_follows,
    quote_repairs,
)
from callwright.tolerant_json.tree import Item, Member, Node, given_once, name_of

__all__ = ["MAX_DEPTH", "JsonReader", "JsonRepair", "TooDeepError", "Where", "read_json"]

MAX_DEPTH: Final = 128

_BLANKS = re.compile(r"[\s\ufeff]*+").match
_USUAL_GAP = re.compile(r'[ \n]?(?=[",:{}\[\]\w])').match
# A member up to its value, in strict JSON and with the usual white space.
_USUAL_MEMBER = re.compile(
    r'(?P<before>[ \n]?)(?P<comma>(?:,[ \n]?)?)"(?P<key>[ !#-\[\]-~]*+)"(?P<colon>[ \n]?:[ \n]?)(?=["{\[\w-])'
).match
_STRICT_BLANKS = re.compile(r"[ \t\r\n]*+\Z").match
# By closing quote: a run of string text without that quote, escapes and control characters.
_RUNS = {quote: re.compile(rf"[^{quote[0]}\\\x00-\x1f]*+").match for quote in ('"', "'", "`", "”", "’", '"""', "'''")}
_WORD_ENDS: Final = {
    "object": re.compile(r"""[,}\]\n\r]|/\*|(?<=\s)(?://|\#|["'](?=[^\s]))|\)"""),
    "array": re.compile(r"""[,}\]\n\r]|/\*|(?<=\s)(?://|\#|["'](?=[^\s]))|\)|(?<=\d\s)(?=-?\d)"""),
    "top": re.compile(r"[,\n\r;]|(?<=\s)//|/\*"),
}
_ENDS_VALUE: Final = ("", ",", "}", "]", ")")
_IDENTIFIER = re.compile(r"[\w$.-]+\Z").match
_KEY_WORD = re.compile(r"""[^:=,{}\[\]"'\n\r]*+""").match


class TooDeepError(NotJsonError):
    """The value is nested more deeply than `MAX_DEPTH`."""


def read_json(text: str) -> Node | None:
    """A whole text as one value; None if it ends inside the value, has more text after it, is nested too deeply, or is
    ambiguous.
    """
    source = silent_reader(text)
    reader = JsonReader(source)
    try:
        node = finished(reader.value("top"))
    except TooDeepError:
        return None
    if source.text[source.at :].strip() or reader.cut or "missing_closer" in reader.repairs:
        return None
    return None if node.kind != "word" and doubt(reader.repairs, text) else node


class JsonReader:
    """Reads values from a `StreamReader`. Its methods are generators that yield when they need more text."""

    def __init__(self, source: StreamReader) -> None:
        self.source = source
        self.repairs: dict[JsonRepair, int] = {}
        self.cut = False  # the text ended in the middle of a scalar, a key or a member
        self.key_at = 0  # the place of the latest key, if the text was all there
        self.tail = ""  # the white space before the closer of the container that ended last
        self._open: list[str] = []  # the opening brackets of all open containers
        self._blanks = ""  # white space after the last unquoted word, which the word's own reader took
        self._notation = JSON  # loose if the current key has no quotes or has `=` for `:`, so the next key may, too

    def repaired(self, rule: JsonRepair) -> None:
        """Count a repair."""
        self.repairs[rule] = self.repairs.get(rule, 0) + 1

    # --- values ---

    def value(self, where: Where) -> Parse[Node]:
        """Read one whole value, from its first character on. Uses a stack, as the depth is the model's choice."""
        stack: list[tuple[Node, Member | Item]] = []
        depth = len(self._open)
        while True:
            node, is_open = yield from self.begin(where)
            while True:
                if is_open:
                    where = "object" if node.kind == "object" else "array"
                    entry = yield from self.next(node, first=not (node.members or node.items))
                    if entry is not None:
                        stack.append((node, entry))
                        break
                    node.tail = self.tail
                    if len(node.members) > 1:
                        node.members = self.given_once(node.members)
                if not stack:
                    assert len(self._open) == depth
                    return node
                parent, entry = stack.pop()
                entry.value = node
                siblings = parent.members if isinstance(entry, Member) else parent.items
                cast(list[Item], siblings).append(entry)
                node, is_open = parent, True

    def given_once(self, members: Sequence[Member]) -> Sequence[Member]:
        """The members without duplicates."""
        kept, others = given_once(members)
        self.repairs |= {"same_key": len(members) - len(kept)} if len(kept) < len(members) else {}
        self.repairs |= {"repeated_key": others} if others else {}
        return kept

    def begin(self, where: Where) -> Parse[tuple[Node, bool]]:
        """Read a scalar, or the opening bracket of a container; answers the node, and whether it is a container."""
        source = self.source
        while source.at == len(source.text) and not source.ended:
            yield
        mark = source.text[source.at : source.at + 1]
        if mark and mark in "{[(" and not (mark == "(" and where == "top"):
            if len(self._open) == MAX_DEPTH:
                raise TooDeepError(f"nested more deeply than {MAX_DEPTH} levels")
            source.at += 1
            self._open.append(mark)
            if mark == "(":
                self.repaired("tuple")
            node = Node("object", members=[]) if mark == "{" else Node("array", items=[])
            node.closed = False
            return node, True
        if mark in QUOTES:
            pieces: list[str] = []
            closed = yield from self.string(where, pieces.append)
            return Node("string", f'"{"".join(pieces)}"', closed=closed), False
        return (yield from self._word(where)), False

    def next(self, container: Node, *, first: bool) -> Parse[Member | None] | Parse[Item | None]:
        """Read up to the next value in an open container; None if the container ended: see its `closed`."""
        return self.member(container, first=first) if container.kind == "object" else self.item(container, first=first)

    def member(self, node: Node, *, first: bool) -> Parse[Member | None]:
        """The same in an object."""
        source = self.source
        usual = None if self._blanks else _USUAL_MEMBER(source.text, source.at)
        if usual and (not usual["comma"]) is first:
            self.key_at, source.at = usual.start("key") - 1, usual.end()
            self._notation = JSON
            key = Node("string", f'"{usual["key"]}"')
            before, comma, name, colon = usual.groups()
            return Member(before, comma[1:], Node("missing", "", "null"), key, colon, name)
        lead = yield from self._separator(node, first=first)
        if lead is None:
            return None
        self.key_at = source.at
        quoted = source.text[source.at] in QUOTES
        if quoted:
            pieces: list[str] = []
            closed = yield from self.string("key", pieces.append)
            key = Node("string", f'"{"".join(pieces)}"', closed=closed)
        else:
            key = yield from self._key_word()
        before = yield from self.gap()
        mark = source.text[source.at : source.at + 1]
        if not mark:  # cut in the key, or after it
            self.cut = True
            self._end_container(node)
            return None
        self._notation = LOOSE_JSON if mark == "=" or not quoted else JSON
        if not quoted and (mark not in ":=" or not _IDENTIFIER(key.written)):
            self.repaired("unquoted_text")
        if mark == ":":
            source.at += 1
        else:
            self.repaired("missing_colon")
            if mark == "=":
                source.at += 1
                while source.more(1):
                    yield
                source.at += source.text.startswith(">", source.at)
        after = yield from self.gap()
        if source.ended and source.done:  # the value is missing
            self.cut = True
            self._end_container(node)
            return None
        return Member(*lead, Node("missing", "", "null"), key, f"{before}:{after}", name_of(key))

    def item(self, node: Node, *, first: bool) -> Parse[Item | None]:
        """The same in an array."""
        lead = yield from self._separator(node, first=first)
        return None if lead is None else Item(*lead, Node("missing", "", "null"))

    def _separator(self, node: Node, *, first: bool) -> Parse[tuple[str, str] | None]:
        """Read commas up to the next key or item; answers the white space around them, None at the container's end."""
        source = self.source
        before = yield from self.gap()
        after, commas = "", 0
        while not (source.ended and source.done):
            mark = source.text[source.at]
            if mark in ",;":
                source.at += 1
                commas += 1
                after = yield from self.gap()
            elif mark in "}])":
                if commas:
                    self.repaired("extra_comma")
                if (yield from self._closer(mark, node)):
                    self.tail = before + after
                    return None
                after += yield from self.gap()
            elif mark == "." and (yield from self._ellipsis()):
                after += yield from self.gap()
            elif mark == "`" and (yield from self._fence_rest()):
                self._end_container(node)
                node.closed = True  # by the closer of the fence, further out
                return None
            elif mark == "{" and node.kind == "object" and first:
                source.at += 1  # `{{"a": 1}}`, as in the source of a template
                self.repaired("wrong_closer")
                after += yield from self.gap()
            else:
                if commas > (not first):
                    self.repaired("extra_comma")
                elif not (first or commas):
                    self.repaired("missing_comma")
                return before, after
        if commas:
            self.repaired("extra_comma")
        self._end_container(node)
        return None

    def _end_container(self, node: Node) -> None:
        """The text ended, or a fence closed, inside this container."""
        self._open.pop()
        self.repaired("missing_closer")
        self.tail = ""
        node.closed = False

    def _closer(self, mark: str, node: Node) -> Parse[bool]:
        """Whether a closing bracket ends the innermost container. One of the wrong kind may be a slip: `{"a": 1]`."""
        wanted = {"}": "{", "]": "[", ")": "("}[mark]
        source = self.source
        if self._open[-1] != wanted:
            if mark == ")" and wanted not in self._open:
                source.at += 1
                self.repaired("wrong_closer")
                return False
            if wanted in self._open and not (yield from self._goes_on_outside()):
                # As in `[{"a": [1}]`: the list was never closed. The brace stays unread, to close the object.
                self._open.pop()
                self.repaired("missing_closer")
                return True
            self.repaired("wrong_closer")
        source.at += 1
        self._open.pop()
        node.closed = True
        return True

    def _goes_on_outside(self) -> Parse[bool]:
        """Whether a key of the parent follows a wrong closer, which then was a slip for the innermost container's."""
        if self._open[-2:-1] != ["{"]:
            return False
        while True:
            ahead = self.source.ahead(AHEAD)[1:].lstrip()
            if ahead[:1] not in ("", ","):
                return False
            follows = key_follows(ahead[1:].lstrip(), is_all=not self.source.more(AHEAD))
            if follows is not None:
                return follows
            yield

    def _ellipsis(self) -> Parse[bool]:
        while self.source.more(3):
            yield
        if not self.source.text.startswith("...", self.source.at):
            return False
        self.source.at += 3
        self.repaired("ellipsis")
        return True

    def _fence_rest(self) -> Parse[bool]:
        """Whether a code fence closes here: it ends the value, whatever is still open."""
        while self.source.more(3):
            yield
        return self.source.text.startswith("```", self.source.at)

    # --- between tokens ---

    def gap(self) -> Parse[str]:
        """Skip white space and comments; answers the white space as strict JSON has it."""
        source = self.source
        if not self._blanks and (usual := _USUAL_GAP(source.text, source.at)):
            source.at = usual.end()
            return usual[0]
        blanks, self._blanks = self._blanks, ""
        while True:
            blanks += source.take(_BLANKS(source.text, source.at).end())  # type: ignore[union-attr]  # matches always
            text, at = source.text, source.at
            if at == len(text):
                if source.ended:
                    return self._strict(blanks)
                yield
                continue
            mark = text[at]
            if mark == "/":
                if source.more(2):
                    yield
                    continue
                kind = text[at : at + 2]
            else:
                kind = mark if self._open else ""
            if kind not in ("//", "/*", "#"):
                return self._strict(blanks)
            yield from self._skip_to("*/" if kind == "/*" else "\n")
            self.repaired("comment")

    def _strict(self, blanks: str) -> str:
        """White space as it is if JSON allows it, else one space."""
        if _STRICT_BLANKS(blanks):
            return blanks
        self.repaired("white_space")
        return " "

    def _skip_to(self, end: str) -> Parse[None]:
        source = self.source
        while (found := source.text.find(end, source.at)) < 0:
            source.at = len(source.text) if source.ended else max(source.at, len(source.text) - len(end) + 1)
            if source.ended:
                return
            yield
        source.at = found + (len(end) if end == "*/" else 0)

    # --- strings ---

    def string(self, where: Where, emit: Callable[[str], object]) -> Parse[bool]:
        """Read a string from its opening quote on; `emit` gets its inside in pieces of strict JSON, escapes included.

        Answers whether it was closed; `cut` is set if the text ended first. A quote inside (`"say "hi" now"`) is
        escaped. A comma at the end of a piece is held back: it ends the string if the quote is missing (`{"a": "x, "b":
        1}`).
        """
        source = self.source
        closing = yield from self._opening()
        run_of = _RUNS[closing]
        inner = 0
        while True:
            text = source.text
            end = run_of(text, source.at).end()  # type: ignore[union-attr]  # matches always
            mark = text[end : end + 1]
            at_quote = mark == closing[0]
            may_end = where == "object" and (at_quote or not (mark or source.ended))
            keep = comma_at_end(text, source.at, end) if may_end else end
            if keep > source.at:
                emit(source.take(keep).replace('"', '\\"'))
            if not mark:
                if source.ended:
                    self.cut = True
                    return False
                yield
            elif mark == "\\":
                ended = yield from self._backslash(emit, at_end=where == "object" and closing == '"')
                if ended is not None:
                    return ended
            elif not at_quote:
                emit(CONTROLS.get(mark) or f"\\u{ord(mark):04x}")
                source.at += 1
                self.repaired("control_character")
            else:
                verdict = judge_quote(
                    *(text, end, closing, where, self._open, inner),
                    ended=source.ended,
                    behind_comma=keep < end,
                    notation=self._notation,
                )
                if verdict is None:
                    yield
                    continue
                for rule in quote_repairs(verdict, closing, inner):
                    self.repaired(rule)
                if verdict == "missing_quote":
                    return True
                if end > keep:
                    emit(source.take(end))
                if verdict == "closes":
                    source.at += len(closing)
                    return True
                source.at += 1
                emit('\\"' if mark == '"' else mark)
                inner += 1

    def _backslash(self, emit: Callable[[str], object], *, at_end: bool) -> Parse[bool | None]:
        """Read a backslash and its escape; None if the string continues. `at_end`: the backslash may be text, and the
        quote after it the end of the string.
        """
        source = self.source
        while (ends := at_end and backslash_ends(source.text, source.at, ended=source.ended)) is None:
            yield
        if ends:
            emit("\\\\")
            source.at += 2
            self.repaired("bad_escape")
            return True
        return None if (yield from self._escape(emit)) else False

    def _opening(self) -> Parse[str]:
        """Read an opening quote of any kind; answers the closing one that belongs to it."""
        source = self.source
        mark = source.text[source.at]
        if mark in "\"'":
            while not source.ended and source.text[source.at :] in (mark, mark * 2):
                yield
            if source.text.startswith(mark * 3, source.at):
                source.at += 3
                self.repaired("bad_quotes")
                return mark * 3
        source.at += 1
        if mark != '"':
            self.repaired("bad_quotes")
        return QUOTES[mark]

    def _escape(self, emit: Callable[[str], object]) -> Parse[bool]:
        """Read one escape; False if the text ended inside it."""
        source = self.source
        while source.more(ESCAPE) or (source.more(UNICODE) and may_be_escape(source.text, source.at)):
            yield
        if may_be_escape(source.text, source.at):
            source.at = len(source.text)
            self.cut = True
            return False
        json, size = escape(source.text, source.at)
        if json != source.take(source.at + size):
            self.repaired("bad_escape")
        emit(json)
        return True

    # --- words ---

    def _word(self, where: Where) -> Parse[Node]:
        """Read a value without quotes: a number, a literal, or text that should have been quoted."""
        source = self.source
        pieces: list[str] = []
        search = _WORD_ENDS[where]
        while True:
            # A word has at least one character, unless the next character ends the container.
            ends = source.text[source.at : source.at + 1] in _ENDS_VALUE
            found = search.search(source.text, source.at if ends or pieces else source.at + 1)
            while found and found.group() == ")" and "(" not in self._open:
                found = search.search(source.text, found.end())
            end = found.start() if found else len(source.text)
            # Hold the last three back: they may begin what ends the word, as ` -` between the numbers of `[1 -2]`.
            keep = 0 if found or source.ended else min(3, end - source.at)
            if piece := source.take(end - keep):
                pieces.append(piece)
            if found or source.ended:
                break
            yield
        written = "".join(pieces)
        word = written.rstrip()
        if not word:
            self.repaired("missing_value")
            return Node("missing", "", "null")
        self._blanks = written[len(word) :]
        node, rule = scalar(word, at_end=source.done and bool(self._open))
        # At the end of the text a word may be half of one. A number is whole, or a `half`.
        self.cut = self.cut or (source.done and node.kind in ("word", "half"))
        if rule:
            self.repaired(rule)
        return node

    def _key_word(self) -> Parse[Node]:
        source = self.source
        pieces: list[str] = []
        while True:
            end = _KEY_WORD(source.text, source.at).end()  # type: ignore[union-attr]  # matches always
            pieces.append(source.take(end))
            if end < len(source.text) or source.ended:
                break
            yield
        written = "".join(pieces)
        word = written.rstrip()
        self._blanks = written[len(word) :]
        if source.text[source.at : source.at + 1] in ('"', "'") and not written[len(word) :]:
            source.at += 1
            self.repaired("missing_quote")
        else:
            self.repaired("unquoted_key")
        if not word and not source.done and source.text[source.at] not in ":=,}])":
            word = source.take(source.at + 1)  # a key must not be empty, or the reader would loop forever
        return Node("string", encode(word).decode(), word)
