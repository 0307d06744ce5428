"""nginx as `deploy/nginx.conf` sets it up, before gateways of a test."""

import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.paths import ROOT
from tests.support.servers import HOST
from tests.support.waiting import PATIENCE_S

_CONFIG = ROOT / "deploy" / "nginx.conf"
_TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


@contextmanager
def nginx(folder: Path, gateways: Sequence[str]) -> Iterator[str]:
    """The base URL of an nginx that asks these in turn. Skips where there is none."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        pytest.skip("nginx is not installed")
    with closing(socket.create_server((HOST, 0))) as free:
        port = free.getsockname()[1]
    config = folder / "nginx.conf"
    config.write_text(_configured(_CONFIG.read_text(), folder, port, [urlsplit(url).netloc for url in gateways]))
    settings = f"daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log;"
    process = subprocess.Popen([program, "-p", str(folder), "-c", str(config), "-g", settings], stderr=subprocess.PIPE)
    assert process.stderr is not None
    try:
        until = time.monotonic() + PATIENCE_S
        while not _listens(port):
            assert process.poll() is None, process.stderr.read().decode()
            assert time.monotonic() < until, "nginx does not listen"
        yield f"http://{HOST}:{port}"
    finally:
        process.terminate()
        process.wait()
        process.stderr.close()


def _configured(text: str, folder: Path, port: int, gateways: Sequence[str]) -> str:
    """The example with the addresses of a test, writing in its folder only."""
    (server,) = set(re.findall(r"server gateway-\d:8642(.*);", text))
    text = re.sub(r"( +)server gateway-1:8642.*\n", "".join(f"server {one}{server};\n" for one in gateways), text)
    text = re.sub(r" +server gateway-\d:8642.*\n", "", text).replace("listen 80;", f"listen {HOST}:{port};")
    assert f"listen {HOST}" in text
    places = "".join(f"{name}_temp_path {folder}/{name};\n" for name in _TEMPORARY)
    return text.replace("http {", f"http {{\n{places}", 1)


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex((HOST, port)) == 0
