"""Stop sequences of the Messages API: the answer ends before the first of them, and says which one it was.

Servers that stop by themselves leave it open which sequence it was, and some stop in reasoning. So they are looked for
here, in the text for the user only.
"""

from collections.abc import Sequence


class StopSequences:
    """Looks for the sequences in a text that comes in pieces. `hit` is the one that was found: that which was whole
    first, however the text was cut.
    """

    def __init__(self, sequences: Sequence[str]) -> None:
        self._known = sorted(filter(None, sequences), key=len, reverse=True)
        self._longest = max(map(len, self._known), default=0)
        self._held = ""
        self.hit: str | None = None

    def push(self, text: str) -> str:
        """More text; answers what may go out: nothing from a sequence on, nor what may be the begin of one."""
        if not self._known:
            return text
        if self.hit is not None:
            return ""
        text = self._held + text
        self._held = ""
        ends = {text.find(sequence) + len(sequence): sequence for sequence in reversed(self._known) if sequence in text}
        if ends:
            end = min(ends)
            self.hit = ends[end]
            return text[: end - len(self.hit)]
        at = self._begin(text)
        self._held = text[at:]
        return text[:at]

    def flush(self) -> str:
        """No more text follows; answers what was held."""
        held, self._held = self._held, ""
        return held

    def _begin(self, text: str) -> int:
        """Where the begin of a sequence may stand at the end of a text."""
        for at in range(max(0, len(text) - self._longest + 1), len(text)):
            if any(sequence.startswith(text[at:]) for sequence in self._known):
                return at
        return len(text)
