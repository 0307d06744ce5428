"""Processes that are started for a piece of work and must not outlive whoever started them."""

import multiprocessing
import threading
from collections.abc import Callable


def when_parent_ends(then: Callable[[], None]) -> None:
    """In a process of `multiprocessing`: call `then`, in a thread, when the process that started this one has ended,
    however it did. Nothing else tells: a pool's worker, for one, holds both ends of its queue and waits for ever.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        then()

    threading.Thread(target=wait, name="callwright-parent", daemon=True).start()
