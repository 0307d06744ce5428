"""Numbers of metrics that wait: what is added of them is what the library itself would have counted."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from callwright.gateway.observability.tallies import Tallies

VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 7.0)


def shown(*, deferred: bool) -> list[str]:
    """What is exposed, line by line; asked for at the begin, and twice on the way."""
    registry = CollectorRegistry()
    asked = Counter("asked", "Asked.", ["model"], registry=registry)
    running = Gauge("running", "Running.", registry=registry)
    seconds = Histogram("seconds", "Seconds.", ["model"], buckets=(1, 2, 5), registry=registry)
    of = Tallies(deferred=deferred)
    of[asked, "never"]
    found: list[str] = []
    for _ in range(3):
        of.add()
        found += [line for line in generate_latest(registry).decode().splitlines() if "_created" not in line]
        for value in VALUES:
            of[asked, "m"].inc()
            of[running,].inc(2)
            of[running,].inc(-1)
            of[seconds, "m"].observe(value)
    return found


def test_what_waits_is_added_once_and_counts_as_it_would_at_once() -> None:
    assert shown(deferred=True) == shown(deferred=False)
    assert 'seconds_bucket{le="2.0",model="m"} 10.0' in shown(deferred=True)
