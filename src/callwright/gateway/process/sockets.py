"""The sockets that a gateway listens on."""

import errno
import socket
import sys
from contextlib import ExitStack
from typing import Final

from callwright.errors import ConfigError, reason_of

# Errors that are about the port; any other is about the address.
_PORT_FAULTS: Final = (errno.EADDRINUSE, errno.EACCES)
_BACKLOG: Final = 2_048


def listen_for_each(host: str, port: int, count: int) -> list[socket.socket]:
    """`count` sockets, one for each process, all at one address; `port` 0 is any free one. Raises `ConfigError`.

    On Linux each has its own queue, and the system spreads connections evenly; from a common queue the first process to
    wake takes all that wait. The caller holds the sockets open, so that a restarted process finds its queue again.
    """
    if count == 1:
        return [_listening(host, port)]
    if sys.platform != "linux":
        common = _listening(host, port)
        return [common, *(common.dup() for _ in range(count - 1))]
    with _listening(host, port) as alone:  # fails if anything else listens; sockets that share a port do not
        port = alone.getsockname()[1]
    with ExitStack() as when_it_fails:
        listeners = [when_it_fails.enter_context(_listening(host, port, shared=True)) for _ in range(count)]
        when_it_fails.pop_all()
    return listeners


def _listening(host: str, port: int, *, shared: bool = False) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG, reuse_port=shared)
    except OSError as error:
        if error.errno in _PORT_FAULTS:
            way_out = "Choose another port with --port, or --port 0 for any."
        else:
            way_out = "Give an address of this machine with --host, such as 127.0.0.1, or 0.0.0.0 for all of them."
        reason = reason_of(error.__context__ or error)  # `socket` appends the address again to its own error
        raise ConfigError(f"Cannot listen on {host}:{port}: {reason}. {way_out}") from error
    except UnicodeError as error:
        raise ConfigError(f"Cannot listen on {host!r}: it is not the name of a host.") from error
