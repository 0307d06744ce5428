"""Gauges that are looked up when Prometheus scrapes: the state of servers, the remaining rate limits.

They cost nothing in between. If several processes serve one port they are left out: none knows those of the others.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

import callwright
from callwright.upstreams.timings import States

Left: TypeAlias = Callable[[], Mapping[str, Mapping[str, float]]]  # the rest of each key's limits, by their kind


class Gauges(Collector):
    """A Prometheus collector. `pools` has the servers of each model, known once the model was asked."""

    def __init__(self, left: Left) -> None:
        self.pools: dict[str, States] = {}
        self._left = left

    def collect(self) -> Iterator[Metric]:
        build = GaugeMetricFamily("callwright_build", "The version that runs.", labels=("version",))
        build.add_metric((callwright.__version__,), 1)
        yield build
        up = GaugeMetricFamily("callwright_upstream_up", "1: the server is asked; 0: it rests.", labels=_OF_SERVERS)
        running = GaugeMetricFamily("callwright_upstream_in_flight", "Requests that it answers.", labels=_OF_SERVERS)
        for model, states in self.pools.items():
            for server in states():
                up.add_metric((model, server.name), float(server.is_well))
                running.add_metric((model, server.name), server.in_flight)
        yield from (up, running)
        left = GaugeMetricFamily("callwright_key_left", "Remainder of a limit per minute.", labels=("key", "kind"))
        for key, kinds in self._left().items():
            for kind, number in kinds.items():
                left.add_metric((key, kind), number)
        yield left


class OfKey(Collector):
    """The metrics of a registry about one key only: it must not see the names and counts of others."""

    def __init__(self, registry: Collector, key: str) -> None:
        self._registry = registry
        self._key = key

    def collect(self) -> Iterator[Metric]:
        for metric in self._registry.collect():
            samples = [sample for sample in metric.samples if sample.labels.get("key") == self._key]
            if samples:
                own = Metric(metric.name, metric.documentation, metric.type, metric.unit)
                own.samples = samples
                yield own


_OF_SERVERS = ("model", "server")
