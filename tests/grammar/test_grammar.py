"""Grammars of users: which are refused and where, which texts are of them, and where others go wrong."""

import pickle
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llguidance import LLMatcher

from callwright.errors import GrammarError, RequestError
from callwright.grammar import compile as compiling
from callwright.grammar import engine
from callwright.grammar import grammar as user
from callwright.grammar.engine import Engine, allowed_bytes
from callwright.grammar.grammar import Grammar, Violation
from callwright.grammar.lint import check_lark
from tests.support.entries import entered
from tests.support.examples import examples


class Sound(NamedTuple):
    """A grammar, texts of it, and others with the place where they go wrong and what is said there."""

    id: str
    syntax: str
    definition: str
    texts: tuple[str, ...]
    wrong: tuple[tuple[str, str], ...]


class Faulty(NamedTuple):
    id: str
    syntax: str
    definition: str
    line: int
    column: int
    said: str


# After the shape of the grammar that Codex CLI sends for its tool `apply_patch` (openai/codex, codex-rs/core,
# tool_apply_patch.lark, November 2026), in own words.
PATCH = r"""
start: head hunk+ tail
head: "*** Begin Patch" LF
tail: "*** End Patch" LF?

hunk: add | delete | update
add: "*** Add File: " path LF added+
delete: "*** Delete File: " path LF
update: "*** Update File: " path LF move? change?

path: /(.+)/
added: "+" /(.*)/ LF -> line
move: "*** Move to: " path LF
change: (place | line)+ end?
place: ("@@" | "@@ " /(.+)/) LF
line: ("+" | "-" | " ") /(.*)/ LF
end: "*** End of File" LF

%import common.LF
"""

TRAPS = r"""
start: A B C D E F
A: /\*?/
B: /[*?]+|\+?/
C: /(?:go)?/
D: /\(\?=x\)?/
E: /[(?!]\{2}?/
F: /\p{Lu}?[[:digit:]]?/
"""

SOUND = [
    Sound(
        "a list",
        "lark",
        'start: berry ("; " berry)*\nberry: /[a-z]+/\n',
        ("rowan", "sloe; elder; haw"),
        (
            ("", "line 1, column 1: expected one of a-z, got the end of the text"),
            ("sloe;", "line 1, column 6: expected a space, got the end of the text"),
            ("sloe; Haw", 'line 1, column 7: expected one of a-z, got "H"'),
            ("sloe haw", 'line 1, column 5: expected one of ";", a-z, or the end of the text, got a space'),
        ),
    ),
    Sound(
        "literals that branch",
        "lark",
        'start: "turn " ("left" | "right" | "round") " now"?\n',
        ("turn left", "turn round now"),
        (
            ("burn", 'line 1, column 1: expected one of "turn left", "turn right", "turn round", got "b"'),
            ("turn up", 'line 1, column 6: expected one of "left", "right", "round", got "u"'),
            ("turn left!", 'line 1, column 10: expected " now" or the end of the text, got "!"'),
            ("turn lef", 'line 1, column 9: expected "t", got the end of the text'),
        ),
    ),
    Sound(
        "lines",
        "lark",
        'start: ("# " TITLE LF)? (ROW LF)+\nTITLE: /[^\\n]+/\nROW: /-+/\nLF: "\\n"\n',
        ("# a\n--\n", "-\n---\n"),
        (
            ("# a\n--\n# b", 'line 3, column 1: expected "-" or the end of the text, got "#"'),
            ("# \n", "line 1, column 3: expected any character but a line feed, got a line feed"),
            ("-\n-", 'line 2, column 2: expected one of a line feed, "-", got the end of the text'),
        ),
    ),
    Sound(
        "characters of several bytes",
        "lark",
        'start: "größe " ("Ω" | "Ж") " " /[à-ï]+/ "→"?\n',
        ("größe Ж ê", "größe Ω èéê→"),
        (
            ("größe Ø ", 'line 1, column 7: expected one of "Ω ", "Ж ", got "Ø"'),
            ("größe Ω x", 'line 1, column 9: expected a character beyond ASCII, got "x"'),
            ("größe Ω ê→→", 'line 1, column 11: expected the end of the text, got "→"'),
            ("große", 'line 1, column 3: expected one of "öße Ω ", "öße Ж ", got "o"'),
        ),
    ),
    Sound(
        "recursion to the left",
        "lark",
        'start: sum\nsum: sum "+" unit | unit\nunit: /[0-9]+/ | "<" sum ">"\n',
        ("1+2", "<1+<2>>+3"),
        (("1+", ""), ("<1", ""), ("1>", "")),
    ),
    Sound(
        "recursion to the right, and a rule that ends it",
        "lark",
        'start: "ab" start | "c"\n',
        ("c", "ababc"),
        (("ab", 'line 1, column 3: expected one of "ab", "c", got the end of the text'),),
    ),
    Sound(
        "a rule that never ends beside one that does",
        "lark",
        'start: "a" | loop\nloop: "x" loop\n',
        ("a",),
        (("x", ""),),
    ),
    Sound(
        "brackets, counts of both kinds, marks on names",
        "lark",
        'start: [sign] PAIR~2 dot{0,2} _tail\n?sign: "+" | "-"\n!dot: "." -> point\n_tail: "!"\nPAIR: /[01]/~2\n',
        ("0110!", "-0000..!"),
        (("011!", ""), ("0110...!", "")),
    ),
    Sound(
        "an empty alternative, and alternatives on lines",
        "lark",
        'start: "v" part\npart:\n    | "." /[0-9]+/\n    | "-rc"\n',
        ("v", "v.3", "v-rc"),
        (("v.", ""),),
    ),
    Sound(
        "what is skipped, and imports",
        "lark",
        '%import common (WS_INLINE, CNAME)\n%import common.INT -> COUNT\n%ignore WS_INLINE\nstart: CNAME "=" COUNT\n',
        ("x=1", "x_2 \t=   44"),
        (("x\n=1", ""), ("1=x", "")),
    ),
    Sound(
        "looks like what is refused, in regular expressions",
        "lark",
        TRAPS,
        ("*+go(?=x({2}É7", "?(?=x)!{2", "+(?=x({2}"),
        (),
    ),
    Sound(
        "looks like what is refused, in strings and comments",
        "lark",
        "// a*? (?=b) <|end|> %json @x & ~\n# %declare A.5\n"
        'start: "<|call|>" "%json {}" "@x" "a*?" "~&" "::" "s{a}" "p.5" // /x+?/\n',
        ("<|call|>%json {}@xa*?~&::s{a}p.5",),
        (),
    ),
    Sound(
        "slashes and a hash in a regular expression",
        "lark",
        "start: A B\nA: /\\/\\/ #[a-z]+/\nB: /#\\//\n",
        ("// #ab#/",),
        (("// #ab", ""),),
    ),
    Sound("escapes in strings", "lark", r'start: "\u00e9\t\"\\\/" "\x41"', ('é\t"\\/A',), (("é\t'", ""),)),
    Sound("without case", "lark", 'start: "Aye"i /[x-z]+/i', ("aYEx", "AYEXyZ"), (("ayw", ""),)),
    Sound("ranges", "lark", 'start: "a".."e" "0".."4"', ("a0", "e4"), (("f0", ""), ("a5", ""))),
    Sound("names of all kinds", "lark", "start: a-b _c\na-b: A-1\n_c: _D2\nA-1: /a/\n_D2: /d/", ("ad",), (("a", ""),)),
    Sound("carriage returns", "lark", 'start: a // b\r\n  | "b"\r\na: "a"\r\n', ("a", "b"), (("c", ""),)),
    Sound("rules that nothing reaches", "lark", 'start: "a"\nother: nothing THERE\n', ("a",), (("b", ""),)),
    Sound(
        "the empty text", "lark", "start:\n", ("",), (("a", "line 1, column 1: expected the end of the text, got "),)
    ),
    Sound(
        "a class",
        "regex",
        "[a-f0-9_ ]{2}",
        ("a0", "_ "),
        (
            ("", 'line 1, column 1: expected one of a space, 0-9, "_", a-f, got the end of the text'),
            ("ag", 'line 1, column 2: expected one of a space, 0-9, "_", a-f, got "g"'),
            ("abc", 'line 1, column 3: expected the end of the text, got "c"'),
        ),
    ),
    Sound(
        "nearly any character",
        "regex",
        r'"[^"\\\x00-\x1f\x7f]*"',
        ('""', '"äöü €"'),
        (('"\n"', 'line 1, column 2: expected any character but control characters, "\\\\", got a line feed'),),
    ),
    Sound("anchors at both ends", "regex", "^(?:ash|oak)$", ("ash",), (("oaks", ""), ("", ""))),
    Sound("anchors in alternatives", "regex", r"^a$|^b|(^|,)c(;|$)|\Ad\z", ("a", "b", ",c;", "c", "d"), (("bc", ""),)),
    Sound("flags", "regex", "(?i)ab(?-i)c(?s:.)(?i-U:d)", ("aBc\nD",), (("abC\nd", ""),)),
    Sound("named groups", "regex", r"(?P<y>[0-9]{4})-(?<m>[0-9]{2})", ("2026-11",), (("2026-1", ""),)),
    Sound("a group called stop", "regex", "a(?P<stop>b)c", ("abc",), (("ac", ""),)),
    Sound("Unicode", "regex", r"\p{Greek}+\d\w", ("λόγος٣é",), (("logos1a", ""),)),
    Sound("classes in classes", "regex", "[a-z&&[^aeiou]]+[]x][^]x][[:alpha:][0-3]]", ("bcd]y3",), (("a]y3", ""),)),
    Sound("slashes are characters", "regex", "/a+/", ("/aa/",), (("aa", ""),)),
    Sound("escapes", "regex", r"\n\t\x41\u{e9}\.\/\-", ("\n\tAé./-",), ((" ", ""),)),
    Sound("repeated repetition", "regex", "(?:a{2})*+b?+", ("aab", "aaaabb"), (("a", ""),)),
    Sound("a dot", "regex", ".+", ("a", "é\r"), (("a\nb", ""),)),
    Sound(
        "patches",
        "lark",
        PATCH,
        (
            "*** Begin Patch\n*** Add File: a/b.py\n+import os\n+\n*** End Patch",
            "*** Begin Patch\n*** Delete File: c\n*** End Patch\n",
            "*** Begin Patch\n*** Update File: d\n*** Move to: e\n@@ f():\n-x\n y\n*** End of File\n*** End Patch",
        ),
        (
            (
                "*** Begin Patch\n*** Rename File: a\n",
                'line 2, column 5: expected one of "Add File: ", "Delete File: ", "Update File: ", got "R"',
            ),
            (
                "*** Begin Patch\n*** Add File: a.py\nimport os\n*** End Patch",
                'line 3, column 1: expected "+", got "i"',
            ),
            (
                "*** Begin Patch\n*** Add File: \n",
                "line 2, column 15: expected any character but a line feed, got a line",
            ),
            (
                "*** Begin Patch\n*** Delete File: a\n",
                'line 3, column 1: expected one of "*** Add File: ", "*** Delete File: ", "*** End Patch", "*** Update',
            ),
            (
                "*** begin Patch",
                'line 1, column 5: expected one of "Begin Patch\\n*** Add File: ", "Begin Patch\\n*** Delete File: "',
            ),
        ),
    ),
]

FAULTY = [
    # regular expressions, alone
    Faulty("lookahead", "regex", "[a-z]+(?=;);", 1, 7, "lookahead '(?='"),
    Faulty("negative lookahead", "regex", "(?!ab).", 1, 1, "negative lookahead"),
    Faulty("lookbehind", "regex", "a(?<=a)b", 1, 2, "lookbehind"),
    Faulty("negative lookbehind", "regex", "ab(?<!a)b", 1, 3, "negative lookbehind"),
    Faulty("lazy star", "regex", "<.*?>", 1, 3, "lazy repetition '*?'"),
    Faulty("lazy plus", "regex", "(ab)+?c", 1, 5, "lazy repetition '+?'"),
    Faulty("lazy question mark", "regex", "[?]??", 1, 4, "lazy repetition '??'"),
    Faulty("lazy count", "regex", "x{2,}?y", 1, 2, "lazy repetition '{2,}?'"),
    Faulty("lazy behind an escape", "regex", r"\*\p{L}+?", 1, 8, "lazy"),
    Faulty("lazy behind characters beyond ASCII", "regex", "äöü*?", 1, 4, "lazy"),
    Faulty("word boundary", "regex", r"a\b", 1, 2, "word boundary"),
    Faulty("no word boundary", "regex", r"a\Bb", 1, 2, "word boundary"),
    Faulty("word start", "regex", r"\b{start}a", 1, 1, "word boundary"),
    Faulty("word start as a bracket", "regex", r"\<a", 1, 1, "word boundary"),
    Faulty("back-reference", "regex", r"(a|b)\1", 1, 6, "back-reference"),
    Faulty("back-reference by name", "regex", "(?P<q>a)(?P=q)", 1, 9, "back-reference"),
    Faulty("back-reference by name, escaped", "regex", r"(?P<q>a)\k<q>", 1, 9, "back-reference"),
    Faulty("atomic group", "regex", "x(?>ab|a)c", 1, 2, "atomic group"),
    Faulty("conditional group", "regex", "(a)?(?(1)b|c)", 1, 5, "conditional group"),
    Faulty("comment", "regex", "a(?#b)c", 1, 2, "comment"),
    Faulty("end as in Python", "regex", r"a\Z", 1, 2, r"'\Z'"),
    Faulty("begin inside", "regex", "a^b", 1, 2, "'^' is not at the start"),
    Faulty("end inside", "regex", "(a$|b)c", 1, 3, "'$' is not at the end"),
    Faulty("begin in a group behind", "regex", r"a(?:b|\A)", 1, 7, r"'\A'"),
    Faulty("repeated anchor", "regex", "^*a", 1, 1, "anchor"),
    Faulty("many lines", "regex", "(?im)^a$", 1, 4, "flag 'm'"),
    Faulty("verbose", "regex", "a(?x: b )", 1, 4, "flag 'x'"),
    Faulty("greed swapped", "regex", "(?U)a+", 1, 3, "flag 'U'"),
    Faulty("line feed", "regex", "ab\nc", 1, 3, "line break"),
    Faulty("class not closed", "regex", "ab[c-d", 1, 3, "not closed"),
    Faulty("class not closed, for its first bracket is a character", "regex", "a[]", 1, 2, "not closed"),
    Faulty("group not closed", "regex", "a(b", 1, 2, "unclosed group"),
    Faulty("group not opened", "regex", "ab)", 1, 3, "')' without '('"),
    Faulty("backslash at the end", "regex", "ab\\", 1, 3, "end of a regular expression"),
    Faulty("nothing to repeat", "regex", "a|*b", 1, 3, "repetition operator"),
    Faulty("count of nothing", "regex", "/\t/a{,3}", 1, 6, "repetition quantifier"),
    Faulty("unknown escape", "regex", r"/a/\q", 1, 4, "unrecognized escape"),
    Faulty("unknown property", "regex", r"a\p{Elvish}", 1, 2, "property not found"),
    Faulty("name twice", "regex", "(?P<a>x)(?P<a>y)", 1, 5, "duplicate"),
    Faulty("matches nothing", "regex", "x[a&&b]", 1, 1, "no text can ever be complete"),
    Faulty("counts in counts", "regex", "(q{1,900}){1,900}", 1, 1, "too complex"),
    Faulty("counts in counts of words", "regex", r"(?:\w{1,700} ?){1,700}", 1, 1, "too complex"),
    Faulty("too deep", "regex", "(" * 400 + "a" + ")" * 400, 1, 251, "maximum number of nested"),
    Faulty("too long", "regex", "a" * 100_001, 1, 1, "100,001 characters are too many"),
    Faulty("half a character", "regex", "ab\ud800", 1, 3, "surrogate"),
    # the same, in Lark
    Faulty("lazy, in a rule", "lark", 'start: "é" /<!--.*?-->/\n', 1, 18, "lazy"),
    Faulty("lookahead, in a terminal", "lark", "start: A\nA: /x(?=y)/ B\nB: /y/", 2, 6, "lookahead"),
    Faulty("lookahead, in what nothing reaches", "lark", 'start: "a"\nA: /x(?=y)/', 2, 6, "lookahead"),
    Faulty("verbose, behind the slashes", "lark", "start: / a /ix", 1, 14, "flag 'x'"),
    Faulty("locale, behind the slashes", "lark", "start: /a/l", 1, 8, "l-flag"),
    Faulty("line feed, in slashes", "lark", "start: /a\nb/\n", 1, 10, "line break"),
    Faulty("nothing to repeat, with flags", "lark", 'start: "ü" A\nA: /x/ /é+(*)/i\n', 2, 12, "repetition operator"),
    Faulty("slash in a class", "lark", "start: /[/]/\n", 1, 9, "not closed"),
    # names
    Faulty("nothing", "lark", "", 1, 1, "no rule 'start'"),
    Faulty("a start that is a terminal", "lark", 'START: "a"', 1, 1, "no rule 'start'"),
    Faulty("unknown rule", "lark", 'start: "a" b\n', 1, 12, "'b' is not defined"),
    Faulty("unknown terminal, further on", "lark", 'start: a\na: ("ü" | B)\nB: "b" C', 3, 8, "'C' is not defined"),
    Faulty("mark behind a string", "lark", 'start: "a"?b\nb: "b"', 1, 11, "Put a space after '?'"),
    Faulty("rule twice", "lark", 'start: a\na: "x"\n?a: "y"', 3, 1, "'a' is defined twice"),
    Faulty("import twice", "lark", "start: INT\nINT: /1/\n%import common.INT", 3, 16, "defined in line 2"),
    Faulty("terminal in itself", "lark", 'start: A\nA: "(" B ")"\nB: A | "x"', 3, 4, "made of itself"),
    Faulty("rule in a terminal", "lark", 'start: A b\nA: "x" b\nb: "y"', 2, 8, "rule 'b' in A"),
    Faulty("rule that is skipped", "lark", '%ignore b\nstart: "x" b\nb: "y"', 1, 9, "rule 'b' in %ignore"),
    Faulty("import of nothing known", "lark", "start: E\n%import common.EMAIL -> E", 2, 1, "'common.EMAIL'"),
    Faulty("import of another library", "lark", "start: NAME\n%import python.NAME", 2, 1, "import of another"),
    Faulty("import of a file", "lark", "start: a\n%import .rules (a, b)", 2, 1, "import of another"),
    Faulty("import of all", "lark", 'start: "a"\n%import common\n', 2, 15, "expected '.'"),
    # what the engine takes beyond Lark, and what it lacks
    Faulty("priority of a terminal", "lark", 'start: A | B\nA.2: "a"\nB: /a/', 2, 2, "priorities"),
    Faulty("priority of a rule", "lark", 'start: a\na.-1: "a"', 2, 2, "priorities"),
    Faulty("template", "lark", 'start: _two{X}\n_two{x}: x x\nX: "x"', 1, 8, "templates"),
    Faulty("template that nothing uses", "lark", 'start: "a"\n_two{x}: x x', 2, 5, "templates"),
    Faulty("declaration", "lark", "start: A\n%declare A", 2, 1, "%declare"),
    Faulty("override", "lark", 'start: "a"\n%override start: "b"', 2, 1, "%override"),
    Faulty("extension", "lark", 'start: "a"\n%extend start: "b"', 2, 1, "%extend"),
    Faulty("unknown directive", "lark", 'start: "a"\n%include "x"', 2, 1, "%include"),
    Faulty("JSON schema", "lark", 'start: "a" %json {"type": "null"}', 1, 12, "%json"),
    Faulty("nested Lark", "lark", 'start: a\na: %lark { start: "x" }', 2, 4, "%lark"),
    Faulty("substrings", "lark", 'start: A\nA: %regex {"substring_chars": "ab"}', 2, 4, "%regex"),
    Faulty("options", "lark", '%llguidance {"no_forcing": false}\nstart: "a"', 1, 1, "%llguidance"),
    Faulty("attribute", "lark", 'start: a "."\na[lazy]: /.*/', 2, 2, "attributes"),
    Faulty("attribute with a value", "lark", 'start: a\na[suffix="!", max_tokens=3]: /.*/', 2, 2, "attributes"),
    Faulty("another grammar", "lark", "start: @other", 1, 8, "@other"),
    Faulty("special token", "lark", 'start: "a" <|return|>', 1, 12, "special token <|return|>"),
    Faulty("token by its number", "lark", "start: <[7-9]>", 1, 8, "special token <[7-9]>"),
    Faulty("and", "lark", "start: A\nA: /[a-z]+/ & /.{4}/", 2, 13, "'&'"),
    Faulty("not", "lark", "start: A\nA: ~/a/", 2, 4, "negation"),
    Faulty("parameter", "lark", 'start: a::0x3\na::_: "x" %if true', 1, 9, "parameters"),
    # form
    Faulty("quote not closed", "lark", 'start: "ü" "abc\n', 1, 12, "without its closing quote"),
    Faulty("single quotes", "lark", "start: 'a'", 1, 8, "single quote"),
    Faulty("unknown escape in a string", "lark", r'start: "ab\qc"', 1, 11, "unknown escape"),
    Faulty("raw tab in a string", "lark", 'start: "ab\tc"', 1, 11, "raw control character"),
    Faulty("slash not closed", "lark", 'start: "a" /bc\n', 1, 12, "without its closing slash"),
    Faulty("character of nothing", "lark", 'start: "a";', 1, 11, "unexpected ';'"),
    Faulty("line that goes on", "lark", 'start: "a" \\\n  "b"', 1, 12, "unexpected '\\'"),
    Faulty("bracket not closed", "lark", 'start: ("a" | "b"\nc: "c"', 1, 18, "expected ')'"),
    Faulty("bracket not opened", "lark", 'start: "a")\n', 1, 11, "got ')'"),
    Faulty("no colon", "lark", 'start = "a"', 1, 7, "expected ':'"),
    Faulty("body on the next line", "lark", 'start:\n  "a"', 2, 3, "start of a rule"),
    Faulty("mixed case", "lark", 'start: "a"\nFoo: "b"', 2, 2, "expected ':'"),
    Faulty("repeated twice", "lark", 'start: "a"*?', 1, 12, "got '?'"),
    Faulty("count that is no number", "lark", 'start: "a"~1.5', 1, 12, "a whole number"),
    Faulty("count the wrong way round", "lark", 'start: "é"\n  | "a"~3..2', 1, 8, "range"),
    Faulty("range of more than a character", "lark", 'start: "ab".."c"', 1, 8, "single character"),
    Faulty("alias in upper case", "lark", 'start: "a" -> A', 1, 15, "lower case"),
    # no text, or too much work
    Faulty("never ends", "lark", 'start: a\na: "x" b | b "y"\nb: a', 1, 1, "no text can ever be complete"),
    Faulty("only itself", "lark", "start: start", 1, 1, "no text can ever be complete"),
    Faulty("takes all and then wants more", "lark", "start: /x+/ /x+/", 1, 1, "no text of up to"),
    Faulty("counts in counts, in a terminal", "lark", 'start: A\nA: ("q"~1..900)~1..900', 1, 1, "too complex"),
    Faulty("too many alternatives", "lark", "start: " + " | ".join(f'"{n}"' for n in range(6000)), 1, 1, "too complex"),
    Faulty("too many at one place", "lark", "start: " + " | ".join(f'"{n}"' for n in range(2500)), 1, 1, "too complex"),
    Faulty("groups too deep", "lark", "start: " + "(" * 60 + '"a"' + ")" * 60, 1, 36, "nested too deeply"),
    Faulty(
        "rules too deep, which would end the process",
        "lark",
        "start: r0\n" + "".join(f"r{n}: r{n + 1}\n" for n in range(5000)) + 'r5000: "a"',
        1001,
        7,
        "more than 1,000 levels",
    ),
]


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the engine says is asked here, not how fast the machine is."""
    monkeypatch.setattr(compiling, "_WAIT_S", 60.0)


def _id(case: Sound | Faulty) -> str:
    return case.id


def _violation(grammar: Grammar, pieces: list[str]) -> Violation | None:
    matcher = grammar.matcher()
    for piece in pieces:
        matcher.feed(piece)
    return matcher.finish()


def _cuts(text: str) -> Iterator[list[str]]:
    yield [text]
    yield list(text)
    rng = random.Random(repr(text))  # a text may hold half of a surrogate pair, which is no seed
    for _ in range(4):
        cuts = sorted(rng.choices(range(len(text) + 1), k=rng.randint(1, 6)))
        yield [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@pytest.mark.parametrize("case", SOUND, ids=_id)
def test_texts_of_a_grammar_are_accepted(case: Sound) -> None:
    grammar = Grammar(case.syntax, case.definition)
    for text in case.texts:
        assert grammar.first_error(text) is None
        assert grammar.accepts(text)
        assert all(_violation(grammar, pieces) is None for pieces in _cuts(text))


@pytest.mark.parametrize("case", SOUND, ids=_id)
def test_other_texts_are_told_where_they_go_wrong(case: Sound) -> None:
    grammar = Grammar(case.syntax, case.definition)
    for text, said in case.wrong:
        found = grammar.first_error(text)
        assert found is not None
        assert not grammar.accepts(text)
        assert str(found).startswith(said)
        assert found.got == text[found.position : found.position + 1]
        assert found.line == text.count("\n", 0, found.position) + 1
        assert found.column == found.position - text.rfind("\n", 0, found.position)


@pytest.mark.parametrize("case", SOUND, ids=_id)
def test_however_a_text_is_cut_the_answer_is_the_same(case: Sound) -> None:
    grammar = Grammar(case.syntax, case.definition)
    for text, _ in case.wrong:
        whole = grammar.first_error(text)
        assert whole is not None
        assert all(_violation(grammar, pieces) == whole for pieces in _cuts(text))


@pytest.mark.parametrize("case", SOUND, ids=_id)
def test_random_texts_of_a_grammar_are_accepted(case: Sound) -> None:
    grammar = Grammar(case.syntax, case.definition)
    for seed in range(8):
        text = grammar.sample(seed)
        assert text is not None
        assert text == grammar.sample(seed)
        assert grammar.first_error(text) is None


@pytest.mark.parametrize("case", FAULTY, ids=_id)
def test_a_grammar_that_is_refused_says_where_and_why(case: Faulty) -> None:
    with pytest.raises(GrammarError) as caught:
        Grammar(case.syntax, case.definition)
    error = caught.value
    assert case.said in error.message
    assert (error.line, error.column) == (case.line, case.column)
    assert f"line {case.line}, column {case.column}" in error.message
    assert (error.code, error.status) == ("invalid_value", 400)


def test_an_unknown_syntax_is_refused() -> None:
    with pytest.raises(RequestError, match="got 'ebnf'"):
        Grammar("ebnf", "start = a")


def test_what_is_expected_stays_short() -> None:
    words = [f"{first}{second}{'x' * 30}" for first in "ab" for second in "cde"]
    for definition in (
        "start: " + " | ".join(f'"{word}"' for word in words),
        "start: /[!-.:-@{-~€]/",
        'start: "' + "ab" * 3000 + '"',
    ):
        found = Grammar("lark", definition).first_error("")
        assert found is not None
        assert len(found.expected) <= 140
        assert "…" in found.expected


def test_a_matcher_answers_the_first_violation_for_ever() -> None:
    matcher = Grammar("regex", "[a-z]+;").matcher()
    assert matcher.feed("ab") is None
    found = matcher.feed("c9;")
    assert found is not None
    assert found.position == 3
    assert matcher.feed("more") is found
    assert matcher.finish() is found


def test_a_long_text_is_read_to_its_end() -> None:
    grammar = Grammar("lark", 'start: (WORD ",")+\nWORD: /[a-z]+/\n')
    text = "elder," * 20_000
    matcher = grammar.matcher()
    assert all(matcher.feed(text[at : at + 64]) is None for at in range(0, len(text), 64))
    found = matcher.feed(",")
    assert found is not None
    assert found.position == len(text)


def test_a_matcher_may_be_fed_nothing() -> None:
    matcher = Grammar("regex", "ab").matcher()
    assert [matcher.feed(piece) for piece in ("", "a", "", "b", "")] == [None] * 5
    assert matcher.finish() is None


def test_half_a_surrogate_pair_is_just_a_wrong_character() -> None:
    grammar = Grammar("regex", "(?s:.)+")
    found = grammar.first_error("aé\ud83d")
    assert found is not None
    assert (found.position, found.got) == (2, "\ud83d")
    assert str(found).endswith('got "\\ud83d"')


def test_grammars_are_values() -> None:
    class Tool(msgspec.Struct, frozen=True):
        grammar: Grammar | None = None

    one, same, other = Grammar("regex", "a+"), Grammar("regex", "a+"), Grammar("lark", 'start: "a"+')
    assert one == same != other
    assert len({Tool(one), Tool(same), Tool(other)}) == 2
    assert pickle.loads(pickle.dumps(one)) == one
    assert eval(repr(one), {"Grammar": Grammar}) == one


def test_an_error_survives_a_process_border() -> None:
    with pytest.raises(GrammarError) as caught:
        Grammar("regex", "a*?")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.message, again.line, again.column) == (caught.value.message, 1, 2)


@pytest.mark.parametrize("step", [50, 4096])
def test_what_other_texts_left_in_the_engine_changes_no_answer(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    monkeypatch.setattr(engine, "_LEXER_FUEL", 400_000)
    monkeypatch.setattr(user, "_STEP", step)
    compiling.compiled.cache_clear()
    grammar = Grammar("regex", "[ab]*a[ab]{90}")
    rng = random.Random(1)
    for _ in range(60):
        text = "".join(rng.choices("ab", k=150)) + "a" + "b" * 90
        assert grammar.first_error(text) is None
        assert grammar.accepts(text)
        found = grammar.first_error(text + "c")
        assert found is not None
        assert (found.position, found.expected) == (241, 'one of "a", "b", or the end of the text')


@pytest.mark.parametrize("step", [50, 4096])
def test_a_text_that_asks_for_too_much_work_is_wrong_where_it_does(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    monkeypatch.setattr(engine, "_LEXER_FUEL", 60_000)
    monkeypatch.setattr(user, "_STEP", step)
    compiling.compiled.cache_clear()
    grammar = Grammar("regex", "[ab]*a[ab]{60}")
    rng = random.Random(2)
    text = "".join(rng.choices("ab", k=3000))
    found = grammar.first_error(text)
    assert found is not None
    assert "too much work" in found.expected
    assert all(_violation(grammar, pieces) == found for pieces in _cuts(text))


# --- time ---


@pytest.fixture
def stuck(_patient: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Compiling waits until the event is set."""
    go_on = threading.Event()

    def engine(*given: Any, **named: Any) -> Engine:
        go_on.wait(30)
        return Engine(*given, **named)

    monkeypatch.setattr(compiling, "Engine", engine)
    monkeypatch.setattr(compiling, "_WAIT_S", 0.01)
    monkeypatch.setattr(compiling, "_SLOTS", threading.BoundedSemaphore(2))
    yield go_on
    go_on.set()
    for thread in threading.enumerate():
        if thread.name == "grammar":
            thread.join()


def test_a_grammar_that_takes_too_long_is_refused_and_not_remembered(
    stuck: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    definition = 'start: "slow"'
    with pytest.raises(GrammarError, match="too long to compile"):
        Grammar("lark", definition)
    stuck.set()
    monkeypatch.setattr(compiling, "_WAIT_S", 30.0)
    assert Grammar("lark", definition).accepts("slow")


def test_no_more_than_a_few_grammars_are_compiled_at_once(stuck: threading.Event) -> None:
    before = threading.active_count()
    for number in range(5):
        with pytest.raises(GrammarError, match="too long to compile"):
            Grammar("lark", f'start: "{number}"')
    assert threading.active_count() - before == 2


def _each_ends_behind_the_next(rules: int) -> str:
    between = "".join(f'r{n}: r{n + 1} | r{n - 1} "x"\n' for n in range(1, rules))
    return f'start: r0\nr0: r1 | "x"\n{between}r{rules}: r{rules - 1}\n'


def test_whether_a_text_can_end_is_found_in_time_that_grows_with_the_rules() -> None:
    few, many = (entered(partial(check_lark, _each_ends_behind_the_next(rules))) for rules in (200, 800))
    assert many < 5 * few


# --- fuzz ---

LARK_ATOMS = [
    *r'start: a b A B a: A: "x" "é"i /[a-z]+/ /\*?/ /x*?/ /\/\// /[/]/ ~2 ~2..3 {1,2} {,3} -> c .. "a".."f"'.split(),
    *"%import common.INT (WS,LF) INT LF ? * + ~ ( ) [ ] :: = .5 , //c #d <|end|> @x %json {} & - \" / ' \\ é".split(),
    *("%ignore ", "|", "\n", "\r\n", "\n  | ", " ", "\t", '\na: "x" | "(" a ")"\nA: /z/\nb: A?\nB: A "y"\n'),
]
REGEX_ATOMS = [
    *r"^ $ a ( (?: ) | * + ? {2} {1,3} {0} [ab] [^a] []a] [a&&b] \d \b \A \z . \. (?i) (?i: (?m) (?P<n> \1".split(),
    *r"(?= (?<! (?> (?# \p{L} { } () [ ] \n (^ $) (?s) - \x{41} / \/ é \ & ~".split(),
    *("\t", " ", "\n"),
]


def _may_refuse(syntax: str, definition: str) -> Grammar | None:
    try:
        return Grammar(syntax, definition)
    except GrammarError as refused:
        error = refused
    lines = definition.split("\n")
    assert 1 <= error.line <= len(lines)
    assert 1 <= error.column <= len(lines[error.line - 1]) + 2
    return None


def _soup(atoms: list[str], most: int) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(atoms), max_size=most).map("".join)


@examples(300)
@given(_soup(LARK_ATOMS, 12), st.booleans())
def test_a_soup_of_tokens_is_a_grammar_or_refused(soup: str, within: bool) -> None:
    definition = f'start: {soup}\na: "x" | "(" a ")"\nA: /z/\nb: A?\nB: A "y"\n' if within else soup
    grammar = _may_refuse("lark", definition)
    if grammar is not None:
        text = grammar.sample()
        assert text is None or grammar.accepts(text)


@examples(300)
@given(_soup(REGEX_ATOMS, 9))
def test_a_soup_of_regex_parts_is_a_grammar_or_refused(soup: str) -> None:
    grammar = _may_refuse("regex", soup)
    if grammar is not None:
        text = grammar.sample()
        assert text is None or grammar.accepts(text)


@examples(200)
@given(st.sampled_from(SOUND), st.text(st.characters(codec=None), max_size=40), st.integers(0, 99), st.data())
def test_whatever_a_model_writes_is_answered_alike_in_all_cuts(
    case: Sound, noise: str, seed: int, data: st.DataObject
) -> None:
    grammar = Grammar(case.syntax, case.definition)
    begin = grammar.sample(seed) or ""
    text = begin[: data.draw(st.integers(0, len(begin)))] + noise
    found = grammar.first_error(text)
    assert grammar.accepts(text) == (found is None)
    assert all(_violation(grammar, pieces) == found for pieces in _cuts(text))
    if found is not None:
        assert found.got == text[found.position : found.position + 1]
        assert found.expected
        right = grammar.first_error(text[: found.position])
        assert right is None or right.position == found.position


def test_a_grammar_whose_texts_are_too_long_is_walked_once_and_no_more() -> None:
    """Each walk takes as long as a text may be, and a model that draws calls asks for dozens: half a minute."""
    grammar = Grammar("regex", r"\p{L}{1000}\p{N}{1000}")
    walks = entered(lambda: grammar.sample(1))
    assert entered(lambda: [grammar.sample(seed) for seed in range(50)]) < walks / 50
    assert grammar.sample(2) is None
    assert Grammar("regex", "[a-c]{1000}").sample(1) is not None


@pytest.mark.parametrize(
    "definition",
    [r"(\w{2,9}-){40,60}\d{3}", r"(\d{2,5}){3,9}(\d{2,3}){60,90}", "([a-f]{1,4}){700}", "(x|yy|zzz){1400}"],
)
@pytest.mark.parametrize("step_s", [0.05, 0.4])
def test_however_slow_a_step_is_random_texts_have_their_time_and_no_more(
    monkeypatch: pytest.MonkeyPatch, definition: str, step_s: float
) -> None:
    """A step takes as long as many counts make it, which the length of the text does not tell."""
    steps = 0

    def counted(reading: LLMatcher) -> list[int]:
        nonlocal steps
        steps += 1
        return allowed_bytes(reading)

    grammar = Grammar("regex", definition)
    monkeypatch.setattr(grammar._engine, "is_long", False)
    monkeypatch.setattr(engine, "allowed_bytes", counted)
    assert [grammar.sample(seed, lambda: steps * step_s < 2) for seed in range(9)] == [None] * 9
    assert steps <= 2 / step_s + 1
    assert grammar.first_error("") is not None


# Reads 100 requests with different grammars, and prints how many MB the last 60 add to the memory of the process.
_MANY = """
import json
from callwright.settings.bounds import Bounds
from callwright.wire.body import decoded
from callwright.wire.chat.request import read_request

def memory():
    with open("/proc/self/statm") as told:
        return int(told.read().split()[1]) * 4_096 // 1_000_000

def grammar(number):
    words = "\\n".join(f"T{one}: /\\\\p{{L}}{{1,{20 + one}}}\\\\p{{N}}{one}{number}/" for one in range(60))
    return f"start: ({'|'.join(f'T{one}' for one in range(60))})+\\n{words}"

before = 0
for number in range(100):
    given = {"type": "grammar", "grammar": {"syntax": "lark", "definition": grammar(number)}}
    tools = [{"type": "custom", "custom": {"name": "f", "format": given}}]
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "tools": tools}
    read_request(decoded(json.dumps(body), Bounds()))
    before = memory() if number == 40 else before
print(memory() - before)
"""


@pytest.mark.processes
@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="Linux tells the memory of a process")
def test_always_other_grammars_take_no_more_memory() -> None:
    run = subprocess.run([sys.executable, "-c", _MANY], capture_output=True, text=True, check=True)
    assert int(run.stdout) < 90  # all 60 take 150; the allocator adds some
