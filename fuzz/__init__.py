"""Fuzzing: targets that draw an input from bytes and say what must hold for it, and what runs them for long.

`scripts/fuzz` runs them guided by coverage, `fuzz/test_fuzz.py` briefly. See docs/contributing/fuzzing.md.
"""
