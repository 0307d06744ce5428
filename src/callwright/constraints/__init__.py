"""Guided decoding (structured outputs): grammars for model servers, with which a model that must call a tool can write
nothing else.

`format` and `text_values` find out how a dialect writes calls, `shape` says what an answer may look like and lays it
out as a `tree`, and `lark`, `structural_tag`, `gbnf_writer` and `json_schema` write it for one engine each. What a
grammar allows may be wider than the request: the answer is checked all the same.
"""
