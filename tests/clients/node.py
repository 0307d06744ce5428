"""Runs the scripts for Node that drive a client."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

__all__ = ["node_of", "run_node"]

_CLIENTS: Final = Path(__file__).parent
_PATIENCE_S: Final = 120


def node_of(package: str) -> str:
    """Node, rather the packages' own. Skips the test where it, or the package, is not installed."""
    modules = os.environ.get("CALLWRIGHT_NODE_MODULES", "")
    if not modules or not (Path(modules) / package).exists():
        pytest.skip("CALLWRIGHT_NODE_MODULES names no folder with the packages of tests/clients/package.json")
    programs = (Path(modules) / ".bin", os.environ.get("PATH", os.defpath))
    return shutil.which("node", path=os.pathsep.join(map(str, programs))) or pytest.skip("node is not installed")


def run_node(script: str, base_url: str, what: str, *models: str) -> None:
    """Let a script do something with these models; what it complains of fails the test."""
    done = subprocess.run(
        [node_of("ai"), str(_CLIENTS / script), f"{base_url}/v1", what, *models],
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
