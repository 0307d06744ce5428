"""Stop sequences of the Messages API: the answer ends before the first match, and names the matched sequence.

Servers that stop by themselves do not report the sequence, and some stop in reasoning. So the gateway searches for
them, in the text for the user only.
"""

from collections.abc import Sequence


class StopSequences:
    """Searches for the sequences in a streamed text. `hit` is the one found: the first to be complete, independent of
    the boundaries of the deltas.
    """

    def __init__(self, sequences: Sequence[str]) -> None:
        self._known = sorted(filter(None, sequences), key=len, reverse=True)
        self._longest = max(map(len, self._known), default=0)
        self._held = ""
        self.hit: str | None = None

    def push(self, text: str) -> str:
        """Append text; return the part that may be sent: nothing from a match, or from a partial match at the end."""
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
        """End the text; return the part held back."""
        held, self._held = self._held, ""
        return held

    def _begin(self, text: str) -> int:
        """The index of a partial match at the end of a text; its length without one."""
        for at in range(max(0, len(text) - self._longest + 1), len(text)):
            if any(sequence.startswith(text[at:]) for sequence in self._known):
                return at
        return len(text)
