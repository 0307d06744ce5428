"""Hooks as an operator would write them, good and bad ones."""

import threading
from typing import Any

from callwright.hooks import CallInput, HookInput, PromptInput, RequestInput, ResultInput, Verdict

# The inputs so far, and the event that ends the hook `wait`.
ASKED: list[HookInput] = []
GO_ON = threading.Event()


def allow(given: HookInput) -> Verdict | None:
    """Allow all."""
    ASKED.append(given)
    return None


async def allow_async(given: HookInput) -> Verdict:
    """The same, as a coroutine."""
    return Verdict()


def deny(given: HookInput) -> Verdict:
    """Deny all."""
    return Verdict("deny", "Not here.")


def ask(given: HookInput) -> Verdict:
    """Let a person approve."""
    return Verdict("ask", "Ask the owner.")


def change(given: HookInput) -> Verdict | None:
    """Change what can be changed."""
    match given:
        case CallInput():
            return Verdict("replace", arguments={**(given.arguments or {}), "city": "Oslo"})
        case ResultInput():
            return Verdict("replace", text=f"checked: {given.text}")
        case RequestInput() | PromptInput():
            return None


def enlarge(given: HookInput) -> Verdict | None:
    """Change a sum."""
    ASKED.append(given)
    match given:
        case CallInput():
            return Verdict("replace", arguments={"a": 5, "b": 2})
        case ResultInput():
            return Verdict("replace", text=f"checked: {given.text}")
        case RequestInput() | PromptInput():
            return None


def hide(given: HookInput) -> Verdict:
    """Name a secret."""
    return Verdict(secrets=("open sesame",))


def crash(given: HookInput) -> Verdict:
    """Fail, with all that was given in the message."""
    raise LookupError(repr(given))


def end(given: HookInput) -> Verdict:
    """Try to end the process."""
    raise SystemExit(3)


def wait(given: HookInput) -> Verdict:
    """Never answer, until the test is over."""
    GO_ON.wait(60)
    return Verdict()


def nonsense(given: HookInput) -> Any:
    """Answer with no verdict."""
    return {"action": "allow"}


def forge(given: HookInput) -> Any:
    """Answer with arguments that do not match the schema."""
    return Verdict("replace", arguments={"city": 5, "evil": True})


class Blocklist:
    """A hook with a state."""

    def __call__(self, given: HookInput) -> Verdict | None:
        """Deny an input with the word."""
        return Verdict("deny", "That word is blocked.") if "blocked" in repr(given) else None
