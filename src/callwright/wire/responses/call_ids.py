"""Ids of calls on the Responses API: those of the model's server if they are unique."""

from collections.abc import Callable, Collection
from typing import Final

_MAX_CALL_ID: Final = 64


class CallIds:
    """Assigns ids to the calls of one response. `taken` are ids in use; `new_id` creates an id from its prefix."""

    def __init__(self, new_id: Callable[[str], str], taken: Collection[str] = ()) -> None:
        self._new_id = new_id
        self._taken = set(taken)

    def of(self, given: str | None) -> str:
        """The id that the upstream gave a call, if no other call has it; else a new one."""
        id_ = given if given and len(given) <= _MAX_CALL_ID and given not in self._taken else self._new_id("call")
        self._taken.add(id_)
        return id_
