"""`scripts/agents`: its rows, how it judges what a client did, its table, and those of its clients that are here."""

import datetime
import importlib.util
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.clients.agents.install import NotInstalledError, Place, install
from tests.clients.agents.judge import NOT_RUN, WORKS, Outcome, Ran, judged, not_run
from tests.clients.agents.one import run_client
from tests.clients.agents.rows import SCRIPTS, Client, Played, Rows, Task, load
from tests.clients.agents.run import alone
from tests.clients.agents.served import Asked, Called, Seen, Turn
from tests.clients.agents.table import PAGE, row_of, rows_in, table, write
from tests.support.paths import ROOT

ALL = load()
DAY = datetime.date(2026, 11, 23)
HERE = Place(str(Path(sys.executable).parent))
MODULES = "tests.clients.agents"
# Of the project's own clients, the packages that they import; what they pin is what constraints.txt pins.
IMPORTED = {
    "openai": "openai",
    "anthropic": "anthropic",
    "openai-agents": "agents",
    "langchain": "langchain_openai",
    "pydantic-ai": "pydantic_ai",
}


def client_of(name: str) -> Client:
    return next(client for client in ALL.clients if client.name == name)


# --- the rows ---


def test_each_row_is_whole() -> None:
    names = [client.name for client in ALL.clients]
    assert len(set(names)) == len(names)
    for client in ALL.clients:
        assert bool(client.absent) != bool(client.packages), f"{client.name}: packages, or why there are none"
        assert bool(client.absent) != bool(client.run), client.name
        assert not (client.pip and client.npm), client.name
        assert client.task in ALL.tasks, client.name
        assert client.apis, client.name
        page = client.page.partition("#")[0] or PAGE.name
        assert (PAGE.parent / page).resolve().is_file(), f"{client.name}: no page {page}"
        scripts = [word.rpartition("/")[2] for word in client.run if word.startswith("${scripts}")]
        assert all((SCRIPTS / script).is_file() for script in scripts), client.name


def test_every_script_is_of_a_client() -> None:
    words = [word for client in ALL.clients for word in client.run]
    used = {word.rpartition("/")[2] for word in words if word.startswith("${scripts}")}
    scripts = {path.name for path in SCRIPTS.iterdir() if path.is_file()}
    assert scripts - used == {"weather.py", "weather.mjs"}


def pins() -> dict[str, str]:
    """What the project pins elsewhere, by name."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    python = dict(line.split("==") for line in lines if "==" in line)
    npm: dict[str, str] = {}
    for name in ("package.json", "claude_code.json"):
        npm |= json.loads((ROOT / "tests" / "clients" / name).read_text(encoding="utf-8"))["dependencies"]
    return python | {f"npm:{name}": version for name, version in npm.items()}


def test_every_package_is_pinned_as_elsewhere() -> None:
    elsewhere = pins()
    for client in ALL.clients:
        for line in client.pip:
            name, _, version = line.partition("==")
            assert version, f"{client.name}: {line} has no pin"
            known = elsewhere.get(name.partition("[")[0], version)
            assert known == version or client.name == "openai2", f"{client.name}: {line}, elsewhere {known}"
        for line in client.npm:
            name, _, version = line.rpartition("@")
            assert name, f"{client.name}: {line} has no pin"
            known = elsewhere.get(f"npm:{name}", version)
            assert known == version or name == "zod", f"{client.name}: {line}, elsewhere {known}"


def test_the_page_has_a_row_of_every_client() -> None:
    rows = rows_in(PAGE.read_text(encoding="utf-8"), ALL.clients)
    assert [client.name for client in ALL.clients if client.name not in rows] == [], "scripts/agents --write"


# --- the table ---

OPENAI, GOOSE = client_of("openai"), client_of("goose")
DONE = Outcome("openai", WORKS, ["chat", "responses"], "streamed and whole", 8, ["get_weather"])


def test_a_row_tells_what_became_of_a_client() -> None:
    assert row_of(OPENAI, DONE, DAY) == (
        f"| [openai for Python](../responses.md) | {OPENAI.version} | Chat Completions, Responses "
        "| streamed and whole | 8 | `get_weather` | works | 2026-11-23 |\n"
    )
    assert row_of(GOOSE, not_run(GOOSE, "no | package"), DAY).endswith(
        "| | | | | not run: no \\| package | 2026-11-23 |\n"
    )


def test_rows_that_were_not_run_stay_where_they_are() -> None:
    page = "Before.\n<!-- written by scripts/agents -->\n<!-- end -->\nBehind.\n"
    first = row_of(GOOSE, not_run(GOOSE, "no package"), DAY)
    page = write(page, ALL.clients, {"goose": first})
    assert rows_in(page, ALL.clients) == {"goose": first}
    second = row_of(OPENAI, DONE, DAY)
    page = write(page, ALL.clients, {"openai": second})
    assert page == (
        "Before.\n<!-- written by scripts/agents -->\n" + table([second, first]) + "<!-- end -->\nBehind.\n"
    )
    third = row_of(OPENAI, Outcome("openai", "fails: no tool was called"), DAY)
    assert rows_in(write(page, ALL.clients, {"openai": third}), ALL.clients) == {"openai": third, "goose": first}


def test_what_cannot_be_installed_is_not_run(tmp_path: Path) -> None:
    with pytest.raises(NotInstalledError, match="neither PyPI nor npm"):
        install(GOOSE, tmp_path)
    newer = msgspec.structs.replace(OPENAI, python="3.99")
    with pytest.raises(NotInstalledError, match=r"needs Python 3\.99 or newer"):
        install(newer, tmp_path)
    assert not list(tmp_path.glob("openai/.installed-*"))
    assert not_run(newer, "why").result == f"{NOT_RUN}why"


# --- how a run is judged ---

# A client of the standard library: asks, calls what it is told to, asks again, prints the answer.
PROGRAM = """
import json, pathlib, sys, urllib.request
url, model, prompt = sys.argv[1:]
parameters = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
function = {"name": "make_file", "description": "Make a file.", "parameters": parameters}
messages = [{"role": "user", "content": prompt}]
for _ in range(2):
    body = {"model": model, "messages": messages, "tools": [{"type": "function", "function": function}]}
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(f"{url}/v1/chat/completions", json.dumps(body).encode(), headers)
    message = json.load(urllib.request.urlopen(request))["choices"][0]["message"]
    messages.append(message)
    for call in message.get("tool_calls") or ():
        path = json.loads(call["function"]["arguments"])["path"]
        pathlib.Path(path).write_text("made")
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": f"made {path}"})
print(message["content"])
"""
ASKS = ("python", "-c", PROGRAM, "${url}", "${model}", "${prompt}")
MAKES = Task("Make the file ${word}.txt.", "made ${word}.txt", after={"${word}.txt": "made"})
READS = Task(
    "Make the file ${word}.txt.", "a first", before={"notes.txt": "a first line"}, after={"notes.txt": "a line"}
)


def ran(client: Client, task: Task, folder: Path) -> Outcome:
    rows = Rows({}, {"task": task}, (client,))
    return run_client(rows, client, HERE, folder)


def made(**fields: Any) -> Client:
    given = {"name": "made", "shown": "Made up", "page": "", "task": "task", "apis": ["chat"], "run": ASKS}
    return Client(**{**given, **fields})


@pytest.mark.processes
def test_a_client_that_does_its_task_works(tmp_path: Path) -> None:
    assert ran(made(), MAKES, tmp_path) == Outcome("made", WORKS, ["chat"], "whole", 2, ["make_file"])


@pytest.mark.processes
def test_a_scripted_model_answers_where_the_simulated_one_would_not(tmp_path: Path) -> None:
    task = msgspec.structs.replace(MAKES, prompt="Hello.", says="It is ${word}.")
    plays = [Played(call="make_file", arguments={"path": "${word}.txt"}), Played(text="It is ${word}.")]
    outcome = ran(made(plays=plays), task, tmp_path)
    assert outcome == Outcome("made", WORKS, ["chat"], "whole", 2, ["make_file"])


@pytest.mark.processes
@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"setup": [["python", "-c", "raise SystemExit('not set up')"]]}, "exit status 1: not set up"),
        ({"run": ["no-such-program"]}, "exit status 127: no-such-program: No such file"),
        ({"run": ["python", "-c", "import signal; signal.pause()"], "patience_s": 0.5}, "it came to no end in 0.5 s"),
        ({"run": [*ASKS[:4], "other", "${prompt}"]}, "POST /v1/chat/completions was answered with 404"),
    ],
    ids=["not set up", "not there", "without an end", "refused"],
)
def test_a_client_that_fails_is_told_so(tmp_path: Path, fields: Mapping[str, Any], why: str) -> None:
    assert ran(made(**fields), MAKES, tmp_path).result.startswith(f"fails: {why}")


CHAT = "/v1/chat/completions"
PRINTED = Ran(0, "It was made.", "")
TURNS = [Turn(CHAT, True, [Called("make_file")])]
MADE = Task("Make it.", "made", after={"made.txt": "made"})


@pytest.mark.parametrize(
    ("printed", "seen", "fields", "task", "why"),
    [
        (PRINTED, Seen([Asked("POST", CHAT, 200)], TURNS), {}, MADE, ""),
        (Ran(1, "made", "first\nlast\n"), Seen([], TURNS), {}, MADE, "exit status 1: last"),
        (PRINTED, Seen([Asked("GET", "/v1/x", 404, "not_found")], TURNS), {}, MADE, "GET /v1/x was answered with 404"),
        (
            PRINTED,
            Seen([Asked("POST", CHAT, 200, "upstream")], TURNS),
            {},
            MADE,
            f"POST {CHAT} was answered with 200",
        ),
        (PRINTED, Seen([], TURNS), {"apis": ["chat", "messages"]}, MADE, "it did not use the API messages"),
        (PRINTED, Seen([], [Turn(CHAT)]), {}, MADE, "no tool was called"),
        (PRINTED, Seen([], [Turn(CHAT)]), {"calls": False}, MADE, ""),
        (PRINTED, Seen([], [Turn(CHAT, True, [Called("f", False)])]), {}, MADE, "a call of f was cut"),
        (PRINTED, Seen([], TURNS * 2), {}, Task("Make it.", "made", together=2), "no answer has 2 calls"),
        (PRINTED, Seen([], [Turn(CHAT, True, [Called("f"), Called("f")])]), {}, Task("", "made", together=2), ""),
        (
            PRINTED,
            Seen([Asked("POST", CHAT, 200)], TURNS),
            {},
            Task("Make it.", "made", refused=404),
            "nothing was refused with 404 over the API chat",
        ),
        (PRINTED, Seen([Asked("POST", CHAT, 404)], TURNS), {}, Task("Make it.", "made", refused=404), ""),
        (PRINTED, Seen([], TURNS), {}, Task("Make it.", "made", after={"made.txt": "burnt"}), "made.txt holds 'made'"),
        (PRINTED, Seen([], TURNS), {}, Task("Make it.", "made", after={"other.txt": ""}), "other.txt is not there"),
        (PRINTED, Seen([], TURNS), {}, Task("Make it.", "burnt"), "its answer lacks 'burnt': It was made."),
    ],
)
def test_what_went_wrong_is_told(
    tmp_path: Path, printed: Ran, seen: Seen, fields: Mapping[str, Any], task: Task, why: str
) -> None:
    (tmp_path / "made.txt").write_text("made")
    result = judged(made(**fields), task, printed, seen, tmp_path).result
    assert result.startswith(f"fails: {why}") if why else result == WORKS


def test_an_answer_that_a_client_is_made_to_go_on_from_is_told_and_borne(tmp_path: Path) -> None:
    refused = "POST /v1/messages was answered with 400"
    seen = Seen([Asked("POST", "/v1/messages", 400, "thread")], TURNS)
    result = judged(made(refused=[refused]), Task("Make it.", "made"), PRINTED, seen, tmp_path).result
    assert result == f"works; {refused}, and it went on"


@pytest.mark.processes
@pytest.mark.parametrize(("name", "status", "said"), [("goose", 0, "not run: neither"), ("geese", 2, "unknown: geese")])
def test_the_command_runs_what_is_named(name: str, status: int, said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", f"{MODULES}.run", name], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == status, done.stderr
    assert said in done.stdout + done.stderr


# --- clients that are here ---


@pytest.mark.clients
@pytest.mark.processes
def test_a_client_runs_where_there_is_nothing_but_the_gateway(tmp_path: Path) -> None:
    pytest.importorskip("openai", reason="openai is not installed")
    if not alone():
        pytest.skip("unshare cannot take the network from a process here")
    place = json.dumps(msgspec.to_builtins(HERE))
    command = [*alone(), sys.executable, "-m", f"{MODULES}.one", "openai", place, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert msgspec.json.decode(done.stdout, type=Outcome).result == WORKS


@pytest.mark.clients
@pytest.mark.processes
@pytest.mark.parametrize("name", IMPORTED)
def test_a_library_of_the_table_works(tmp_path: Path, name: str) -> None:
    if importlib.util.find_spec(IMPORTED[name]) is None:
        pytest.skip(f"{name} is not installed")
    client = client_of(name)
    outcome = run_client(ALL, client, HERE, tmp_path)
    assert outcome.result.partition(";")[0] == WORKS
    assert set(outcome.apis) == set(client.apis)
    assert outcome.streamed == "streamed and whole"
    assert outcome.tools == ["get_weather"]
