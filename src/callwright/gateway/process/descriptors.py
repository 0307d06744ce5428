"""How many files, connections included, a process may have open."""

import logging
from typing import Final

log = logging.getLogger("callwright.gateway")
_OTHER_DESCRIPTORS: Final = 256  # idle connections to model servers, the store, libraries


def allow_requests(number: int, connections: int) -> int:
    """Raise the soft limit so that `number` requests can be in flight, each with a connection to a model's server, and
    `connections` of clients be open. Answers how many of these may be.

    The usual limit, 1024, is too low: above it no client is accepted and no server reached. If the hard limit is too
    low for the requests, a warning is logged.
    """
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return connections
    needed = number + connections + _OTHER_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return connections
    most = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    if most < (least := 2 * number + _OTHER_DESCRIPTORS):
        log.warning(
            "max_requests is %d, but the system lets %d files be open, which is enough for %d: raise the hard limit "
            "(ulimit -Hn, LimitNOFILE) to %d, or lower max_requests",
            *(number, most, max(1, (most - _OTHER_DESCRIPTORS) // 2), least),
        )
    left = max(most - _OTHER_DESCRIPTORS, most // 2)
    return min(connections, max(1, left - number, left // 2))
