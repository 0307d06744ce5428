"""Guided decoding (structured outputs): grammars for model servers, with which a model that must call a tool can write
nothing else.

`format` cuts what a dialect declares into pieces, `text_values` and `literal_values` say what arguments may be, `shape`
says what an answer may look like and lays it out as a `tree`, and `lark`, `structural_tag`, `gbnf_writer` and
`json_schema` write it for one engine each. What a grammar allows may be wider than the request: the answer is checked
all the same.
"""
