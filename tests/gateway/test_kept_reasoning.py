"""Reasoning that a client drops stands in the next prompt of its task: over each API, for its owner, for a while."""

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from callwright.gateway.access.keys import hash_of
from callwright.gateway.config.config import Config, KeyConfig, ModelConfig, RecordConfig, ServerConfig, StoreConfig
from tests.support.bounded import bounded
from tests.support.forgetful_clients import TASKS, ChatTask, MessagesTask, ResponsesTask, Task
from tests.support.http_client import Live, request
from tests.support.messages_client import COUNT
from tests.support.servers import Answer, Gateway, ModelServer, call_deltas, chat
from tests.support.turns import shown, wrote
from tests.support.waiting import until

THOUGHT: Final = "The pump runs, so the upper valve goes first."
LATER: Final = "Now the lower one; 7 was the upper."
CALLS: Final = [("turn_valve", {"valve": 7, "by": 2.0, "why": "drained é"})]
MORE: Final = [("turn_valve", {"valve": 8})]
WAYS: Final = ("native", "raw-hermes-vllm", "raw-harmony-vllm", "raw-kimi_k2_thinking-vllm", "raw-minimax_m3-vllm")
ANNA, BEN = "cw-anna-" + "a" * 40, "cw-ben-" + "b" * 40
KEYS: Final = (KeyConfig(name="anna", sha256=hash_of(ANNA)), KeyConfig(name="ben", sha256=hash_of(BEN)))
STREAMED: Final = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
Start = Callable[..., str]


def models(url: str, **fields: Any) -> tuple[ModelConfig, ...]:
    raw = [
        ModelConfig(name=way, upstream=url, mode="raw", dialect=way.split("-")[1], server="vllm", **fields)
        for way in WAYS[1:]
    ]
    prompt = ModelConfig(name="prompt-hermes", upstream=url, mode="prompt", dialect="hermes", **fields)
    return (ModelConfig(name="native", upstream=url, **fields), prompt, *raw)


@pytest.fixture
def start(model: ModelServer) -> Iterator[Start]:
    """Starts gateways before the model server."""
    with ExitStack() as stack:

        def begin(
            keys: tuple[KeyConfig, ...] = (), store: StoreConfig | None = None, server: Any = None, **fields: Any
        ) -> str:
            record = fields.pop("record", None)
            stack.enter_context(bounded(**fields.pop("bounds", {})))
            given = models(model.url, **fields)
            gateway = Gateway(
                Config(
                    models=given,
                    keys=keys,
                    store=store,
                    record=record,
                    server=ServerConfig(**(server or {})),
                )
            )
            stack.callback(gateway.stop)
            return gateway.url

        yield begin


@pytest.fixture(scope="module")
def url(_model_server: ModelServer) -> Iterator[str]:
    gateway = Gateway(Config(models=models(_model_server.url)))
    yield gateway.url
    gateway.stop()


def seen(model: ModelServer, number: int = -1) -> str:
    """What the model was shown."""
    return shown(model.asked[number].body)


def put_back(url: str) -> dict[str, float]:
    lines = request(f"{url}/metrics", method="GET").text.splitlines()
    values = (line.rsplit(" ", 1) for line in lines if line.startswith("callwright_reasoning_put_back_total{"))
    return {name.split('"')[1]: float(value) for name, value in values}


# --- over each API, in each way of asking ---


@STREAMED
@pytest.mark.parametrize("api", TASKS)
@pytest.mark.parametrize("way", WAYS)
def test_each_call_of_a_task_has_the_reasoning_before_it_that_the_client_dropped(
    url: str, model: ModelServer, way: str, api: str, stream: bool
) -> None:
    model.plays(
        wrote(way, calls=CALLS, thought=THOUGHT),
        wrote(way, "One moment.", MORE, thought=LATER),
        wrote(way, "It is empty."),
    )
    task = TASKS[api](url, way)
    for _ in range(3):
        task.ask(stream=stream)
    assert THOUGHT not in json.dumps(task.history)
    assert LATER not in json.dumps(task.history)
    assert [THOUGHT in seen(model, n) for n in range(3)] == [False, True, True]
    last = seen(model)
    names = 2 if way == "native" else 1  # of the field that it stands in
    assert last.count(THOUGHT) == last.count(LATER) == names
    assert last.index(THOUGHT) < last.index("drained") < last.index(LATER)
    assert way == "native" or last.index(LATER) < last.index("One moment.")


def test_a_raw_prompt_begins_with_the_one_before_and_what_the_model_wrote(url: str, model: ModelServer) -> None:
    way = "raw-hermes-vllm"
    written = [wrote(way, calls=CALLS, thought=THOUGHT), wrote(way, "On it.", MORE, thought=LATER), wrote(way, "Done.")]
    model.plays(*written)
    task = ChatTask(url, way)
    for _ in range(3):
        task.ask()
    # whole texts of what the server said, from its pieces
    for number, answer in enumerate(written[:2]):
        said = "".join(json.loads(line[6:])["choices"][0]["text"] for line in lines(answer))
        begun = seen(model, number) + said.partition("<tool_call>")[0]
        assert seen(model, number + 1).startswith(begun)


def lines(answer: Answer) -> list[str]:
    return [line for line in answer.text.splitlines() if line.startswith("data: {") and '"choices": [{' in line]


@pytest.mark.parametrize("api", TASKS)
def test_a_server_with_a_template_of_its_own_gets_it_under_both_names(url: str, model: ModelServer, api: str) -> None:
    model.plays(wrote("native", calls=CALLS, thought=THOUGHT), wrote("native", "Done."))
    task = TASKS[api](url, "native")
    task.ask()
    task.ask()
    (message,) = (one for one in model.asked[-1].body["messages"] if one["role"] == "assistant")
    assert (message["reasoning_content"], message["reasoning"]) == (THOUGHT, THOUGHT)


@pytest.mark.parametrize("api", TASKS)
def test_parallel_calls_have_it_once(url: str, model: ModelServer, api: str) -> None:
    model.plays(wrote("native", calls=[*CALLS, *MORE], thought=THOUGHT), wrote("native", "Done."))
    task = TASKS[api](url, "native")
    task.ask(stream=True)
    task.ask()
    (message,) = (one for one in model.asked[-1].body["messages"] if one["role"] == "assistant")
    assert message["reasoning"] == THOUGHT
    assert len(message["tool_calls"]) == 2


def test_behind_the_next_words_of_the_user_it_is_over_unless_the_format_shows_all(url: str, model: ModelServer) -> None:
    for way, is_shown in (("raw-hermes-vllm", False), ("raw-minimax_m3-vllm", True), ("native", False)):
        model.plays(wrote(way, calls=CALLS, thought=THOUGHT), wrote(way, "Done."), wrote(way, "Yes."))
        task = ChatTask(url, way)
        task.ask()
        task.ask()
        task.say("Really?")
        task.ask()
        assert (THOUGHT in seen(model)) == is_shown, way


def test_a_format_without_a_place_for_it_gets_none_and_none_is_counted(url: str, model: ModelServer) -> None:
    way = "prompt-hermes"
    model.plays(wrote(way, calls=CALLS, thought=THOUGHT), wrote(way, "Done."))
    task = ChatTask(url, way)
    task.ask()
    task.ask()
    assert THOUGHT not in seen(model)
    assert way not in put_back(url)


# --- whose words count ---


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_what_the_client_sends_is_what_the_model_sees(url: str, model: ModelServer, field: str) -> None:
    model.plays(wrote("native", calls=CALLS, thought=THOUGHT), wrote("native", "Done."))
    task = ChatTask(url, "native")
    task.ask()
    task.history[1][field] = "Shorter."
    task.ask()
    assert THOUGHT not in seen(model)
    assert "Shorter." in seen(model)


@pytest.mark.parametrize("empty", ["", None])
def test_an_empty_one_is_a_placeholder_and_counts_as_none(url: str, model: ModelServer, empty: str | None) -> None:
    model.plays(wrote("native", calls=CALLS, thought=THOUGHT), wrote("native", "Done."))
    task = ChatTask(url, "native")
    task.ask()
    task.history[1]["reasoning_content"] = empty
    task.ask()
    assert THOUGHT in seen(model)


def test_a_thinking_block_that_another_server_signed_counts_as_none(url: str, model: ModelServer) -> None:
    model.plays(wrote("native", calls=CALLS, thought=THOUGHT), wrote("native", "Done."))
    task = MessagesTask(url, "native")
    task.ask()
    task.history[1]["content"].insert(0, {"type": "thinking", "thinking": "Other.", "signature": "EqQBCgIYAhIM"})
    task.ask()
    assert THOUGHT in seen(model)
    assert "Other." not in seen(model)


def test_an_edit_of_the_context_that_takes_reasoning_out_is_heeded(url: str, model: ModelServer) -> None:
    for keep, is_shown in (("all", True), ({"type": "thinking_turns", "value": 1}, False)):
        model.plays(wrote("native", calls=CALLS, thought=THOUGHT), wrote("native", "Done."))
        edit = {"type": "clear_thinking_20251015", "keep": keep}
        task = MessagesTask(url, "native", context_management={"edits": [edit]})
        task.ask()
        task.ask()
        assert (THOUGHT in seen(model)) == is_shown


def test_a_call_that_the_client_changed_has_none(url: str, model: ModelServer) -> None:
    model.plays(wrote("native", calls=CALLS, thought=THOUGHT), wrote("native", "Done."))
    task = ChatTask(url, "native")
    task.ask()
    function = task.history[1]["tool_calls"][0]["function"]
    function["arguments"] = function["arguments"].replace("7", "8")
    task.ask()
    assert THOUGHT not in seen(model)


def test_of_two_turns_that_nobody_can_tell_apart_neither_is_taken(start: Start, model: ModelServer) -> None:
    url = start()  # the ids of this server are the same in every conversation
    model.plays(
        *(wrote("native", calls=CALLS, thought=thought) for thought in (THOUGHT, LATER)),
        *(wrote("native", "Done.") for _ in range(2)),
    )
    tasks = [ChatTask(url, "native") for _ in range(2)]
    for task in (*tasks, *tasks):
        task.ask()
    assert THOUGHT not in seen(model) + seen(model, -2)
    assert LATER not in seen(model) + seen(model, -2)


@pytest.mark.parametrize("api", TASKS)
def test_a_server_may_give_the_same_ids_in_each_conversation(url: str, model: ModelServer, api: str) -> None:
    model.plays(
        *(wrote("native", calls=CALLS, thought=thought) for thought in (THOUGHT, LATER, "")),
        *(wrote("native", "Done.") for _ in range(3)),
    )
    tasks = [TASKS[api](url, "native") for _ in range(3)]
    for number, task in enumerate(tasks):
        task.history[0]["content"] = f"Drain tank {api} {number}."
    for task in (*tasks, *tasks):
        task.ask()
    found = [[thought for thought in (THOUGHT, LATER) if thought in seen(model, n)] for n in (3, 4, 5)]
    assert found == [[THOUGHT], [LATER], []]


# --- who may see it, and who does not want it ---


@pytest.mark.parametrize("api", TASKS)
def test_nobody_gets_what_another_one_was_told(start: Start, model: ModelServer, api: str) -> None:
    url = start(keys=KEYS)
    model.plays(*(wrote("native", calls=CALLS, thought=THOUGHT), wrote("native", "Done."), wrote("native", "Done.")))
    of_anna, of_ben = ({"authorization": f"Bearer {key}"} for key in (ANNA, BEN))
    task = TASKS[api](url, "native", headers=of_anna)
    task.ask()
    other = TASKS[api](url, "native", headers=of_ben)
    other.history = list(task.history)
    other.ask()
    assert THOUGHT not in seen(model)
    task.ask()
    assert THOUGHT in seen(model)


def test_another_model_gets_none(url: str, model: ModelServer) -> None:
    model.plays(wrote("native", calls=CALLS, thought=THOUGHT), wrote("raw-hermes-vllm", "Done."))
    task = ChatTask(url, "native")
    task.ask()
    task.fields["model"] = "raw-hermes-vllm"
    task.ask()
    assert THOUGHT not in seen(model)


@STREAMED
@pytest.mark.parametrize("api", [ChatTask, ResponsesTask])
def test_of_a_request_that_is_not_to_be_stored_nothing_is_kept(
    url: str, model: ModelServer, api: type[Task], stream: bool
) -> None:
    model.plays(wrote("raw-hermes-vllm", calls=CALLS, thought=THOUGHT), wrote("raw-hermes-vllm", "Done."))
    task = api(url, "raw-hermes-vllm", store=False)
    task.ask(stream=stream)
    del task.fields["store"]
    task.ask(stream=stream)
    assert THOUGHT not in seen(model)


OFF: Final[dict[str, dict[str, Any]]] = {
    "of the model": {"keep_reasoning": False},
    "no store": {"store": StoreConfig(url="none")},
    "too much": {"bounds": {"MAX_KEPT_REASONING_BYTES": 10}},
}


@pytest.mark.parametrize("why", OFF)
@pytest.mark.parametrize("api", TASKS)
def test_where_it_is_not_wanted_none_is_kept(start: Start, model: ModelServer, api: str, why: str) -> None:
    url = start(**OFF[why])
    model.plays(wrote("native", calls=CALLS, thought=THOUGHT), wrote("native", "Done."))
    task = TASKS[api](url, "native")
    task.ask()
    task.ask()
    assert THOUGHT not in seen(model)


@pytest.mark.parametrize("api", TASKS)
def test_no_more_turns_are_kept_than_their_bound_and_those_in_use_are(
    start: Start, model: ModelServer, api: str
) -> None:
    url = start(bounds={"MAX_KEPT_REASONING": 2})
    way = "raw-hermes-vllm"
    tasks = [TASKS[api](url, way) for _ in range(4)]
    for number, task in enumerate(tasks):
        model.plays(wrote(way, calls=CALLS, thought=f"{THOUGHT} {number}"))
        task.ask()
    found = []
    for task in tasks:
        model.plays(wrote(way, "Done."))
        task.ask()
        found.append(THOUGHT in seen(model))
    assert found[0] is False
    assert found[-1] is True
    assert sum(found) <= 2


@pytest.mark.parametrize("api", TASKS)
def test_no_more_bytes_are_kept_than_their_bound(start: Start, model: ModelServer, api: str) -> None:
    url = start(bounds={"MAX_KEPT_REASONING_BYTES": 1_000})
    way = "raw-hermes-vllm"
    tasks = [TASKS[api](url, way) for _ in range(3)]
    for task in tasks:
        model.plays(wrote(way, calls=CALLS, thought=THOUGHT * 8))
        task.ask()
    found = []
    for task in tasks:
        model.plays(wrote(way, "Done."))
        task.ask()
        found.append(THOUGHT in seen(model))
    assert found == [False, True, True]


# --- what fails ---


def test_a_stream_that_breaks_off_leaves_nothing(url: str, model: ModelServer) -> None:
    deltas = call_deltas("turn_valve", '{"valve": 7}', id_="call_broken")
    broken = chat({"reasoning_content": THOUGHT}, *deltas, finish=None, usage=False, done=False)
    model.plays(Answer((*broken.steps, "cut")), wrote("native", "Done."))
    with Live(url + ChatTask.path, json.dumps({**ChatTask(url, "native").body(), "stream": True}).encode()) as live:
        assert b"call_broken" in b"".join(live.pieces())
    task = ChatTask(url, "native")
    call = {"id": "call_broken", "type": "function", "function": {"name": "turn_valve", "arguments": '{"valve": 7}'}}
    task.history += [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_broken", "content": "done"},
    ]
    task.ask()
    assert THOUGHT not in seen(model)


def test_a_call_that_was_cut_off_has_none(url: str, model: ModelServer) -> None:
    deltas = call_deltas("turn_valve", '{"valve": 7, "wh', id_="call_cut")
    model.plays(chat({"reasoning_content": THOUGHT}, *deltas, finish="length"), wrote("native", "Done."))
    task = ChatTask(url, "native")
    request(url + task.path, task.body())
    call = {"id": "call_cut", "type": "function", "function": {"name": "turn_valve", "arguments": '{"valve": 7}'}}
    task.history += [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_cut", "content": "done"},
    ]
    task.ask()
    assert THOUGHT not in seen(model)


@STREAMED
def test_a_turn_without_end_takes_no_more_memory_than_one_that_is_kept(
    url: str, model: ModelServer, stream: bool
) -> None:
    for length, is_kept in ((200_000, True), (300_000, False)):
        model.plays(wrote("native", calls=CALLS, thought=THOUGHT + "x" * length), wrote("native", "Done."))
        task = ChatTask(url, "native")
        task.history[0]["content"] = f"Drain it {length} {stream}."
        task.ask(stream=stream)
        task.ask()
        assert (THOUGHT in seen(model)) == is_kept


# --- what is told of it ---


def test_it_is_counted_and_stands_in_the_log_without_a_word_of_it(
    start: Start, model: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    url = start()
    model.plays(wrote("native", calls=CALLS, thought=THOUGHT), wrote("native", "Done."))
    with caplog.at_level(logging.INFO, "callwright"):
        task = ChatTask(url, "native")
        task.ask()
        task.ask()
    assert put_back(url) == {"native": 1}
    told = [record.getMessage() for record in caplog.records]
    assert sum("reasoning_put_back=1" in line for line in told) == 1
    assert not [line for line in told if THOUGHT in line]


def test_pages_and_records_say_that_it_was_put_back(start: Start, model: ModelServer, tmp_path: Path) -> None:
    url = start(record=RecordConfig(dir=str(tmp_path)), server={"inspect": "full"})
    model.plays(wrote("native", calls=CALLS, thought=THOUGHT), wrote("native", "Done."))
    task = ChatTask(url, "native")
    task.ask()
    task.ask()

    def records() -> list[Any]:
        texts = [path.read_text(encoding="utf-8") for path in tmp_path.iterdir()]
        return [json.loads(line) for text in texts for line in text.splitlines() if line.endswith("}")]

    until(lambda: len(records()) == len(model.asked))
    rows = request(f"{url}/ui/api/turns", method="GET").json["rows"]
    assert sorted(row["reasoning_put_back"] for row in rows) == [0, 1]
    assert [record.get("reasoning_put_back", 0) for record in records()] == [0, 1]


def test_tokens_are_counted_with_it(url: str, model: ModelServer) -> None:
    model.plays(wrote("native", calls=CALLS, thought=THOUGHT * 20))
    task = MessagesTask(url, "native")
    task.ask()
    counted = request(url + COUNT, task.body()).json["input_tokens"]
    task.history[1]["content"][0]["id"] = task.history[2]["content"][0]["tool_use_id"] = "toolu_other"
    assert counted - request(url + COUNT, task.body()).json["input_tokens"] == len(THOUGHT * 20) // 4


def test_responses_that_are_stored_have_what_the_model_wrote_and_nothing_twice(url: str, model: ModelServer) -> None:
    model.plays(wrote("native", calls=CALLS, thought=THOUGHT), wrote("native", "Done."))
    task = ResponsesTask(url, "native")
    first = request(url + task.path, task.body()).json
    call = next(item for item in first["output"] if item["type"] == "function_call")
    output = {"type": "function_call_output", "call_id": call["call_id"], "output": "done"}
    body = {**task.fields, "previous_response_id": first["id"], "input": [output]}
    assert request(url + task.path, body).status == 200
    assert json.dumps(model.asked[-1].body).count(THOUGHT) == 2  # under either name
