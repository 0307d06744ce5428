"""Constraints in llama.cpp's grammar language, GBNF."""
