"""`callwright keys`: changes of a configuration file, and everything else stays the same."""

import datetime
import errno
import os
import re
import stat
import threading
import tomllib
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from callwright.cli import main
from callwright.cli.config_file import change_config
from callwright.cli.key_tables import add_key
from callwright.gateway.access.keys import hash_of
from callwright.gateway.config.config import Config, load_config
from tests.support.examples import examples
from tests.support.waiting import PATIENCE_S

MODEL = '[[models]]\nname = "m"\nupstream = "simulated"\n'
ANNA = f'[[keys]]\nname = "anna"\nsha256 = "{hash_of("anna")}"\n'
BEN = f'[[keys]]\nname = "ben"\nsha256 = "{hash_of("ben")}"\n'


def run(file: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["keys", *arguments, "--config", str(file)])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "callwright.toml"
    path.write_text(f"{MODEL}\n{ANNA}\n{BEN}", encoding="utf-8")
    return path


# --- any sequence of commands on any file ---

# Each line of these tables ends with the name of its block, so that the lines that a command has changed are known.
TABLES = (
    '[[keys]]  # {0}\nname = "{0}"  # {0}\nsha256 = "{1}"  # {0}\n',
    "[[ keys ]]  # {0}\n  'name' = '{0}'  # {0}\n  \"sha256\" = '{1}'  # {0}\n  tokens_per_minute = 1_000  # {0}\n",
    '[[keys]]  # {0}\n# {0}\nsha256="{1}" # {0}\nmodels = [  # {0}\n  "m",  # {0}\n] # {0}\nname="{0}" # {0}\n',
    '[[keys]]  # {0}\nname = "{0}"  # {0}\nsha256 = "{1}"  # {0}\n[keys.budget]  # {0}\ntokens_per_day = 5  # {0}\n',
    '[[keys]]  # {0}\nname = "{0}"  # {0}\nbudget.tokens_per_day = 6  # {0}\nsha256 = "{1}"  # {0}\n',
    "\t[[keys]]  # {0}\nexpires = 2031-05-06  # {0}\nname = '''{0}'''  # {0}\nsha256 = \"\"\"\\\n  {1}\"\"\"  # {0}\n",
)
OTHERS = (
    "[server]  # {0}\nport = 1  # {0}\n",
    '[store]  # {0}\nurl = "sqlite://"  # {0}\n[limits]  # {0}\n',
    "[redact]  # {0}\npatterns = [  # {0}\n  '''  # {0}\n[[keys]]  # {0}\n#''',  # {0}\n  # [x]  {0}\n]  # {0}\n",
    '[[models]]  # {0}\nname = "{0}"  # {0}\nupstream = "simulated"\naliases = [  # {0}\n["a", "b"],  # {0}\n] # {0}\n',
)
NAMES = ("anna", "ben", "cleo", "dora")
COMMANDS = st.one_of(
    st.tuples(
        st.just("add"), st.sampled_from([*NAMES, "eve"]), st.sampled_from([(), ("--models", "m", "--expires", "30d")])
    ),
    st.tuples(
        st.just("limit"),
        st.sampled_from(NAMES),
        st.sampled_from([("--requests-per-minute", "5"), ("--tokens-per-minute", "0"), ("--models", "m,*")]),
    ),
    st.tuples(st.just("expire"), st.sampled_from(NAMES), st.sampled_from([("2031-01-31",), ("never",), ("0d",)])),
    st.tuples(st.just("revoke"), st.sampled_from(NAMES), st.just(())),
)


@st.composite
def texts(draw: st.DrawFn) -> bytes:
    """Configurations with keys of many forms, among other tables or as one array."""
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=3))
    others = [table.format(f"other{number}") for number, table in enumerate(draw(st.permutations(OTHERS))[:3])]
    others.append(OTHERS[-1].format("m"))
    head = "# head\n"
    if draw(st.booleans()):
        tables = [draw(st.sampled_from(TABLES)).format(name, hash_of(name)) for name in names]
        blocks = draw(st.permutations([*tables, *others]))
    else:
        entries = "".join(f'  {{ name = "{name}", sha256="{hash_of(name)}" }},  # {name}\n' for name in names)
        head += f"keys = [\n{entries}]\n" if names else "keys = []\n"
        blocks = draw(st.permutations(others))
    between = draw(st.sampled_from(["", "\n", "\n\n# about what follows\n", "# about it\n\n"]))
    text = head + between.join(blocks)
    if draw(st.booleans()):
        text = text.removesuffix("\n")
    ends = draw(st.sampled_from(["\n", "\r\n"]))
    return draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + text.replace("\n", ends).encode()


def expected(before: dict[str, Any], command: str, name: str, options: tuple[str, ...], after: dict[str, Any]) -> Any:
    """The parsed file after a command; the hash of a new key and a time from now are taken from it."""
    keys = [dict(key) for key in before.get("keys", ())]
    found: dict[str, Any] = next((key for key in after.get("keys", ()) if key["name"] == name), {})
    if command == "add":
        new = {"models": ["m"], "expires": found.get("expires")} if options else {}
        keys.insert(after["keys"].index(found), {"name": name, "sha256": found["sha256"], **new})
    key = next(key for key in keys if key["name"] == name)
    if command == "revoke":
        keys.remove(key)
    elif command == "expire":
        key.pop("expires", None)
        if options != ("never",):
            key["expires"] = datetime.date(2031, 1, 31) if options == ("2031-01-31",) else found["expires"]
    elif options == ("--tokens-per-minute", "0"):
        key.pop("tokens_per_minute", None)
    elif command == "limit":
        key.update({"requests_per_minute": 5} if "5" in options else {"models": ["m", "*"]})
    return {**before, "keys": keys}


def lines_of_others(content: bytes, name: str) -> list[bytes]:
    """The lines with a comment that does not name this block: of all other blocks, and between them."""
    return [line for line in content.splitlines() if b"#" in line and name.encode() not in line.rpartition(b"#")[2]]


@examples(400)
@given(texts(), st.lists(COMMANDS, min_size=1, max_size=5))
def test_what_a_command_does_not_name_stays_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, commands: list[tuple[str, str, tuple[str, ...]]]
) -> None:
    file = tmp_path_factory.mktemp("keys") / "callwright.toml"
    file.write_bytes(content)
    load_config(file)
    for command, name, options in commands:
        before, result = file.read_bytes(), run(file, command, name, *options)
        after = file.read_bytes()
        read = tomllib.loads(after.decode("utf-8-sig"))
        known = tomllib.loads(before.decode("utf-8-sig"))
        names = [key["name"] for key in known.get("keys", ())]
        is_possible = (
            name not in names if command == "add" else name in names and (command, len(names)) != ("revoke", 1)
        )
        assert result.exit_code == (0 if is_possible else 2), result.stderr or result.exception
        if not is_possible:
            assert after == before
            continue
        load_config(file)
        assert read == expected(known, command, name, options, read)
        assert after.startswith(b"\xef\xbb\xbf") == before.startswith(b"\xef\xbb\xbf")
        assert lines_of_others(after, name) == lines_of_others(before, name)
        assert (after.count(b"\r\n") == after.count(b"\n")) or b"\r\n" not in before
        if command == "add" and len(known.get("keys", ())):
            assert run(file, "revoke", name).exit_code == 0
            assert file.read_bytes().rstrip(b"\r\n") == before.rstrip(b"\r\n")


def test_a_text_that_looks_like_a_comment_belongs_to_its_key(file: Path) -> None:
    odd = f'{ANNA}models = ["""\n#m"""]\n'
    head = '[[models]]\nname = "#m"\nupstream = "simulated"\n'
    file.write_text(f"{odd}# about models\n\n{head}\n{BEN}", encoding="utf-8")
    assert run(file, "limit", "anna", "--tokens-per-minute", "5").exit_code == 0
    assert file.read_text(encoding="utf-8").startswith(f"{odd}tokens_per_minute = 5\n# about models\n")
    assert run(file, "revoke", "anna").exit_code == 0
    assert file.read_text(encoding="utf-8") == f"# about models\n\n{head}\n{BEN}"


# --- single commands ---


def test_a_key_is_printed_once_and_the_file_has_its_hash(file: Path) -> None:
    result = run(file, "add", "cleo", "--requests-per-minute", "60", "--models", "m")
    key = result.stdout.strip()
    assert len(key) > 40
    assert key not in result.stderr + file.read_text(encoding="utf-8")
    assert file.read_text(encoding="utf-8") == (
        f'{MODEL}\n{ANNA}\n{BEN}\n[[keys]]\nname = "cleo"\nsha256 = "{hash_of(key)}"\nmodels = ["m"]\n'
        "requests_per_minute = 60\n"
    )


def test_the_list_shows_all_but_hashes(file: Path) -> None:
    with file.open("a", encoding="utf-8") as text:
        text.write("budget = {tokens_per_day = 2000}\n")
    run(file, "limit", "anna", "--models", "m,*", "--requests-per-minute", "60", "--tokens-per-minute", "5000")
    run(file, "expire", "ben", "2020-02-03T04:05:06+01:00")
    shown = run(file, "list").output
    assert [line.split("  ") for line in re.sub(r" {2,}", "  ", shown).splitlines()] == [
        ["name", "models", "limits", "expires"],
        ["anna", "m, *", "60 requests per minute, 5000 tokens per minute", "never"],
        ["ben", "*", "2000 tokens per day", "2020-02-03T03:05:06Z (expired)"],
    ]
    assert hash_of("anna")[:8] not in shown


@pytest.mark.parametrize(
    ("when", "written"),
    [
        ("2031-01-31", "expires = 2031-01-31\n"),
        ("2031-01-31T18:00:00Z", "expires = 2031-01-31T18:00:00Z\n"),
        ("2031-01-31T18:00:00+01:00", "expires = 2031-01-31T18:00:00+01:00\n"),
        ("2020-01-01", "expires = 2020-01-01\n"),
        ("never", ""),
    ],
)
def test_a_time_is_written_as_it_was_given(file: Path, when: str, written: str) -> None:
    assert run(file, "expire", "ben", when).exit_code == 0
    assert file.read_text(encoding="utf-8") == f"{MODEL}\n{ANNA}\n{BEN}{written}"


def test_days_count_from_now(file: Path) -> None:
    now = datetime.datetime.now(datetime.UTC)
    assert run(file, "expire", "ben", "30d").exit_code == 0
    expires = load_config(file).keys[1].expires
    assert expires is not None
    assert 0 <= expires.timestamp() - now.timestamp() - 30 * 86_400 + 1 < 60


WRONG = {
    "a name that exists": (("add", "anna"), "Two keys have the name 'anna'"),
    "a name that differs only in case": (("add", "Anna"), "Two keys have the name 'anna'"),
    "a name with a space": (("add", "a b"), "NAME: expected 1 to 64 of the characters A-Z, a-z, 0-9, '_', "),
    "a name that is TOML": (("add", 'a"\nmodels = ["*"]'), """and '-', got 'a"\\nmodels = ["*"]'."""),
    "an empty name": (("add", ""), "got ''."),
    "a long name": (("add", "x" * 65), "NAME: expected 1 to 64"),
    "a name with a line end": (("add", "a\n"), "NAME: expected 1 to 64"),
    "an unknown model": (("add", "cleo", "--models", "n"), "Key 'cleo': unknown model 'n'"),
    "an unknown model for a key": (("limit", "ben", "--models", "n"), "Key 'ben': unknown model 'n'"),
    "a time in the past": (("add", "cleo", "--expires", "2020-01-01"), "in the future, got 2020-01-01T23:59:59Z"),
    "a time without an offset": (("expire", "ben", "2031-01-31T18:00:00"), "with an offset"),
    "a day that does not exist": (("expire", "ben", "2031-02-30"), "expected a date such as"),
    "too many days": (("expire", "ben", "99999999999d"), "days from now such as 30d"),
    "a time that UTC cannot say": (("expire", "ben", "9999-12-31T23:00:00-05:00"), "expected a date such as"),
    "a misspelled name": (("revoke", "annna"), "no key 'annna'. Did you mean 'anna'? Expected one of: anna, ben."),
    "no limit": (("limit", "ben"), "Nothing to change: give --models"),
}


@pytest.mark.parametrize("case", WRONG)
def test_nothing_is_written_that_would_be_wrong(file: Path, case: str) -> None:
    arguments, words = WRONG[case]
    before = file.read_bytes()
    result = run(file, *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr
    assert file.read_bytes() == before


@pytest.mark.parametrize("option", ["--requests-per-minute", "--tokens-per-minute"])
def test_a_limit_that_is_so_already_is_no_change(file: Path, option: str) -> None:
    changes = []
    for number in ("0", "5", "5", "0", "0"):
        before = file.read_bytes()
        result = run(file, "limit", "ben", option, number)
        assert result.exit_code == 0
        is_changed = file.read_bytes() != before
        assert result.stdout.startswith("Changed the key 'ben'" if is_changed else "Nothing changed: the key 'ben'")
        changes.append(is_changed)
    assert changes == [False, True, False, True, False]


def refuse_mounted(*_: object) -> None:
    raise OSError(errno.EBUSY, "Device or resource busy")


def test_a_file_that_is_mounted_alone_is_written_in_place(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inode = file.stat().st_ino
    monkeypatch.setattr(os, "replace", refuse_mounted)
    for name in ("cleo", "a-name-that-makes-the-file-longer"):
        assert run(file, "add", name).exit_code == 0
    assert run(file, "revoke", "a-name-that-makes-the-file-longer").exit_code == 0
    assert [key.name for key in load_config(file).keys] == ["anna", "ben", "cleo"]
    assert file.stat().st_ino == inode
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_a_mounted_file_has_its_old_content_after_an_error(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, sync = file.read_bytes(), os.fsync
    calls: list[int] = []

    def fill(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == 2:  # the first is that of the new file, before it is renamed
            raise OSError(errno.EIO, "Input/output error")
        sync(descriptor)

    monkeypatch.setattr(os, "replace", refuse_mounted)
    monkeypatch.setattr(os, "fsync", fill)
    result = run(file, "add", "cleo")
    assert result.exit_code == 2
    assert "Input/output error" in result.stderr
    assert file.read_bytes() == before
    assert len(calls) == 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"{MODEL}[[keys]]\nname = 'anna'\n", "keys[0]: Object missing required field sha256"),
        (
            f"{MODEL}{ANNA}expires = '2031-01-31'\n",
            "keys[0].expires: Expected a date without quotes, such as 2027-01-31",
        ),
        (f"{MODEL}{ANNA}expires = 2031-01-31T10:00:00\n", "keys[0].expires: Expected a date-time with an offset"),
        (f"{MODEL}{ANNA}expires = 10:00:00\n", "or a date-time with an offset, got time"),
        (f"{MODEL}[keys]\nname = 'anna'\n", "write [[keys]] instead of [keys]"),
        (f"{MODEL}[[keys]\n", "is not valid TOML"),
        (ANNA, "has no models"),
    ],
)
def test_a_file_that_is_wrong_is_not_changed(file: Path, text: str, words: str) -> None:
    file.write_text(text, encoding="utf-8")
    result = run(file, "add", "cleo")
    assert result.exit_code == 2
    assert words in result.stderr
    assert file.read_text(encoding="utf-8") == text


def test_the_last_key_cannot_be_revoked(file: Path) -> None:
    assert run(file, "revoke", "ben").exit_code == 0
    before = file.read_bytes()
    result = run(file, "revoke", "anna")
    assert result.exit_code == 2
    assert "without keys the gateway is open" in result.stderr
    assert file.read_bytes() == before


@pytest.mark.parametrize("name", ["callwright.toml", "missing/callwright.toml", "folder"])
def test_a_file_that_cannot_be_changed_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    result = run(tmp_path / name, "add", "anna")
    assert result.exit_code == 2
    assert f"Error: Cannot change {tmp_path / name}: " in result.stderr


def test_an_expired_key_is_named_when_a_configuration_is_checked(file: Path) -> None:
    run(file, "expire", "anna", "2020-01-01")
    run(file, "expire", "ben", "2999-01-01")
    result = CliRunner().invoke(main, ["config", str(file)])
    assert result.stderr == "Warning: key 'anna' expired at 2020-01-01T23:59:59Z.\n"
    assert result.stdout == f"{file} is right. Models: m.\n"


# --- how the file is replaced ---


@pytest.mark.skipif(os.name == "nt", reason="Windows has no mode bits")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_a_link_stays_one_and_the_mode_of_the_file_stays(file: Path, tmp_path: Path, mode: int) -> None:
    file.chmod(mode)
    (tmp_path / "links").mkdir()
    link = tmp_path / "links" / "link.toml"
    link.symlink_to(Path("..") / file.name)
    assert run(link, "revoke", "ben").exit_code == 0
    assert link.is_symlink()
    assert stat.S_IMODE(file.stat().st_mode) == mode
    assert [key.name for key in load_config(file).keys] == ["anna"]
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["callwright.toml", "link.toml", "links"]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_file_that_cannot_be_replaced_stays(file: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    before = file.read_bytes()
    monkeypatch.setattr(os, call, fail)
    result = run(file, "revoke", "ben")
    assert result.stderr == f"Error: Cannot change {file}: Input/output error.\n"
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]


def with_key(settings: dict[str, str], text: str, _: Config) -> str:
    return add_key(text, settings)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no lock for it")
def test_no_command_loses_the_change_of_another(file: Path) -> None:
    clients, rounds = 8, 6
    together = threading.Barrier(clients)

    def work(client: int) -> None:
        together.wait(PATIENCE_S)
        for turn in range(rounds):
            name = f"client{client}-{turn}"
            change_config(file, partial(with_key, {"name": name, "sha256": hash_of(name)}))

    with ThreadPoolExecutor(clients) as pool:
        for done in [pool.submit(work, client) for client in range(clients)]:
            done.result()
    assert len(load_config(file).keys) == 2 + clients * rounds


RULES = """
[[policies]]
keys = ["ana", "b*"]
models = ["m", "n"]

[[hooks]]
name = "own"
places = ["call"]
url = "http://127.0.0.1:9/check"
keys = ["x*"]
"""


def test_a_rule_for_a_key_or_model_that_does_not_exist_is_named(file: Path) -> None:
    file.write_text(file.read_text(encoding="utf-8") + RULES, encoding="utf-8")
    result = CliRunner().invoke(main, ["config", str(file)])
    assert result.exit_code == 0
    assert result.stderr.splitlines() == [
        "Warning: hooks[0].keys: no key matches 'x*', so this has no effect.",
        "Warning: policies[0].keys: no key matches 'ana', so this has no effect. Did you mean 'anna'?",
        "Warning: policies[0].models: no model matches 'n', so this has no effect.",
    ]
