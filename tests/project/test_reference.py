"""What the documentation says of settings and commands is what the code says, and so is the schema for editors."""

import re
import tomllib
from pathlib import Path

import jsonschema_rs
import pytest
from click.testing import CliRunner

from callwright.cli import main
from callwright.gateway.config.schema import config_schema, meanings, tables
from callwright.tolerant_json.codec import decode
from tests.support.reference import DOCS, pages, shown_settings


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.name)
def test_the_pages_are_what_the_code_says(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == pages()[path], "run scripts/reference"


@pytest.mark.parametrize("name", sorted(tables()))
def test_every_setting_has_a_meaning(name: str) -> None:
    told = meanings(tables()[name])
    assert tuple(told) == tables()[name].__struct_fields__
    assert all(text.endswith((".", ")")) for text in told.values())


def test_the_page_of_settings_has_each_once() -> None:
    shown = shown_settings((DOCS / "configuration.md").read_text(encoding="utf-8"))
    known = [(name, field) for name, table in tables().items() for field in table.__struct_fields__]
    assert sorted(shown) == sorted(each for each in known if each[0] != "Config")


EXAMPLES = re.findall(r"```toml\n(.*?)```", (DOCS / "configuration.md").read_text(encoding="utf-8"), re.DOTALL)
BAD = ("[server]\nprot = 8642", "[server]\nport = 65536", "[[models]]\nname = 'm'", "[store]\nretention_days = 0")


def test_the_schema_takes_what_the_gateway_takes() -> None:
    schema = decode(CliRunner().invoke(main, ["config", "--schema"]).output)
    reader = jsonschema_rs.validator_for(schema)
    assert EXAMPLES
    assert all(reader.is_valid(tomllib.loads(text)) for text in EXAMPLES)
    assert not [text for text in BAD if reader.is_valid(tomllib.loads(text))]


def test_the_schema_says_what_a_setting_means_without_links() -> None:
    hosts = config_schema()["$defs"]["ServerConfig"]["properties"]["hosts"]
    assert hosts["description"].endswith("for any, see security.")


def test_a_configuration_is_checked_without_being_served(tmp_path: Path) -> None:
    file = tmp_path / "callwright.toml"
    file.write_text("[[models]]\nname = 'm'\nupstream = 'http://localhost:1/v1'\n", encoding="utf-8")
    right = CliRunner().invoke(main, ["config", str(file)])
    assert (right.exit_code, right.output) == (0, f"{file} is right. Models: m.\n")
    file.write_text("[[models]]\nname = 'm'\nupstream = 'localhost'\n", encoding="utf-8")
    wrong = CliRunner().invoke(main, ["config", str(file)])
    assert wrong.exit_code == 2
    assert "Model 'm': Upstream 'localhost'" in wrong.output
    neither = CliRunner().invoke(main, ["config"])
    assert (neither.exit_code, neither.output) == (2, "Error: Expected either a FILE to check or --schema.\n")
