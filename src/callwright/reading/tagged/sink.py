"""Takes one call that is read between tags: writes its values, names its faults, and decides whether it is complete."""

from collections.abc import Callable

from callwright.calls.toolset import Toolset
from callwright.events import CallEnded, Event, Problem, ProblemKind
from callwright.reading.arguments_writer import ArgumentsWriter, unread_json, unwritten
from callwright.reading.tagged.heads import parameters_of
from callwright.reading.tagged.values import Ending, TaggedValue
from callwright.tolerant_json.codec import encode, same_json


class CallSink:
    """One call. `sure`: nothing so far leaves its meaning open. `strayed`: other text is between its tags."""

    def __init__(
        self, emit: Callable[[Event], object], markup: Callable[[str], object], index: int, name: str, tools: Toolset
    ) -> None:
        self._emit = emit
        self._markup = markup
        self.index = index
        self.writer = ArgumentsWriter(emit, index, name, tools)
        self.declared = parameters_of(name, tools)
        self.sure = True
        self.strayed = False
        self._given: dict[str, TaggedValue | str] = {}
        self._differing: set[str] = set()

    def odd(self, detail: str, kind: ProblemKind = "markup_repaired", text: str = "") -> None:
        """Name a fault."""
        self._emit(Problem(kind, detail, call=self.index, text=text))

    def doubt(self, detail: str, kind: ProblemKind = "markup_repaired", text: str = "") -> None:
        """Name a fault that leaves the meaning open."""
        self.sure = False
        self.odd(detail, kind, text)

    def is_given(self, key: str) -> bool:
        """Whether a value of this parameter was read before."""
        return key in self._given

    def may_follow(self, key: str) -> Callable[[str], bool]:
        """Whether another parameter may come after this one, by its name."""

        def may(other: str) -> bool:
            return (not self.declared or other in self.declared) and other != key and other not in self._given

        return may

    def is_read(self, value: TaggedValue, name: str, *, flows: bool) -> bool:
        """Report anything unusual about a value, called `name`; False if the output ended in it. `flows`: it was
        written.
        """
        if value.holds:
            self.odd(f"{name!r} holds tags of the format", "markers_in_value")
        if value.odd:
            self.odd(value.odd)
        if value.ending is Ending.CUT:
            if value.text and not flows:
                self.odd("a value that was cut", "incomplete_arguments", value.text)
            return False
        if value.ending is Ending.MISSING:
            self.odd(f"the end of {name!r} is missing")
        if not value.sure:
            self.doubt(f"nobody knows where the value of {name!r} ends")
        return True

    def end_text(self, key: str, value: TaggedValue) -> None:
        """End the value of a parameter, which was streamed."""
        self.writer.close_text()
        self._given[key] = value

    def put(self, key: str, value: str, text: str) -> None:
        """Write the JSON of a value that was written as `text`. Of a parameter that was given before the first value
        stays, and if the two differ the meaning is open.
        """
        if key in self._given:
            first = self._given[key]
            known = self._given[key] = first if isinstance(first, str) else encode(first.text).decode()
            if key not in self._differing and same_json(known, value):
                self.odd(f"{key!r} is given twice", "argument_dropped", text)
                return
            self._differing.add(key)  # compared once: the first value may be long, and more of them many
            self.doubt(f"{key!r} is given twice, with different values", "argument_repeated", text)
            return
        if unread := unread_json(self.writer, key, value, self.index):
            self.sure = False
            self._emit(unread)
        self._given[key] = value
        self.writer.key(key)
        self.writer.json(value)

    def cast(self, name: str, text: str, schema: object) -> str:
        """The JSON of a text, by a schema; a repair of it is reported."""
        value = self.writer.cast_to_schema(text, schema)
        self.mend(name, text, value)
        return value

    def mend(self, name: str, text: str, value: str) -> None:
        """Name that `value` is the repaired JSON of a text."""
        self._markup(unwritten(text, value))
        if value[0] in "{[" and value != text.strip():
            self.odd(f"the JSON of {name!r} was repaired", "json_repaired")

    def end(self, *, is_whole: bool, writes: bool = True) -> bool:
        """End the call, which is complete if it is whole and sure. `writes`: its values were written one by one."""
        complete = is_whole and self.sure
        if complete and writes:
            self.writer.close()
        self._emit(CallEnded(self.index, complete=complete))
        return complete
