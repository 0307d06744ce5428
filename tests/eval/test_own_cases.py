"""Files of cases: YAML as JSON has it, and those of BFCL, with what is right by its own rules."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from callwright.conversation import Call
from callwright.errors import ConfigError
from callwright.eval.case import Case
from callwright.eval.judge import Verdict
from callwright.eval.own_cases import read_cases
from callwright.eval.play import Play
from callwright.eval.wanted import misfit
from callwright.reading.collect import Turn

YAML = """
tools:
- &tool
  type: function
  function:
    name: note_time
    parameters:
      type: object
      properties: {at: {type: string}, day: {type: string}, sure: {type: string}, room: {type: string}}
cases:
- id: night
  messages: [{role: user, content: "Note: 12:30 on 2031-05-04, room 010, sure: no."}]
  tools: [*tool]
  must:
    calls:
    - name: note_time
      arguments: {at: 12:30, day: 2031-05-04, sure: no, room: 010}
- id: nothing
  messages:
  - role: user
    content: |
      Thank you.
  must: {calls: []}
"""


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["own.yaml", "own.yml"])
def test_a_yaml_file_has_the_values_that_json_would_have(tmp_path: Path, name: str) -> None:
    pytest.importorskip("yaml", reason="PyYAML is not installed")
    night, nothing = read_cases(written(tmp_path / name, YAML))
    assert night.must.calls is not None
    (call,) = night.must.calls
    assert dict(call.arguments) == {"at": "12:30", "day": "2031-05-04", "sure": "no", "room": "010"}
    assert nothing.tools == night.tools
    assert nothing.messages[0]["content"] == "Thank you.\n"
    assert nothing.must.calls == ()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "expected a mapping with cases in it, got NoneType"),
        ("- a", "got list"),
        ("cases: [", "is not valid YAML: .*line 1"),
        ("cases: []\ncases: []", "line 2: the key 'cases' is there twice"),
        ("cases: []", "has no cases"),
        ("cases: [{id: a, message: []}]", "Did you mean 'messages'"),
        ("cases: &a [*a]", "a value that JSON has not"),
        ("cases: !!python/name:os.system ''", "could not determine a constructor"),
    ],
)
def test_yaml_that_cannot_be_read_says_where(tmp_path: Path, text: str, told: str) -> None:
    pytest.importorskip("yaml", reason="PyYAML is not installed")
    with pytest.raises(ConfigError, match=told):
        read_cases(written(tmp_path / "own.yaml", text))


def test_without_a_package_for_yaml_the_error_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(ConfigError, match=r"own\.yaml: pyyaml is missing\. Install it: .*\[yaml\]"):
        read_cases(written(tmp_path / "own.yaml", YAML))


# --- BFCL ---

KNOT = {
    "name": "rope.tie_knot",
    "description": "Ties a knot.",
    "parameters": {
        "type": "dict",
        "properties": {
            "kind": {"type": "string", "description": "Which.", "default": "reef"},
            "length": {"type": "float", "description": "In metres.", "optional": True},
            "turns": {"type": "integer"},
            "at": {"type": "dict", "properties": {"deck": {"type": "string"}, "frame": {"type": "integer"}}},
            "crew": {"type": "tuple", "items": {"type": "string"}},
            "other": {"type": "any"},
        },
        "required": ["kind"],
    },
}
RIGHT = {
    "kind": ["Bow-line", "King of Knots"],
    "length": [2.5, ""],
    "turns": [2],
    "at": [{"deck": ["upper", ""], "frame": [3]}],
    "crew": [["Ada", "Bo"], ["Bo", "Ada"]],
    "other": [""],
}


def bfcl(folder: Path, category: str, truth: Any = None, *, function: Any = (KNOT,), turns: int = 1) -> Path:
    asked = {"id": f"{category}_7", "question": [[{"role": "user", "content": "Tie it."}]] * turns}
    path = written(folder / f"BFCL_v4_{category}.json", json.dumps({**asked, "function": function}))
    if truth is not None:
        answer = {"id": f"{category}_7", "ground_truth": truth}
        written(folder / "possible_answer" / path.name, json.dumps(answer) + "\n")
    return path


def verdict(case: Case, *calls: tuple[str, Any]) -> Verdict:
    play = Play(case)
    made = tuple(Call(name, json.dumps(arguments)) for name, arguments in calls)
    play.take(Turn(None, None, made, "tool_calls" if made else "stop"))
    return play.verdict()


GIVEN = {"kind": "bowline", "turns": 2, "at": {"frame": 3}, "crew": ["ada", "Bo."]}


@pytest.mark.parametrize(
    ("changed", "right"),
    [
        ({}, True),
        ({"kind": "king of knots", "length": 2.5}, True),
        ({"at": {"deck": "Upper", "frame": 3}, "crew": ["bo", "ada"]}, True),
        ({"kind": "reef"}, False),
        ({"length": 3}, False),
        ({"turns": 2.5}, False),
        ({"turns": None}, False),
        ({"at": {"deck": "upper"}}, False),
        ({"at": {"deck": "lower", "frame": 3}}, False),
        ({"at": {"frame": 3, "hatch": 1}}, False),
        ({"crew": ["Ada"]}, False),
        ({"new": 1}, False),
    ],
)
def test_an_answer_to_a_question_of_bfcl_is_right_by_its_rules(
    tmp_path: Path, changed: dict[str, Any], right: bool
) -> None:
    (case,) = read_cases(bfcl(tmp_path, "simple_python", [{"rope.tie_knot": RIGHT}]))
    assert (case.id, case.group) == ("simple_python_7", "simple_python")
    function = case.tools[0]["function"]
    places = function["parameters"]["properties"]
    assert function["name"] == "rope_tie_knot"
    assert [place["type"] for place in places.values()] == ["string", "number", "integer", "object", "array", "string"]
    assert places["kind"] == {"type": "string", "description": "Which. default: reef."}
    assert verdict(case, ("rope_tie_knot", {**GIVEN, **changed})).right is right


def test_a_required_argument_may_be_what_the_default_is(tmp_path: Path) -> None:
    (case,) = read_cases(bfcl(tmp_path, "simple", [{"rope.tie_knot": {"kind": ["reef"]}}]))
    assert verdict(case, ("rope_tie_knot", {"kind": "reef"})).right


def test_categories_of_bfcl_say_what_is_right_without_answers(tmp_path: Path) -> None:
    (none,) = read_cases(bfcl(tmp_path, "live_irrelevance"))
    (some,) = read_cases(bfcl(tmp_path, "live_relevance", function=KNOT))
    call = ("rope_tie_knot", {"kind": "reef"})
    assert [verdict(none).right, verdict(none, call).right] == [True, False]
    assert [verdict(some).right, verdict(some, call).right] == [False, True]


def test_parallel_calls_of_bfcl_come_in_any_order(tmp_path: Path) -> None:
    truth = [{"rope.tie_knot": {"kind": ["reef"]}}, {"rope.tie_knot": {"kind": ["hitch"]}}]
    (case,) = read_cases(bfcl(tmp_path, "parallel", truth))
    calls = [("rope_tie_knot", {"kind": kind}) for kind in ("hitch", "reef")]
    assert verdict(case, *calls).right
    assert verdict(case, calls[0]).lost == 1


@pytest.mark.parametrize(
    ("category", "truth", "turns", "told"),
    [
        ("simple_java", [], 1, r"category 'simple_java' is not read\. Read are: simple,"),
        ("multi_turn_base", [], 1, "'multi_turn_base' is not read"),
        ("simple", None, 1, r"its answers are looked for in .*possible_answer.BFCL_v4_simple\.json, but: No such file"),
        ("multiple", [], 2, "expected one turn in question, got 2"),
        ("simple", ["tie_knot()"], 1, "expected a line of BFCL: Expected `object`, got `str`"),
        ("simple", [{"rope.tie_knot": {"kind": "reef"}}], 1, "expected a line of BFCL: Expected `array`, got `str`"),
    ],
)
def test_what_is_not_read_of_bfcl_says_so(tmp_path: Path, category: str, truth: Any, turns: int, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        read_cases(bfcl(tmp_path, category, truth, turns=turns))


def test_an_answer_of_another_question_is_no_answer(tmp_path: Path) -> None:
    path = bfcl(tmp_path, "simple", [{"rope.tie_knot": {"kind": ["reef"]}}])
    written(path, path.read_text().replace("simple_7", "simple_8"))
    with pytest.raises(ConfigError, match="has no answer for 'simple_8'"):
        read_cases(path)


@pytest.mark.parametrize(
    ("wanted", "fits", "not_"),
    [
        ({"a": {"$one_of": [1, {"$absent": True}]}}, [{}, {"a": 1}], [{"a": 2}, {"a": None}]),
        ({"a": {"$one_of": [1, 2]}}, [{"a": 2}], [{}]),
        ({"$loosely": "May 4, 2031"}, ["may 4 2031", "May4,2031"], ["May 5, 2031", 3, None]),
        ({"$loosely": "it's"}, ['IT"S'], ["its"]),
    ],
)
def test_what_may_be_left_out_or_written_otherwise_fits(wanted: Any, fits: list[Any], not_: list[Any]) -> None:
    assert not [value for value in fits if misfit(wanted, value)]
    assert not [value for value in not_ if not misfit(wanted, value)]
