"""Grammars that users write for the input of their custom tools."""
