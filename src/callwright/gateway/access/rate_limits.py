"""Rate limits per minute, counted in `SharedCounters`; several gateways may share them.

A gateway counts the requests it admits, and how many of them it has not yet reported. It reports them in the
background, and reads the total of all gateways. Far below a limit it does not wait: it may admit a portion, a twentieth
of the limit, before it reports. If less than a portion for each gateway is left, or a whole portion is unreported, it
asks the store before it admits a request (`Bucket.is_to_be_asked`). So all gateways together exceed a limit by at most
one portion per process.

During an outage of the store, each gateway applies its share of each limit.
"""

from collections.abc import Callable
from typing import Final

from callwright.gateway.access.shared_counters import SharedCounters

MINUTE_S: Final = 60.0
PORTION: Final = 0.05  # of a limit, at least 1


class Outage:
    """Whether the other gateways cannot be heard, and how many gateways there are; of all workers of this one."""

    PLACES: Final = 2

    def __init__(self, counters: SharedCounters, place: int) -> None:
        self._counters = counters
        self._place = place

    @property
    def is_now(self) -> bool:
        """Whether they cannot be heard."""
        return bool(self._counters.numbers[self._place])

    @property
    def gateways(self) -> int:
        """How many there were when they were heard last."""
        return max(1, int(self._counters.numbers[self._place + 1]))

    def begins(self) -> bool:
        """Note that they cannot be heard; whether that is new."""
        return self._note(1)

    def ends(self, gateways: int) -> bool:
        """Note that they are heard, and how many they are; whether that is new."""
        with self._counters.locked() as numbers:
            numbers[self._place + 1] = gateways
        return self._note(0)

    def _note(self, value: float) -> bool:
        with self._counters.locked() as numbers:
            is_new = numbers[self._place] != value
            numbers[self._place] = value
        return is_new


class Bucket:
    """A rate limit as a token bucket that refills evenly over a minute. It may be overdrawn, and is then empty for
    longer.
    """

    PLACES: Final = 3  # how much is used, the time of that, and what of it is unsaid

    def __init__(
        self,
        kind: str,
        per_minute: int,
        clock: Callable[[], float],
        counters: SharedCounters,
        place: int,
        outage: Outage | None = None,
    ) -> None:
        """`place`: the index of its counters."""
        self.kind = kind
        self.per_minute = per_minute
        self.portion = max(1, int(per_minute * PORTION))
        self._clock = clock
        self._counters = counters
        self._place = place
        self._outage = outage
        self._said = 0.0  # by this process, and not heard of yet

    def remaining(self) -> float:
        """How many are left."""
        return self.use(0)

    def use(self, number: float) -> float:
        """Use this many; answers how many are left."""
        most = self._most()
        with self._counters.locked() as numbers:
            now = self._clock()
            used, at = numbers[self._place], numbers[self._place + 1]
            used = max(0.0, used - (now - at) * most / MINUTE_S) + number
            numbers[self._place], numbers[self._place + 1] = used, now
            numbers[self._place + 2] += number
        return most - used

    def wait_s(self, number: float) -> float:
        """Seconds until this many are there."""
        return max(0.0, number - self.remaining()) * MINUTE_S / self._most()

    def _most(self) -> float:
        outage = self._outage
        return self.per_minute / outage.gateways if outage is not None and outage.is_now else self.per_minute

    # --- among gateways ---

    @property
    def unsaid(self) -> float:
        """How much was used that the others have not heard of."""
        return self._counters.numbers[self._place + 2]

    @property
    def is_to_be_asked(self) -> bool:
        """Whether the others are to be asked before one more is used."""
        if self._outage is None or self._outage.is_now:
            return False
        unheard = self.unsaid + self._said
        return unheard >= self.portion or self.remaining() <= self.portion * self._outage.gateways

    def say(self) -> float:
        """Take the unreported usage to report it. Afterwards call `heard` or `unheard`."""
        with self._counters.locked() as numbers:
            unsaid = numbers[self._place + 2]
            numbers[self._place + 2] = 0
        self._said += unsaid
        return unsaid

    def set_total(self, used: float, said: float) -> None:
        """Set the total usage of all gateways, which includes the usage reported as `said`."""
        self._said -= said
        with self._counters.locked() as numbers:
            numbers[self._place] = used + numbers[self._place + 2]
            numbers[self._place + 1] = self._clock()

    def unheard(self, said: float) -> None:
        """Return usage to the unreported count after a failed report."""
        self._said -= said
        with self._counters.locked() as numbers:
            numbers[self._place + 2] += said

    def share(self, gateways: int) -> None:
        """Reduce the count to the share of one gateway."""
        with self._counters.locked() as numbers:
            numbers[self._place] /= gateways
