"""What is read in few steps: text of which it is known for many deltas on how it passes a check.

Knows no format and no schema. `callwright.streaming.fast_path` joins what the reader of a text looks for with what
the check looks for.
"""

from typing import Final, Protocol


class Passing(Protocol):
    """More of a text that passes.

    While it `flows`, a delta without a character of `matters`, which is the inside of a class in a pattern, passes as
    it is, and is only noted. `certain` is a pattern of what may stand in it nevertheless, and `tail` of what is held
    back at its end; `certain_text` and `tail_text` are the same for a text that is yet to be written as JSON.
    """

    @property
    def flows(self) -> bool: ...

    @property
    def matters(self) -> str: ...

    @property
    def certain(self) -> str: ...

    @property
    def certain_text(self) -> str: ...

    @property
    def tail(self) -> str: ...

    @property
    def tail_text(self) -> str: ...

    def feed(self, text: str) -> str:
        """Read any delta; answers what has become certain."""

    def pass_on(self, text: str, tail: str) -> None:
        """Note text that has passed as it is, and behind it the `tail`, which is held back."""


class _AsIs:
    """All of it passes."""

    flows: Final = True
    matters: Final = ""
    certain: Final = ""
    certain_text: Final = ""
    tail: Final = ""
    tail_text: Final = ""

    def feed(self, text: str) -> str:
        """The text itself."""
        return text

    def pass_on(self, text: str, tail: str) -> None:
        """Nothing is to be noted."""


AS_IS: Final[Passing] = _AsIs()
