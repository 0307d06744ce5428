"""Readers of the calls of one format. They know no prose: the reader of the answer calls them."""

from callwright.reading.text.answer_text import AnswerText
from callwright.reading.text.marks import Marks
from callwright.streaming.reader import Parse


class CallReader:
    """The calls of one format; this base class has no calls. Subclasses override the methods for theirs.

    `marks` are searched for in the text. `begins`: own calls may begin an answer so, without a mark.
    """

    begins: tuple[str, ...] = ()

    def __init__(self, text: AnswerText, marks: Marks = Marks()) -> None:  # noqa: B008  # frozen
        self.text = text
        self.marks = marks

    def begin(self, start: str) -> Parse[None]:
        """Read a header before the text. `start`: see `callwright.prompt.Prompt`."""
        yield from ()

    def marked(self, blanks: str, tag: str) -> Parse["CallReader | None"]:
        """Read a tag after `blanks`, and its calls. Returns the reader for the rest of the answer if it changes."""
        self.text.emit(self.text.say(blanks + tag))
        yield from ()
        return None

    def may_begin_call(self, tag: str) -> Parse[bool]:
        """Whether the inside of a call follows this tag; nothing is read."""
        yield from ()
        return True

    def bare_call(self, lead: str) -> Parse[str | None]:
        """Read the beginning of a call without a mark after `lead`, if one is next; None if not."""
        yield from ()
        return None

    def read_bare(self, opening: str) -> Parse[None]:
        """Read calls without a mark, after their `opening`."""
        yield from ()

    def bracket_names_call(self) -> Parse[bool]:
        """Whether the next bracket opens a call without a mark."""
        yield from ()
        return False

    def structure(self, blanks: str, marker: str) -> Parse[bool]:
        """Read one of the `structure` marks, which open no call; False, and nothing is read, if it is text."""
        yield from ()
        return False

    def stop_token(self, token: str) -> Parse[bool]:
        """Read a stop token and the text after it; False, and nothing is read, if the text is not part of it."""
        yield from ()
        return False

    def last_call(self, text: str) -> int | None:
        """The index of the calls at the end of reasoning that is never closed; the length of the text if there is no
        call, None to search for plain JSON.
        """
        return None

    def end(self) -> None:
        """Report missing closing tags at the end of an answer."""
