"""Detects Markdown code and quotations in a streamed text: a call in them is shown, not meant. Independent of calls."""

import re

_RUNS = re.compile(r"\n|`+|~+|[^\n`~]+")


class CodeContext:
    """Follows a text that is fed to it. Inline code ends with its line, so that an odd backtick hides no call."""

    __slots__ = ("_blank", "_code", "_fence", "_opened_here", "_quoted", "_run")

    def __init__(self) -> None:
        self._fence = ""  # the opening fence, if one is open
        self._opened_here = False  # the fence was opened on this line
        self._code = 0  # the number of backticks that opened inline code, 0 if none is open
        self._run = ""  # backticks or tildes at the end: more may follow
        self._blank = True  # nothing but white space in this line so far
        self._quoted = False  # the line is a quotation (`>`) or a table row (`|`)

    def feed(self, text: str) -> None:
        """Read more text."""
        for piece in _RUNS.findall(text):
            if piece[0] in "`~":
                if self._run and self._run[0] != piece[0]:
                    self._settle()
                self._run += piece
                continue
            self._settle()
            if piece == "\n":
                self._blank, self._quoted, self._code, self._opened_here = True, False, 0, False
            elif not piece.isspace():
                self._quoted = self._quoted or (self._blank and piece.lstrip()[0] in ">|")
                self._blank = False

    def inside(self, blanks: str = "") -> bool:
        """Whether text after the white space `blanks` would be in code or a quotation."""
        self._settle()
        return bool(self._fence or ((self._code or self._quoted) and "\n" not in blanks))

    @property
    def in_fence(self) -> bool:
        """Whether the code is a fenced block."""
        return bool(self._fence)

    @property
    def at_line_start(self) -> bool:
        """Whether the line holds nothing but white space so far."""
        return self._blank and not self._run

    def _settle(self) -> None:
        """Judge a run of backticks or tildes, once it is known to be over."""
        run, self._run = self._run, ""
        if not run:
            return
        if self._fence:
            if run.startswith(self._fence) and (self._blank or self._opened_here):
                self._fence = ""
        elif self._blank and len(run) >= 3:
            self._fence, self._opened_here = run, True
        elif run[0] == "`":
            if self._code == len(run):
                self._code = 0
            elif not self._code:
                self._code = len(run)
        self._blank = False
