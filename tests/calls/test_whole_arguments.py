"""What leaves as it came: arguments that are all there, fit their schema, and say nothing twice."""

import pytest

from callwright.calls.whole_arguments import is_valid_as_is
from callwright.conversation import FunctionTool
from callwright.schema.compiled import compiled_schema

PROPERTIES = {"bed": {"type": "string"}, "cm": {"type": "integer"}, "rows": {"type": "array"}, "else": {}}
BED = FunctionTool("dig", None, {"type": "object", "properties": PROPERTIES, "required": ["bed"]})
# The text, and whether it may leave without another look.
CASES = {
    '{"bed": "a", "cm": 3}': True,
    '{"bed": "see \\"cm\\": 3, and \\"bed\\": b", "cm": 3}': True,
    '{"bed": "at 10:30: \\":\\" ", "rows": ["x:", "\\":"]}': True,
    '{"bed" : "a", "cm"\n\t:3}': True,
    '{"b\\u0065d": "a"}': True,
    '{"bed": "a", "bed": "b"}': False,
    '{"bed": "a", "bed" : "a"}': False,
    '{"bed": "a", "b\\u0065d": "b"}': False,
    '{"bed": ": \\": ", "cm": 1, "cm" :2}': False,
    '{"cm": 3}': False,
    '{"bed": "a", "dm": 3}': False,
    '{"bed": "a", "cm": 3.0}': False,
    '{"bed": "a", "rows": [{"n": 1}]}': False,
    '{"bed": "a", "else": {"n": 1}}': False,
    '{"bed": "a"': False,
    '{"bed": "a"} ': False,
    '[{"bed": "a"}]': False,
}


@pytest.mark.parametrize("text", CASES)
def test_only_what_fits_and_says_nothing_twice_leaves_as_it_came(text: str) -> None:
    assert is_valid_as_is(text, compiled_schema(BED)) == CASES[text]
