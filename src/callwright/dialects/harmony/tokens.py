"""Harmony's control tokens. Source: vocabulary o200k_harmony; every other id from 200000 on is reserved."""

__all__ = ["CALL", "CHANNEL", "CHANNELS", "CONSTRAIN", "CONTROLS", "END", "ENDOFTEXT", "MESSAGE", "RETURN", "START"]

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
