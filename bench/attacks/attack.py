"""What an attack is, and what it may cost."""

from collections.abc import Callable

import msgspec

__all__ = ["Attack", "Cost", "Target"]


class Target(msgspec.Struct):
    """A gateway of its own process: its port, its process id, and the port of the model's server behind it (0:
    simulated).
    """

    port: int
    pid: int
    upstream_port: int = 0


class Cost(msgspec.Struct):
    """What an attack did: the longest time in ms that another client's small request waited, the growth of the
    gateway's memory in MB, requests of others that failed, and a word on what the attacker was answered.
    """

    stall_ms: float
    rss_mb: float
    failed: int
    answered: str


class Attack(msgspec.Struct, frozen=True):
    """One attack: its name, what it does in a sentence, how it runs against a target, the most that it may cost (a
    `Cost` whose `answered` is not compared), arguments and environment for `callwright serve`, and a function that
    starts what stands behind the gateway and answers its port and how to end it.
    """

    name: str
    about: str
    run: Callable[[Target], Cost]
    most: Cost
    config: str = ""
    upstream: Callable[[], tuple[int, Callable[[], None]]] | None = None
