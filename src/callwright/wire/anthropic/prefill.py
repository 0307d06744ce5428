"""Prefill: a request contains the start of the answer; the model continues it, and the answer does not repeat it."""


class WithoutPrefill:
    """Strips the client's prefill from the text of an answer: some servers repeat it, and so do readers of the whole
    answer.
    """

    def __init__(self, begun: str) -> None:
        self._left = begun
        self._held = ""

    def push(self, text: str) -> str:
        """Append text; return it without the prefill."""
        if not self._left:
            return text
        self._held += text
        if len(self._held) < len(self._left) and self._left.startswith(self._held):
            return ""
        held, left, self._held, self._left = self._held, self._left, "", ""
        return held.removeprefix(left)

    def flush(self) -> str:
        """Return the text held back, before other events. The prefill may still follow if there was no text yet."""
        held, self._held = self._held, ""
        if held:
            self._left = ""
        return held
