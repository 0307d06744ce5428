"""The tags that decide where a value between tags ends, and what seems to be a piece of a broken one."""

import re
from functools import lru_cache
from typing import Final

from callwright.dialects.readers.other_closers import OTHER_CLOSER, OtherClosers
from callwright.dialects.readers.parameter_tags import ParameterTags
from callwright.stream_reader import Markers

__all__ = ["TagLiterals", "broken_tag", "tag_literals"]

# So much of a tag is a piece of it, in characters: of its begin, and of its end.
_BEGIN: Final = 4
_END: Final = 5


class TagLiterals:
    """The tags that count in a value, and in what follows a closer."""

    def __init__(self, form: ParameterTags, ends: tuple[str, ...]) -> None:
        self.begins = tuple(dict.fromkeys(begin for begin, _ in form.blocks))
        self.block_ends = tuple(dict.fromkeys(end for _, end in form.blocks))
        own = (form.parameter, form.call_end, form.call, *self.block_ends)
        self.in_value = Markers(form.parameter_end, *own, *self.begins, *ends)
        self.flowing = Markers(*self.in_value.literals, OTHER_CLOSER)
        self.others = OtherClosers(form.parameter_end, form.end, *form.inner)
        self.behind = sorted(dict.fromkeys((*own, *self.begins, *ends)), key=len, reverse=True)
        self.opens = (form.parameter, form.call)
        self.closers = (form.call_end, *self.block_ends, *ends)
        self.closes = sorted(dict.fromkeys((form.parameter_end, *self.closers)), key=len, reverse=True)
        self.pairs = ((form.call, form.call_end), *form.blocks)
        self.pieces = _pieces(form)
        every = (*self.in_value.literals, *form.inner, *((form.end,) if len(form.end) > 1 else ()))
        self.tags = re.compile("|".join([*map(re.escape, every), r"<[|｜][^\s<>]+[|｜]>"]))

    def is_markup(self, text: str) -> bool:
        """Whether a text holds what seems to be a piece of a tag, a whole tag or a control token."""
        return self.pieces.search(text) is not None or self.tags.search(text) is not None

    def ends_unopened(self, text: str) -> bool:
        """Whether a value ends with other text and a closer that nothing in it opened."""
        text = text.rstrip()
        for opening, closer in self.pairs if self.opens[0] not in text else ():
            if text.endswith(closer) and text != closer:
                return text.count(closer) > text.count(opening)
        return False


def _pieces(form: ParameterTags) -> re.Pattern[str]:
    """Finds what seems to be a piece of a broken tag of a parameter."""
    broken = (form.parameter, form.parameter_end, *form.inner, *((form.end,) if len(form.end) > 1 else ()))
    whole = (*broken, form.call, form.call_end, *[tag for block in form.blocks for tag in block])
    found = []
    for tag in dict.fromkeys(broken):
        head, tail = tag[: min(_BEGIN, len(tag) - 1)], tag[-min(_END, len(tag) - 1) :]
        goes_on = "|".join(re.escape(each[len(head) :]) for each in whole if each.startswith(head))
        comes_from = "".join(f"(?<!{re.escape(each[: -len(tail)])})" for each in whole if each.endswith(tail))
        found += [f"{re.escape(head)}(?!{goes_on})", f"{comes_from}{re.escape(tail)}"]
    return re.compile("|".join(found))


@lru_cache(maxsize=256)
def tag_literals(form: ParameterTags, ends: tuple[str, ...]) -> TagLiterals:
    """The tags of a form that ends at these tokens, too."""
    return TagLiterals(form, ends)


def broken_tag(form: ParameterTags, text: str) -> bool:
    """Whether a text between tags seems to hold one, or a piece of one, so that its meaning is unknown."""
    return tag_literals(form, ()).is_markup(text)
