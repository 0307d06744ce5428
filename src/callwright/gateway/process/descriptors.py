"""How many files and connections the process may have open. It changes its own limit, up to what the system allows."""

import logging

__all__ = ["allow_requests"]

log = logging.getLogger("callwright.gateway")
_PER_REQUEST = 2  # the client's connection and the one to the model's server
_BESIDE = 256  # connections that are kept, the store, libraries


def allow_requests(number: int) -> None:
    """Let so many requests be under way. The usual soft limit, 1024, is for other programs: above it no client
    is let in and no server reached. Where the hard limit is too low, the log says so.
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
