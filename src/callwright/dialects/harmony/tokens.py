"""Harmony's control tokens. Source: vocabulary o200k_harmony; every other id from 200000 on is reserved."""

from typing import Final

from callwright.dialects.base import TurnMarks
from callwright.layout.calls import CallLayout

START = "<|start|>"
END = "<|end|>"
MESSAGE = "<|message|>"
CHANNEL = "<|channel|>"
CONSTRAIN = "<|constrain|>"
RETURN = "<|return|>"
CALL = "<|call|>"
ENDOFTEXT = "<|endoftext|>"
CONTROLS = (START, END, MESSAGE, CHANNEL, CONSTRAIN, RETURN, CALL, ENDOFTEXT, "<|startoftext|>")

CHANNELS = ("analysis", "commentary", "final")
# The beginnings of a call whose control tokens a server has removed.
STRIPPED = (*(f"assistant{channel} to=" for channel in CHANNELS), "commentary to=functions.", "assistant to=functions.")

_NEXT = f"{END}{START}assistant"
CALLS: Final = CallLayout(
    begin=f"{CHANNEL}commentary to=functions.${{name}} {CONSTRAIN}json{MESSAGE}",
    stop=CALL,
    several=False,
    variants=("<|start|>", *STRIPPED),
)
MARKS: Final = TurnMarks(
    thought=(f"{CHANNEL}analysis{MESSAGE}", _NEXT),
    said=(f"{CHANNEL}commentary{MESSAGE}", _NEXT),
    answer=(f"{CHANNEL}final{MESSAGE}", ""),
    controls=CONTROLS,
)
