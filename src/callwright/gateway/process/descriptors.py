"""The limit of open files and connections of this process, raised as far as the system allows."""

import logging

__all__ = ["allow_requests"]

log = logging.getLogger("callwright.gateway")
_PER_REQUEST = 2  # the client's connection and the one to the model's server
_BESIDE = 256  # kept-alive connections, the store, libraries


def allow_requests(number: int) -> None:
    """Raise the soft limit so that `number` requests can be in flight. The usual one, 1024, is too low: above it no
    client is accepted and no server reached. If the hard limit is too low, a warning is logged.
    """
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    needed = number * _PER_REQUEST + _BESIDE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    most = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    if most < needed:
        log.warning(
            "max_requests is %d, but the system lets %d files be open, which is enough for %d: raise the hard limit "
            "(ulimit -Hn, LimitNOFILE) to %d, or lower max_requests",
            *(number, most, max(1, (most - _BESIDE) // _PER_REQUEST), needed),
        )
