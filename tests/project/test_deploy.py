"""The files of `deploy/`: the files that they name exist, and the steps of the image are done here, without Docker."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.http_client import CHAT, request
from tests.support.outputs import QUESTION
from tests.support.paths import ROOT
from tests.support.processes import CALLWRIGHT, served

DEPLOY = ROOT / "deploy"
STEP = re.compile(r"^([A-Z]+) ((?:.*\\\n)*.*)$", re.MULTILINE)
INSTALLED = "/opt/callwright"
# Runs a command as a container does with `--read-only`: nothing can be written but the volume ($0), by a user ($1) that
# has no home, no name and no right but to read, as all files of the image are readable.
CONTAINED = """
mount --rbind / / && mount -o remount,bind,ro / && mount --bind -o ro /tmp /tmp
mount -t tmpfs -o "uid=$1,mode=700" none "$0" || exit 1
user="$1" && shift && cd /
exec setpriv --reuid "$user" --regid "$user" --clear-groups --no-new-privs \
    --inh-caps -all,+dac_read_search --ambient-caps +dac_read_search --bounding-set -all,+dac_read_search "$@"
"""
GRACE_S = 10  # of `docker stop`; no request is under way


def steps(kind: str) -> list[str]:
    """The Dockerfile's steps of a kind, each on one line."""
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    return [said.replace("\\\n", "") for name, said in STEP.findall(text) if name == kind]


def copied() -> list[tuple[str, str]]:
    """Files copied from the project, and to where."""
    own = [step.split() for step in steps("COPY") if not step.startswith("--")]
    return [(source, words[-1]) for words in own for source in words[:-1]]


def test_what_is_copied_into_the_image_is_there_and_nothing_else_goes_in() -> None:
    assert {source for source, _ in copied()} == {"pyproject.toml", "README.md", "LICENSE", "constraints.txt", "src"}
    assert all((ROOT / source).exists() for source, _ in copied())


def test_the_image_does_not_run_as_root() -> None:
    (user,) = steps("USER")
    assert any(step.startswith("useradd") and f" --uid {user} " in step for step in steps("RUN"))


def contained(volume: Path) -> list[str]:
    """The start of a command that runs in a container, as far as this machine and its user can do it."""
    volume.mkdir()
    if not shutil.which("setpriv") or subprocess.run(["unshare", "--mount", "true"], check=False).returncode:
        return []
    (user,) = steps("USER")
    return ["unshare", "--mount", "sh", "-c", CONTAINED, str(volume), user]


@pytest.mark.clients
def test_what_the_image_installs_serves_and_is_healthy(tmp_path: Path) -> None:
    build, env = tmp_path / "build", tmp_path / "installed"
    build.mkdir()
    for source, target in copied():
        place = build / target
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, place, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / source, place)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
    for step in steps("RUN"):
        if INSTALLED in step:
            command = shlex.split(step.replace(INSTALLED, str(env)))
            done = subprocess.run(
                command, cwd=build, env=environment, capture_output=True, encoding="utf-8", check=False
            )
            assert done.returncode == 0, done.stderr[-4_000:]
    (entrypoint,), (given,) = steps("ENTRYPOINT"), steps("CMD")
    command = [*json.loads(entrypoint), *json.loads(given)]
    assert command[command.index("--host") + 1] == "0.0.0.0"
    volume = tmp_path / "state"
    places = {INSTALLED: str(env), "/var/lib/callwright": str(volume), "$PATH": os.defpath}
    (settings,) = steps("ENV")
    own = dict(setting.split("=", 1) for setting in settings.split())
    for name, here in places.items():
        own = {key: value.replace(name, here) for key, value in own.items()}
    replaced = {"0.0.0.0": "127.0.0.1", "8642": "0"}
    program = [str(env / "bin" / command[0]), *(replaced.get(word, word) for word in command[1:])]
    with served(*contained(volume), *program, env=own) as (url, process):
        assert request(url + CHAT, {"model": "simulated", "messages": [QUESTION]}).status == 200
        (check,) = steps("HEALTHCHECK")
        words = json.loads(check[check.index("[") :])
        program = [str(env / "bin" / words[0]), *(word.replace("http://127.0.0.1:8642", url) for word in words[1:])]
        assert subprocess.run(program, env=own, check=False).returncode == 0
        process.terminate()
        assert process.wait(GRACE_S) == 0
    assert subprocess.run(program, env=own, stderr=subprocess.DEVNULL, check=False).returncode != 0


def test_the_parts_of_the_composition_name_each_other() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    composed: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    services = composed["services"]
    asked = re.findall(r"server ([\w-]+):8642", (DEPLOY / "nginx.conf").read_text(encoding="utf-8"))
    assert len(asked) == 2
    assert set(asked) < set(services)
    for service in services.values():
        assert set(service.get("depends_on", ())) < set(services)
        if "build" in service:
            assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).exists()
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            assert source in composed["volumes"] or (DEPLOY / source).exists()
    ports = [port for service in services.values() for port in service.get("ports", ())]
    assert ports == ["127.0.0.1:8642:80", "127.0.0.1:9090:9090"]  # of this machine only; gateways through nginx only
    prometheus = yaml.safe_load((DEPLOY / "prometheus.yml").read_text(encoding="utf-8"))
    (job,) = prometheus["scrape_configs"]
    assert job["static_configs"][0]["targets"] == [f"{name}:8642" for name in asked]
    assert job["authorization"] == {"credentials_file": "/run/secrets/metrics-key"}
    assert services["prometheus"]["secrets"] == ["metrics-key"]
    assert set(composed["secrets"]) == {"metrics-key"}


@pytest.mark.parametrize(
    "path",
    sorted(path for path in DEPLOY.rglob("*") if path.is_file() and path.parent.name != "__pycache__"),
    ids=lambda path: path.name,
)
def test_no_file_has_a_password_in_a_url(path: Path) -> None:
    assert not re.findall(r"\w+://[^/\s@]*:[^/\s]*@\S*", path.read_text(encoding="utf-8"))


@pytest.mark.processes
@pytest.mark.parametrize("keyed", [False, True])
def test_prometheus_may_ask_the_gateways_of_the_composition(keyed: bool, tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    (job,) = yaml.safe_load((DEPLOY / "prometheus.yml").read_text(encoding="utf-8"))["scrape_configs"]
    config, key = tmp_path / "callwright.toml", "any"
    text = (DEPLOY / "callwright.toml").read_text(encoding="utf-8")
    config.write_text(text, encoding="utf-8")
    if keyed:
        add = [CALLWRIGHT, "keys", "add", "prometheus", "--models", "", "--config", str(config)]
        key = subprocess.run(add, check=True, capture_output=True, encoding="utf-8").stdout.split()[0]
    with served(CALLWRIGHT, "serve", "--config", str(config), "--store", "sqlite://", "--port", "0") as (url, _):
        for target in job["static_configs"][0]["targets"]:
            for given, status in ((key, 200), ("wrong", 401 if keyed else 200)):
                headers = {"host": target, "authorization": f"Bearer {given}"}
                assert request(f"{url}/metrics", headers=headers, method="GET").status == status
