"""The calls of a dialect as fixed pieces, from its declared layout.

These are the frame of the arguments of one call of a tool, and of all calls.
"""

from typing import Final

import msgspec

from callwright.constraints.format_pieces import Fixed, Number, Splitter
from callwright.dialects.base import Dialect
from callwright.layout.calls import CallLayout, pieces_of

_COUNTERS: Final = ("number", "index")


class CallFrame(msgspec.Struct, frozen=True):
    """The fixed pieces around the arguments of one call, and around all calls.

    `several`: one answer can hold more than one call. `stop`: the stop token with which the model ends its turn.
    """

    open: Fixed
    begin: Fixed
    end: Fixed
    separator: Fixed
    close: Fixed
    stop: Fixed
    several: bool


class Delimited(msgspec.Struct, frozen=True):
    """Free text between marks of its own."""

    begin: Fixed
    end: Fixed


def splitter_of(dialect: Dialect) -> Splitter:
    """What cuts the texts of a dialect, at the control tokens that its calls and turns hold."""
    return Splitter({*dialect.prompt.marks.controls, *dialect.stops})


def frame_of(layout: CallLayout, cut: Splitter, name: str) -> CallFrame:
    """The frame of a call of the tool with this name."""
    return CallFrame(
        open=cut.fixed(cut.atoms(layout.open)),
        begin=_fixed(layout.begin, cut, name),
        end=_fixed(layout.end, cut, name),
        separator=cut.fixed(cut.atoms(layout.between)),
        close=cut.fixed(cut.atoms(layout.close)),
        stop=cut.fixed(cut.atoms(layout.stop)),
        several=layout.several,
    )


def delimited(marks: tuple[str, str] | None, cut: Splitter) -> Delimited | None:
    """A pair of marks as pieces."""
    return Delimited(*(cut.fixed(cut.atoms(mark)) for mark in marks)) if marks else None


def _fixed(layout: str, cut: Splitter, name: str) -> Fixed:
    atoms: list[str | Number] = []
    for piece in pieces_of(layout):
        if isinstance(piece, str):
            atoms += cut.atoms(piece)
        elif piece.what in _COUNTERS or piece.is_sized_id:
            atoms.append(Number(int(piece.form or 0), letters=piece.is_sized_id))
        else:
            atoms += cut.atoms(piece.fill({"name": name, "id": ""}))
    return cut.fixed(atoms)
