"""Grammars of custom tools, Lark and regular expressions: one is refused with the place, or it can be used: its own
samples are of it, a text that comes in pieces is judged like the whole one, and both ways of judging agree.
"""

from callwright import Grammar, GrammarError
from callwright.upstreams.simulated.sampled import draw_text
from tests.support.choices import Choices

__all__ = ["run"]

LARK = (
    *(
        "start: ",
        "\nstart: ",
        "\na: ",
        "\nb: ",
        "\nA: ",
        "\n_B: ",
        "\n?c: ",
        "a",
        "b",
        "A",
        "_B",
        '"x"',
        '"yes"',
        '"é"',
        '""',
    ),
    *("/[a-z]+/", "/./", "/(/", "/a{2,5}/", "/x/i", "/\\d+/s", "/(?=a)b/", "/[^\\n]*/", '"x"i', '"a".."z"', " | ", "*"),
    *("+", "?", "~2", "~1..3", "~5..2", "(", ")", "[", "]", " ", "\n", "\n%import common.LF", "\n%import common.INT"),
    *(
        "\n%import common.nothing",
        "\n%ignore /[ ]+/",
        "\n%ignore A",
        "\n%declare Z",
        "-> line",
        "// x\n",
        "{",
        "}",
        ".1",
    ),
    *(
        "\nA.2: ",
        "\na{x}: x",
        "!",
        "%json {",
        '%json {"type": "string"}',
        "\\",
        '"',
        "/",
        "'x'",
        ":",
        "\n  | ",
        "\t",
        "\x00",
    ),
    *(
        "~99999999",
        "a a a a",
        "(a | b)* ",
        "@",
        "$",
        "#",
        "\n%extend a: ",
        "\n%override a: ",
        "<x>",
        "\nstart[temp=1]: a",
    ),
)
REGEX = (
    *(
        "a",
        "b",
        "é",
        ".",
        "*",
        "+",
        "?",
        "|",
        "(",
        ")",
        "(?:",
        "[",
        "]",
        "[^",
        "a-z",
        "-",
        "\\d",
        "\\w",
        "\\s",
        "\\b",
        "\\",
    ),
    *(
        "{2}",
        "{2,}",
        "{2,5}",
        "{5,2}",
        "{99999}",
        "^",
        "$",
        "(?=",
        "(?!",
        "(?<=",
        "(?P<n>",
        "(?i)",
        "(?i:",
        "\\1",
        "\\p{L}",
    ),
    *(
        "\\pL",
        "[[:alpha:]]",
        "&&",
        "\\x41",
        "\\u00e9",
        "\\Q",
        "\\n",
        "\n",
        "\x00",
        "\ud800",
        "*?",
        "++",
        "(?#",
        "(?>",
        "\\A",
    ),
)
TEXTS = ("", "a", "b", "x", "yes", "é", "az", " ", "\n", "1", "aa", "\ud83d", "\x00", "y" * 50)


def run(draw: Choices) -> None:
    """See the module."""
    syntax = draw.one(("lark", "regex"))
    draw.about = syntax
    if syntax == "lark":
        definition = draw.text(LARK, 24)
        if "start" not in definition:
            definition = "start: " + definition
    else:
        definition = draw.text(REGEX, 16)
    try:
        grammar = Grammar(syntax, definition)
    except GrammarError as error:
        lines = definition.split("\n")
        assert str(error)
        assert error.line is None or 1 <= error.line <= len(lines) + 1, f"{error.line} of {definition!r}"
        assert error.column is None or error.column >= 1
        return
    sample = draw_text(grammar, draw.number(3)) or None
    texts = [draw.text(TEXTS, 4)]
    if sample is not None:
        assert grammar.first_error(sample) is None, f"{definition!r} does not take its own {sample!r}"
        texts += [sample, sample[: draw.number(40)]]
    for text in texts:
        whole = grammar.first_error(text)
        assert grammar.accepts(text) == (whole is None), f"{definition!r} on {text!r}: {whole}"
        matcher = grammar.matcher()
        for piece in draw.cuts(text):
            matcher.feed(piece)
        assert matcher.finish() == whole, f"{definition!r} on {text!r} in pieces"
        assert whole is None or 0 <= whole.position <= len(text)
