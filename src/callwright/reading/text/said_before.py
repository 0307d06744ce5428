"""Reads the words of Llama 4 before calls in JSON: `<|python_start|>I will look.<|python_end|>{"name": …`, also with
nothing between the tokens, as its chat template writes it.
"""

from typing import Final

from callwright.events import Markup
from callwright.reading.text.answer_text import AnswerText
from callwright.streaming.reader import Markers, Parse, read_until

SAID: Final = ("<|python_start|>", "<|python_end|>")
_END: Final = Markers(SAID[1])
_MAX_SAID: Final = 65_536


def read_said_before(answer: AnswerText) -> Parse[None]:
    """Read these words, if an answer begins with them and JSON follows; the JSON then begins the answer."""
    source, opener = answer.source, SAID[0]
    if not (yield from answer.comes(opener)):
        return
    source.take(source.at + len(opener))
    text, marker = yield from read_until(source, _END, _MAX_SAID)
    blanks = yield from answer.held_blanks()
    if text.lstrip().startswith(("{", "[")) or not marker or not (yield from answer.comes("{")):
        source.unread(opener + text + marker + blanks)
        return
    answer.emit(Markup(opener))
    if text:
        answer.emit(answer.say(text))
    answer.emit(Markup(marker + blanks))
    answer.before = ""
