"""The begin of an answer that a request holds: the model goes on from there, and the answer does not repeat it."""


class WithoutPrefill:
    """Takes the begin that a client wrote out of the text of an answer: some servers repeat it, and so do readers that
    are fed with the whole answer.
    """

    def __init__(self, begun: str) -> None:
        self._left = begun
        self._held = ""

    def push(self, text: str) -> str:
        """More text; answers what is new of it."""
        if not self._left:
            return text
        self._held += text
        if len(self._held) < len(self._left) and self._left.startswith(self._held):
            return ""
        held, left, self._held, self._left = self._held, self._left, "", ""
        return held.removeprefix(left)

    def flush(self) -> str:
        """Something else follows; answers what was held. The begin of the answer may come yet if no text has."""
        held, self._held = self._held, ""
        if held:
            self._left = ""
        return held
