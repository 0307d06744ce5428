"""Checkpoints that declare how their output reads: the `response_template` of transformers.

`declaration` checks the declaration, `expression` and `pattern` have RE2 run its regular expressions, `watch` looks for
delimiters in a stream, `plan` chooses them, `reader` reads an output, `calls` and `values` the calls in it.

Source: the page "Response Parsing" of transformers 5.23 and its `utils/chat_parsing`.
"""
