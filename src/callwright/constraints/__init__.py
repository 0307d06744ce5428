"""Grammars for model servers: with them a model that must call a tool can write nothing else.

`derive` and `texts` find out how a dialect writes calls, `shape` says what an answer may look like, `sentence` lays
that out as a tree, and `lark`, `structural_tag`, `gbnf` and `json_schema` write it for one engine each. What a grammar
allows may be wider than the request: the answer is checked all the same.
"""
