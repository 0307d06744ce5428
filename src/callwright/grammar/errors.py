"""A refusal, with its place in the definition."""

from callwright.errors import GrammarError


def refused(definition: str, offset: int, fault: str, way_out: str) -> GrammarError:
    """The error for what stands at `offset` of a definition: what is wrong, where, and what to write instead."""
    line = definition.count("\n", 0, offset) + 1
    column = offset - definition.rfind("\n", 0, offset)
    return refused_at(line, column, fault, way_out)


def refused_at(line: int, column: int, fault: str, way_out: str) -> GrammarError:
    """The same for a line and a column, both counted from 1."""
    message = f"Invalid grammar at line {line}, column {column}: {fault}. {way_out}"
    return GrammarError(message, line=line, column=column)
