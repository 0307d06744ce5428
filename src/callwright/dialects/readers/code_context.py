"""Where a text is code or quotation, piece by piece. What stands there is shown, not meant."""

import re

__all__ = ["CodeContext"]

_RUNS = re.compile(r"\n|`+|~+|[^\n`~]+")


class CodeContext:
    """Follows a text that is fed to it. Inline code ends with its line at the latest: an odd backtick hides no more."""

    __slots__ = ("_blank", "_code", "_fence", "_opened_here", "_quoted", "_run")

    def __init__(self) -> None:
        self._fence = ""  # what opened the fence that is open
        self._opened_here = False  # on this line
        self._code = 0  # how many backticks opened the inline code that is open
        self._run = ""  # backticks or tildes at the end: more may follow
        self._blank = True  # nothing but blanks in this line so far
        self._quoted = False  # the line is a quotation or the row of a table

    def feed(self, text: str) -> None:
        """Go on with more text."""
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
        """Whether what comes behind `blanks` is code, or quoted."""
        self._settle()
        return bool(self._fence or ((self._code or self._quoted) and "\n" not in blanks))

    @property
    def at_line_start(self) -> bool:
        """Whether nothing but blanks stands in the line so far."""
        return self._blank and not self._run

    def _settle(self) -> None:
        """Read a run of backticks or tildes that is over."""
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
