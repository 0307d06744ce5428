"""A refusal, with its place in the definition."""

from callwright.errors import GrammarError


def refused(definition: str, offset: int, fault: str, way_out: str) -> GrammarError:
    """The error for a fault at `offset` of a definition: the fault, its place, and the correction."""
    line = definition.count("\n", 0, offset) + 1
    column = offset - definition.rfind("\n", 0, offset)
    return refused_at(line, column, fault, way_out)


def refused_at(line: int, column: int, fault: str, way_out: str) -> GrammarError:
    """The same for a line and a column, both counted from 1."""
    message = f"Invalid grammar at line {line}, column {column}: {fault}. {way_out}"
    return GrammarError(message, line=line, column=column)
