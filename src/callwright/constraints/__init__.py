"""Guided decoding (structured outputs): grammars for model servers.

With them a model that must call a tool can write nothing else. `format` splits a dialect's declaration into pieces,
`text_values` and `literal_values` constrain arguments, `shape` describes a valid answer and lays it out as a `tree`,
and `lark`, `structural_tag`, `gbnf_writer` and `json_schema` write it for one engine each. A grammar may allow more
than the request: the answer is validated in any case.
"""
