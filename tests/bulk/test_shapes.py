"""Files as people have them: the shape of a row is found, each answer in it is read, what fits nothing is named."""

import codecs
import json
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from callwright import write
from callwright.bulk.columns import from_columns
from callwright.bulk.engines import run
from callwright.bulk.rows import Batch, Work
from callwright.cli import main

Json = dict[str, Any]

TOOL: Json = {
    "name": "moor",
    "description": "Moor a boat.",
    "parameters": {"type": "object", "properties": {"pier": {"type": "integer"}}, "required": ["pier"]},
}
TOOLS: list[Json] = [{"type": "function", "function": TOOL}]
ANTHROPIC_TOOLS = [{"name": "moor", "description": "Moor a boat.", "input_schema": TOOL["parameters"]}]


def written(*piers: Any) -> str:
    return write([{"name": "moor", "arguments": {"pier": pier}} for pier in piers], dialect="hermes")


def turn(role: str, value: Any, **more: Any) -> Json:
    return {"from": role, "value": value, **more}


def called(pier: Any) -> Json:
    return {"name": "moor", "arguments": {"pier": pier}}


def choice(content: str | None, **more: Any) -> Json:
    return {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop", **more}


# A row, and of each of its answers the piers of its calls, or its text.
Answer = list[int] | str | None
ANSWERS: dict[str, tuple[Json, list[Answer]]] = {
    "ShareGPT": (
        {
            "conversations": [
                turn("system", "Be brief."),
                turn("human", "Moor."),
                turn("gpt", written(1)),
                turn("tool", "done"),
                turn("gpt", "It is moored."),
                turn("human", "Both others."),
                turn("gpt", written(2, 3)),
            ],
            "tools": TOOLS,
        },
        [[1], "It is moored.", [2, 3]],
    ),
    "its calls and results as turns of their own": (
        {
            "conversations": [
                turn("human", "Moor."),
                turn("function_call", json.dumps(called(4))),
                turn("observation", '{"ok": true}'),
                turn("gpt", "Done."),
            ],
            "tools": json.dumps([TOOL]),
        },
        [[4], "Done."],
    ),
    "several calls in one turn, as values": (
        {"conversations": [turn("function_call", [called(1), called(2)])], "tools": [TOOL]},
        [[1, 2]],
    ),
    "a text where calls should be": (
        {"conversations": [turn("function_call", "none today")], "tools": TOOLS},
        ["none today"],
    ),
    "JSON in a text": ({"conversations": json.dumps([turn("gpt", written(1))]), "tools": json.dumps(TOOLS)}, [[1]]),
    "roles of other names, and a system field": (
        {"system": "Be brief.", "conversation": [turn("user", "?"), turn("assistant", written(6))], "tools": TOOLS},
        [[6]],
    ),
    "both sorts of turns": (
        {"conversations": [turn("human", "?"), {"role": "assistant", "content": written(7)}], "tools": TOOLS},
        [[7]],
    ),
    "roles in a list of another name": (
        {"conversations": [{"role": "user", "content": "?"}, {"role": "gpt", "content": written(7)}], "tools": TOOLS},
        [[7]],
    ),
    "null fields": (
        {"conversations": [turn("human", None), turn("gpt", None)], "output": None, "tools": None, "system": None},
        [None],
    ),
    "an empty conversation": ({"conversations": []}, []),
    "no answer": ({"conversations": [turn("human", "Is anybody there?")]}, []),
    "a row of fine-tuning": (
        {
            "messages": [
                {"role": "user", "content": "Moor."},
                {
                    "role": "assistant",
                    "tool_calls": [
                        {"id": "a", "type": "function", "function": {"name": "moor", "arguments": '{"pier":1}'}}
                    ],
                },
                {"role": "tool", "tool_call_id": "a", "content": "done"},
                {"role": "assistant", "content": [{"type": "text", "text": written(2)}]},
            ],
            "tools": TOOLS,
            "parallel_tool_calls": False,
        },
        [[1], [2]],
    ),
    "arguments as a value": (
        {
            "messages": [{"role": "assistant", "content": "Well.", "tool_calls": [{"function": called(8)}]}],
            "functions": [TOOL],
        },
        [[8]],
    ),
    "calls in a text and beside it": (
        {
            "messages": [{"role": "assistant", "content": written(9), "tool_calls": [{"function": called(8)}]}],
            "tools": TOOLS,
        },
        [[8, 9]],
    ),
    "roles of calls and results in messages": (
        {
            "messages": json.dumps(
                [
                    {"role": "tool_call", "content": json.dumps(called(1))},
                    {"role": "tool_response", "content": "done"},
                    {"role": "assistant", "content": "Done."},
                ]
            ),
            "tools": TOOLS,
        },
        [[1], "Done."],
    ),
    "output of a batch": (
        {
            "custom_id": "a",
            "response": {"status_code": 200, "body": {"choices": [choice(written(1)), choice("No.")]}},
            "error": None,
        },
        [[1], "No."],
    ),
    "output of a batch, of the Responses API": (
        {
            "response": {
                "body": {
                    "output": [
                        {
                            "type": "message",
                            "role": "assistant",
                            "content": [{"type": "output_text", "text": "I moor."}],
                        },
                        {"type": "function_call", "call_id": "a", "name": "moor", "arguments": '{"pier": 2}'},
                    ],
                    "tools": [{"type": "function", **TOOL}],
                }
            }
        },
        [[2]],
    ),
    "a stored completion": (
        {"id": "chatcmpl-1", "object": "chat.completion", "choices": [choice(written(1))], "tools": TOOLS},
        [[1]],
    ),
    "raw completions": ({"object": "text_completion", "choices": [{"text": written(3), "logprobs": None}]}, [[3]]),
    "messages of Anthropic's API": (
        {
            "system": [{"type": "text", "text": "Be brief."}],
            "messages": [
                {"role": "user", "content": "Moor."},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "text", "text": "I moor."},
                        {"type": "tool_use", "id": "a", "name": "moor", "input": {"pier": 5}},
                    ],
                },
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "done"}]},
                {"role": "assistant", "content": written(6)},
            ],
            "tools": ANTHROPIC_TOOLS,
        },
        [[5], [6]],
    ),
    "an answer of Anthropic's API": (
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "a", "name": "moor", "input": {"pier": 5}}],
            "tools": ANTHROPIC_TOOLS,
        },
        [[5]],
    ),
    "the result of Anthropic's batch": (
        {
            "custom_id": "a",
            "result": {
                "type": "succeeded",
                "message": {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "Done."}]},
            },
        },
        ["Done."],
    ),
}


def piers(message: Json) -> Answer:
    calls = [json.loads(call["function"]["arguments"])["pier"] for call in message.get("tool_calls", ())]
    return calls or message["content"]


@pytest.mark.parametrize("title", ANSWERS)
def test_every_answer_of_a_row_is_read(title: str) -> None:
    given, expected = ANSWERS[title]
    for row in (given, from_columns(given)):
        (made,) = Batch(Work("parse"))([row])
        assert made.get("error") is None, made
        assert [piers(answer["message"]) for answer in made["answers"]] == expected
        assert {name: value for name, value in made.items() if name in row} == row
        ids = [call["id"] for answer in made["answers"] for call in answer["message"].get("tool_calls", ())]
        assert len({*ids}) == len(ids)
        if row.get("tools"):
            assert not made["problems"]


def test_a_problem_names_its_answer() -> None:
    turns = [turn("gpt", "Well."), turn("gpt", written("2")), turn("function_call", json.dumps(called("no")))]
    (row,) = Batch(Work("parse"))([{"conversations": turns, "tools": TOOLS}])
    assert [(problem["kind"], problem["answer"]) for problem in row["problems"]] == [
        ("argument_coerced", 1),
        ("invalid_arguments", 2),
    ]


def test_an_answer_that_was_cut_ends_so() -> None:
    (row,) = Batch(Work("parse"))([{"choices": [choice(written(1)[:-25], finish_reason="length")], "tools": TOOLS}])
    (answer,) = row["answers"]
    assert answer["finish_reason"] == "length"
    assert "incomplete_arguments" in [problem["kind"] for problem in row["problems"]]


CONVERSATIONS = [title for title, (row, _) in ANSWERS.items() if {"messages", "conversations", "conversation"} & {*row}]


@pytest.mark.parametrize("title", CONVERSATIONS)
def test_a_conversation_of_any_shape_becomes_chat_messages(title: str) -> None:
    row, expected = ANSWERS[title]
    (made,) = Batch(Work("convert", source="auto"))([row])
    assert "error" not in made, made
    answers = [message for message in made["messages"] if message["role"] == "assistant"]
    assert [piers(message) or None for message in answers] == expected
    assert not {"conversations", "conversation"} & {*made}
    waiting: list[str] = []
    for message in made["messages"]:
        waiting += [call["id"] for call in message.get("tool_calls", ())]
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
    (again,) = Batch(Work("render", "hermes"))([row])
    assert "error" not in again, again


# The fields that the command names, the row, and the text that is read of it, or words of the error.
FIELDS: dict[str, tuple[dict[str, str], Json, str]] = {
    "another name": ({"output": "completion"}, {"completion": "Hi."}, "Hi."),
    "a path": ({"output": "response.choices.0.text"}, {"response": {"choices": [{"text": "Hi."}]}}, "Hi."),
    "a path through JSON": ({"output": "answer.text"}, {"answer": '{"text": "Hi."}'}, "Hi."),
    "a name with a dot": ({"output": "model.text"}, {"model.text": "Hi."}, "Hi."),
    "it wins over ours": ({"output": "best"}, {"output": "Ho.", "best": "Hi."}, "Hi."),
    "it wins over a conversation": ({"output": "best"}, {"messages": [], "best": "Hi."}, "Hi."),
}
NO_TEXT: dict[str, tuple[dict[str, str], Json, str]] = {
    "no such field": ({"output": "completion"}, {"completions": "Hi."}, "none of them at `completion`"),
    "its guess": ({"output": "completion"}, {"completions": "Hi."}, "Did you mean 'completions'?"),
    "no text": ({"output": "completion"}, {"completion": 5}, "got int in `completion`"),
    "behind the end": ({"output": "texts.3"}, {"texts": ["Hi."]}, "none of them at `texts.3`"),
    "an option to add": ({}, {"id": 1, "completion": "Hi."}, "--field output=completion"),
    "the field of the answer": ({}, {"prompt": "Hi.", "completion": "Hello."}, "--field output=completion"),
    "no field at all": ({}, {}, "got none"),
    "a role of no data set": ({}, {"conversations": [turn("pilot", "Hi.")]}, "(conversations[0].from)"),
    "a role that is missing": ({}, {"messages": [{"content": "Hi."}]}, "(messages[0].role)"),
    "a turn that is a text": ({}, {"conversations": [turn("human", "?"), "Hi."]}, "Expected an object, got str."),
    "a request that failed": ({}, {"response": None, "error": {"message": "Too long."}}, "has no answer: Too long."),
    "a request that was dropped": ({}, {"result": {"type": "expired"}}, "has no answer: expired"),
    "a broken block": (
        {},
        {"messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "a"}]}]},
        "messages[0].content[0]",
    ),
    "tools that are none": ({}, {"output": "Hi.", "tools": "moor"}, "tools"),
}


@pytest.mark.parametrize("title", FIELDS)
def test_a_field_may_have_another_name(title: str) -> None:
    fields, row, text = FIELDS[title]
    (made,) = Batch(Work("parse", fields=fields))([row])
    assert made["message"]["content"] == text
    assert {name: value for name, value in made.items() if name in row} == row


@pytest.mark.parametrize("title", NO_TEXT)
def test_a_row_that_fits_nothing_gets_one_error_that_names_it(title: str) -> None:
    fields, row, words = NO_TEXT[title]
    (made,) = Batch(Work("parse", fields=fields))([row])
    assert words in made["error"]
    assert "answers" not in made


# --- the command ---


def put(path: Path, rows: Sequence[Json], *, start: bytes = b"", end: bytes = b"\n") -> Path:
    path.write_bytes(start + b"".join(json.dumps(row).encode() + end for row in rows))
    return path


def done(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["bulk", *map(str, arguments)])


def rows_of(path: Path) -> list[Json]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


SHOWN = {
    "ShareGPT": "ShareGPT: reads `conversations`, 3 answers a row.",
    "a row of fine-tuning": "chat messages: reads `messages`, 2 answers a row.",
    "output of a batch": "output of OpenAI's batches: reads `response.body.choices`, 2 answers a row.",
    "messages of Anthropic's API": "messages of Anthropic's API: reads `messages`, 2 answers a row.",
}


@pytest.mark.parametrize("title", SHOWN)
def test_the_command_says_what_it_found(tmp_path: Path, title: str) -> None:
    row, expected = ANSWERS[title]
    source = put(tmp_path / "in.jsonl", [row, row], start=codecs.BOM_UTF8, end=b"\r\n")
    result = done("parse", source, tmp_path / "out.jsonl")
    assert result.exit_code == 0, result.output
    assert result.stderr.splitlines()[0] == f"{source}: {SHOWN[title]}"
    assert [len(made["answers"]) for made in rows_of(tmp_path / "out.jsonl")] == [len(expected)] * 2


def test_a_file_of_several_shapes_is_read_row_by_row(tmp_path: Path) -> None:
    rows = [row for row, _ in ANSWERS.values()] + [{"output": "Hi."}, {"text": "Hi."}]
    result = done("parse", put(tmp_path / "in.jsonl", rows), tmp_path / "out.jsonl")
    assert f"{len(rows)} rows, " in result.stderr
    assert ", 1 with an error; " in result.stderr
    assert "; chat messages: reads `messages`, 1 to 2 answers a row" in result.stderr


def test_a_file_of_no_known_shape_is_named_at_the_start(tmp_path: Path) -> None:
    result = done("parse", put(tmp_path / "in.jsonl", [{"text": "Hi."}] * 3), tmp_path / "out.jsonl")
    first, _, reason, *_ = result.stderr.splitlines()
    assert first.endswith("in.jsonl: no row of a known shape.")
    assert "--field output=text" in reason
    assert result.exit_code == 1
    again = done("parse", tmp_path / "in.jsonl", tmp_path / "out.jsonl", "--overwrite", "--field", "output=text")
    assert again.exit_code == 0


@pytest.mark.parametrize(
    ("given", "words"),
    [("outptu=text", "Did you mean 'output'?"), ("output", "expected OURS=THEIRS"), ("=text", "expected OURS=THEIRS")],
)
def test_a_field_that_is_not_ours_is_refused(tmp_path: Path, given: str, words: str) -> None:
    result = done("parse", put(tmp_path / "in.jsonl", [{}]), tmp_path / "out.jsonl", "--field", given)
    assert result.exit_code == 2
    assert words in result.stderr


def test_problems_are_counted_by_their_name_with_an_example(tmp_path: Path) -> None:
    rows: list[Any] = [{"output": "Hi."}, *[{"output": written("2"), "tools": TOOLS}] * 3]
    rows += [{"output": written(1)[:-12]}, "no row"]
    source, counts = put(tmp_path / "in.jsonl", [*rows, {"text": "?"}]), tmp_path / "counts.json"
    result = done("parse", source, tmp_path / "out.jsonl", "--summary", counts, "--part-mb", "0.0001")
    lines = [line.split(maxsplit=2) for line in result.stderr.splitlines() if line.startswith("  ")]
    assert [line for line in lines if line[1] == "argument_coerced"] == [
        [
            "3",
            "argument_coerced",
            'row 2: text to integer at $.pier  <tool_call> {"name": "moor", "arguments": {"pier":"2"}} </t…',
        ]
    ]
    read = json.loads(counts.read_bytes())
    assert read["problems"]["argument_coerced"] == 3
    assert read["examples"]["argument_coerced"]["row"] == 2
    assert read["examples"]["unknown_tool"]["row"] == 5
    assert {name: read["examples"][name]["row"] for name in read["errors"]} == {
        "This line is not a JSON object.": 6,
        next(name for name in read["errors"] if "output=text" in name): 7,
    }
    assert read["parts"] > 1


def test_an_interrupted_command_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = put(tmp_path / "in.jsonl", [{"output": "Hi."}] * 9), tmp_path / "out.jsonl"
    asked = ("parse", source, target, "--part-mb", "0.00005", "--workers", "1")

    def interrupted(*given: Any) -> Any:
        yield next(run(*given))
        signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patched:
        patched.setattr("callwright.cli.bulk.run", interrupted)
        result = done(*asked)
    assert result.exit_code == 130
    assert "Stopped: run the same command to continue. 1 of " in result.stderr
    assert not target.exists()
    again = done(*asked)
    assert "Going on: 1 of " in again.stderr
    assert len(rows_of(target)) == 9


def test_tables_get_the_answers_in_a_column(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    pyarrow = pytest.importorskip("pyarrow")
    row, expected = ANSWERS["ShareGPT"]
    table = pyarrow.Table.from_pylist([{"id": 1, "conversations": row["conversations"], "tools": json.dumps(TOOLS)}])
    parquet.write_table(table, tmp_path / "in.parquet")
    assert done("parse", tmp_path / "in.parquet", tmp_path / "out.parquet").exit_code == 0
    read = parquet.read_table(tmp_path / "out.parquet")
    assert read.column_names == ["id", "conversations", "tools", "answers", "problems", "error"]
    answers = json.loads(read.to_pylist()[0]["answers"])
    assert [piers(answer["message"]) for answer in answers] == expected
    assert done("convert", tmp_path / "in.parquet", tmp_path / "chat.parquet", "--from", "hermes").exit_code == 0
    assert parquet.read_table(tmp_path / "chat.parquet").column_names == ["id", "messages", "tools", "error"]


def test_answers_of_a_batch_are_validated() -> None:
    def row(tool: str) -> dict[str, Any]:
        call = {"id": "c", "type": "function", "function": {"name": tool, "arguments": "{}"}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        body = {"tools": [{"type": "function", "function": {"name": "ring"}}], "choices": [{"message": message}]}
        return {"custom_id": "1", "response": {"body": body}}

    good, bad = Batch(Work("validate"))([row("ring"), row("wring")])
    assert (good["valid"], good["problems"]) == (True, [])
    assert bad["valid"] is False
    assert bad["problems"][0]["kind"] == "unknown_tool"


@pytest.mark.parametrize("target", ["chat", "responses"])
def test_a_conversation_without_tools_gets_no_empty_list(target: str) -> None:
    source = "auto" if target == "chat" else "chat"
    (made,) = Batch(Work("convert", source=source, target=target))([{"messages": [{"role": "user", "content": "Hi."}]}])
    assert "error" not in made
    assert "tools" not in made
