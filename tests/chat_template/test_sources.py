"""Where chat templates are found: files of every kind, folders, and what is none."""

import json
from pathlib import Path
from typing import Any

import pytest

from callwright.chat_template.sources import ChatTemplate, read_template
from callwright.errors import ConfigError

JINJA = "{% for message in messages %}{{ message.content }}{% endfor %}"
CONFIG: dict[str, Any] = {
    "chat_template": JINJA,
    "bos_token": "<s>",
    "eos_token": {"content": "</s>", "special": True},
    "added_tokens_decoder": {"1": {"content": "<s>"}, "2": {"content": "</s>"}, "3": {"content": " "}, "4": 7},
}
WHOLE = ChatTemplate(JINJA, "<s>", "</s>", ("<s>", "</s>"))


def test_a_jinja_file(tmp_path: Path) -> None:
    (tmp_path / "a.jinja").write_text(JINJA)
    assert read_template(tmp_path / "a.jinja") == ChatTemplate(JINJA)


def test_the_configuration_of_a_tokenizer(tmp_path: Path) -> None:
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(CONFIG))
    assert read_template(tmp_path / "tokenizer_config.json") == WHOLE
    assert read_template(tmp_path) == WHOLE


def test_of_several_the_one_for_tools(tmp_path: Path) -> None:
    several = [{"name": "default", "template": "plain"}, {"name": "tool_use", "template": JINJA}]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({**CONFIG, "chat_template": several}))
    assert read_template(tmp_path) == WHOLE


@pytest.mark.parametrize(
    ("name", "text"), [("chat_template.jinja", JINJA), ("chat_template.json", json.dumps({"chat_template": JINJA}))]
)
def test_a_folder_with_a_file_of_its_own(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({**CONFIG, "chat_template": "another"}))
    (tmp_path / name).write_text(text)
    assert read_template(tmp_path) == WHOLE


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("tokenizer_config.json", "{}", "holds no chat template"),
        ("tokenizer_config.json", '{"chat_template": 3}', "holds no chat template"),
        ("tokenizer_config.json", '{"chat_template": [{"name": "rag"}]}', "holds no chat template"),
        ("tokenizer_config.json", "[]", "expected a JSON object, got list"),
        ("tokenizer_config.json", "{", "is not valid JSON"),
    ],
)
def test_what_holds_none_is_told(tmp_path: Path, name: str, text: str, told: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError, match=told):
        read_template(tmp_path / name)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Cannot read the chat template"):
        read_template(tmp_path / "missing.jinja")
    with pytest.raises(ConfigError, match="holds no chat template"):
        read_template(tmp_path)
    (tmp_path / "binary.jinja").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(ConfigError, match="is not text"):
        read_template(tmp_path / "binary.jinja")
