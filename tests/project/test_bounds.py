"""Each bound at each door: the test that finds it enforced there, or in a word why there is nothing to enforce."""

from typing import Final, Literal, get_args

import pytest

from callwright.settings import bounds
from callwright.settings.bounds import Bounds
from tests.support.paths import ROOT

Door = Literal["chat", "responses", "messages", "websocket", "mcp", "bulk", "library"]
DOORS: Final[tuple[Door, ...]] = get_args(Door)
# Why a bound means nothing at a door.
WHYS: Final = {
    "absent": "what it counts does not come in there",
    "shared": "a turn over WebSocket is made, and kept, by the same service as one over HTTP",
    "once": "a server counts once, like a namespace; its list is bounded in bytes",
    "linear": "the work grows with the bytes that somebody gives to a process of his own, and no faster",
    "timed": "a grammar that takes more than 2 s, or too much memory, is refused wherever it comes from",
}

_REQUEST: Final = "test_what_is_above_a_limit_is_refused_and_what_is_within_goes_on"
_SOCKET: Final = "test_a_connection_is_held_to_them_too"
_ANSWER: Final = "test_what_a_server_sends_is_bounded_at_each_door"
_CALL: Final = "test_an_answer_to_a_call_is_bounded_and_the_next_call_runs"
_TOOLS: Final = "test_a_list_of_tools_is_bounded"
_ROW: Final = "test_a_row_that_stands_for_more_than_it_is_costs_no_more_than_others"
_SCHEMA: Final = "test_a_schema_that_stands_for_a_large_one_checks_nothing_and_that_is_named"
_HEAD: Final = "test_a_larger_one_is_refused_at_each_door"
_BODIES: Final = "test_bodies_have_so_much_room_together"
_SILENT: Final = "test_silent_connections_lock_nobody_out_and_the_first_of_them_end_first"
_PLACES: Final = "test_a_key_has_its_share_of_places_whichever_way_it_takes_them"
_DEEP: Final = "test_what_is_deep_is_read_or_named"
_KEPT_EVENTS: Final = "test_events_have_so_much_room_together_and_the_oldest_go_first"
_ROWS: Final = "test_no_more_rows_are_kept_than_their_bound_and_the_newest_are"
_CONTENTS: Final = "test_no_more_contents_are_kept_than_their_bound_and_the_newest_are"
_SEARCH: Final = "test_a_search_that_answers_too_much_has_failed_at_each_door"
_CHOICES: Final = "test_there_are_so_many_choices_at_most"
_KEPT: Final = "test_no_more_turns_are_kept_than_their_bound_and_those_in_use_are"
_KEPT_BYTES: Final = "test_no_more_bytes_are_kept_than_their_bound"
_PARAMETERS: Final = "test_parameters_of_a_call_are_bounded_at_each_door"

# In the order of `DOORS`.
HELD: Final[dict[str, tuple[str, str, str, str, str, str, str]]] = {
    "MAX_DEPTH": (_REQUEST, _REQUEST, _REQUEST, _SOCKET, "test_an_answer_that_is_deep_is_refused", _DEEP, _DEEP),
    "max_items": (_REQUEST, _REQUEST, _REQUEST, _SOCKET, "absent", "linear", "linear"),
    "MAX_PARTS": (_REQUEST, _REQUEST, _REQUEST, _SOCKET, "absent", "linear", "linear"),
    "MAX_CHOICES": (_CHOICES, "absent", "absent", "absent", "absent", "absent", "absent"),
    "MAX_OPTIONS": (
        "absent",
        "absent",
        "test_what_is_looked_for_again_and_again_is_counted",
        "absent",
        "absent",
        "absent",
        "absent",
    ),
    "max_tools": (_REQUEST, _REQUEST, _REQUEST, _SOCKET, "once", "linear", "linear"),
    "MAX_SCHEMA_BYTES": (_REQUEST, _REQUEST, _REQUEST, _SOCKET, _TOOLS, "linear", "linear"),
    "MAX_SCHEMA_PARTS": (_REQUEST, _REQUEST, _REQUEST, _SOCKET, _TOOLS, _ROW, _SCHEMA),
    "MAX_PATTERN_SIZE": (_REQUEST, _REQUEST, _REQUEST, _SOCKET, _TOOLS, _ROW, _SCHEMA),
    "MAX_PROPERTIES": (
        _REQUEST,
        _REQUEST,
        _REQUEST,
        _SOCKET,
        "absent",
        "linear",
        "test_a_schema_of_too_many_properties_is_counted_and_not_checked",
    ),
    "MAX_GRAMMAR_CHARS": (_REQUEST, _REQUEST, "absent", _SOCKET, "absent", "timed", "timed"),
    "MAX_PARAMETERS": (
        _PARAMETERS,
        _PARAMETERS,
        _PARAMETERS,
        _PARAMETERS,
        "absent",
        _ROW,
        "test_the_bound_of_parameters_holds_in_the_library",
    ),
    "MAX_HEAD_BYTES": (_HEAD, _HEAD, _HEAD, _HEAD, "absent", "absent", "absent"),
    "MAX_WAITING_BYTES": (
        "absent",
        "absent",
        "absent",
        "test_behind_a_turn_no_more_bytes_are_read_than_may_wait",
        "absent",
        "absent",
        "absent",
    ),
    "max_bodies_bytes": (_BODIES, _BODIES, _BODIES, "absent", "absent", "absent", "absent"),
    "MAX_KEPT_EVENT_BYTES": ("absent", _KEPT_EVENTS, "absent", "absent", "absent", "absent", "absent"),
    "MAX_INSPECTED_TURNS": (_ROWS, _ROWS, _ROWS, _ROWS, "absent", "absent", "absent"),
    "MAX_INSPECTED_BYTES": (
        _CONTENTS,
        _CONTENTS,
        _CONTENTS,
        _CONTENTS,
        "test_what_the_tools_of_a_server_have_said_counts",
        "absent",
        "absent",
    ),
    "MAX_KEPT_REASONING": (_KEPT, _KEPT, _KEPT, "shared", "absent", "absent", "absent"),
    "MAX_KEPT_REASONING_BYTES": (_KEPT_BYTES, _KEPT_BYTES, _KEPT_BYTES, "shared", "absent", "absent", "absent"),
    "max_connections": (_SILENT, _SILENT, _SILENT, _SILENT, "absent", "absent", "absent"),
    "MAX_CONNECTIONS_PER_KEY": (
        "absent",
        "absent",
        "absent",
        "test_a_key_has_so_many_websockets",
        "absent",
        "absent",
        "absent",
    ),
    "max_requests_per_key": (_PLACES, _PLACES, _PLACES, _PLACES, "absent", "absent", "absent"),
    "max_answer_bytes": (_ANSWER, _ANSWER, _ANSWER, _ANSWER, _CALL, "absent", _ANSWER),
    "MAX_EVENT_BYTES": (_ANSWER, _ANSWER, _ANSWER, _ANSWER, _CALL, "absent", _ANSWER),
    "MAX_SEARCH_BYTES": (_SEARCH, _SEARCH, _SEARCH, _SEARCH, "absent", "absent", "absent"),
    "MAX_ANSWER_VALUES": (_ANSWER, _ANSWER, _ANSWER, _ANSWER, _CALL, "absent", _ANSWER),
    "MAX_ANSWER_CALLS": (_ANSWER, _ANSWER, _ANSWER, _ANSWER, "absent", "absent", _ANSWER),
}


def test_no_bound_is_left_out() -> None:
    constants = {name for name in vars(bounds) if name.startswith("MAX_")}
    assert set(HELD) == {*Bounds.__struct_fields__, *constants}


@pytest.mark.parametrize("bound", HELD)
def test_each_bound_is_enforced_at_each_door_where_it_means_something(bound: str) -> None:
    texts = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").glob("*/test_*.py"))
    for door, held in zip(DOORS, HELD[bound], strict=True):
        assert held in WHYS or f"def {held}(" in texts, (bound, door)
    assert not set(HELD[bound]) <= set(WHYS)
