"""Search patterns for a reader of calls of named parameters, by the tags of their format."""

from functools import lru_cache
from typing import NamedTuple

from callwright.reading.tagged.tags import ParameterTags
from callwright.reading.text.marks import Marks, all_ends, is_token
from callwright.streaming.reader import Markers
from callwright.tolerant_json.passthrough import JsonTerminators


class ParameterMarks(NamedTuple):
    """Search patterns for a format: in text, and the stops `inside` of a call."""

    form: ParameterTags
    ends: tuple[str, ...]
    in_text: Marks
    openers: tuple[str, ...]
    block_ends: tuple[str, ...]
    closers: tuple[str, ...]
    strays: tuple[str, ...]
    tag_end: Markers
    inside: Markers
    over_all: Markers
    in_object: JsonTerminators


@lru_cache(maxsize=256)
def parameter_marks(
    tags: ParameterTags,
    thoughts: tuple[tuple[str, str], ...] = (("<think>", "</think>"),),
    ends: tuple[str, ...] = (),
    also: tuple[str, ...] = (),
    tokens: tuple[str, ...] = (),
    structure: tuple[str, ...] = (),
    end_thoughts: tuple[str, ...] = (),
) -> ParameterMarks:
    """The marks for these tags, cached because each answer of a format needs the same. `also` are further literals that
    may open a call, `tokens` the control tokens inside of calls, if they are not the tags. For the rest see `Marks`.
    """
    begins = [begin for begin, _ in tags.blocks]
    openers = (*begins, tags.call, *also)
    block_ends = tuple(end for _, end in tags.blocks)
    closers = (tags.call_end, *block_ends)
    inner = tokens or (tags.parameter, tags.parameter_end, *tags.inner, tags.end)
    strays = tuple(tag for tag in inner if len(tag) > 1 and is_token(tag))
    every_end = all_ends(ends)
    stops = [end for end in (tags.call_end, tags.call, *block_ends, *every_end) if end.startswith("<")]
    return ParameterMarks(
        form=tags,
        ends=every_end,
        in_text=Marks(
            (*openers, *closers, *(strays if tags.control else ())),
            thoughts,
            ends,
            tags.control,
            structure,
            end_thoughts,
        ),
        openers=openers,
        block_ends=block_ends,
        closers=closers,
        strays=strays,
        tag_end=Markers(tags.end),
        inside=Markers(tags.parameter, tags.call_end, tags.call, *begins, *block_ends, *every_end),
        over_all=Markers(tags.call_end, *block_ends, *every_end),
        in_object=JsonTerminators(
            *stops,
            then=tuple(stop for stop in stops if stop != tags.call_end),
            ends=tuple(end for end in every_end if end != tags.call_end),
        ),
    )
