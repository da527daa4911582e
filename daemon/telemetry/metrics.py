"""What `/metrics` tells, in the text format of Prometheus. Names are a contract: docs/reference/metrics.md."""

from collections.abc import Iterable, Mapping
from functools import partial

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Metric,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)

from lakewarden.catalog.model.rows import Action, Outcome

__all__ = ["CONTENT_TYPE", "Metrics"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """The daemon's figures, in a registry of their own (so that tests and embedded daemons do not share them)."""

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        gauge = partial(Gauge, registry=registry)
        counter = partial(Counter, registry=registry)
        self.leader = gauge("lakewarden_leader", "1 while this daemon leads.")
        self.cycles = counter("lakewarden_cycles", "Cycles by how they ended (done, failed).", ["outcome"])
        self.cycle_seconds = Histogram(
            "lakewarden_cycle_seconds",
            "Duration of one cycle.",
            buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300),
            registry=registry,
        )
        self.last_cycle = gauge(
            "lakewarden_last_cycle_timestamp_seconds", "When the last complete cycle ended."
        )
        self.tables = gauge("lakewarden_tables", "Managed tables by state.", ["state"])
        self.observed = counter("lakewarden_observed", "Tables read because they had moved.")
        self.findings = gauge("lakewarden_findings", "Open findings by severity.", ["severity"])
        self.runs = counter("lakewarden_runs", "Recorded runs by action and outcome.", ["action", "outcome"])
        self.runs_bytes = counter(
            "lakewarden_runs_bytes",
            "Bytes that runs which succeeded rewrote (compact) or deleted (vacuum, purge).",
            ["action"],
        )
        self.unfinished = gauge("lakewarden_runs_unfinished", "Runs queued, claimed or running.")
        self.workers = gauge("lakewarden_workers", "Worker processes alive.")
        self.worker_restarts = counter(
            "lakewarden_worker_failures", "Worker processes that ended with an error."
        )
        self.clock_rebuilds = counter(
            "lakewarden_clock_rebuilds", "Schedulers that had died or stalled and were replaced."
        )
        self.webhooks = counter(
            "lakewarden_webhooks", "Webhook deliveries (delivered, dropped).", ["outcome"]
        )
        self.events = counter(
            "lakewarden_events", "Lineage events by sink and outcome (sent, refused).", ["sink", "outcome"]
        )
        self.events_behind = gauge(
            "lakewarden_events_behind", "Commits of lakewarden.lineage that a sink has not got yet.", ["sink"]
        )
        self._begin_at_zero()

    def _begin_at_zero(self) -> None:
        """What alarms count is there before it first happens: PromQL sees no increase in a series that begins at 1."""
        for outcome in ("done", "failed"):
            self.cycles.labels(outcome=outcome)
        for action in Action:
            self.runs.labels(action=action, outcome=Outcome.FAILED)

    def count_run(self, action: Action, outcome: Outcome, *, moved_bytes: int = 0) -> None:
        """One more finished run was recorded, which rewrote or deleted so much."""
        self.runs.labels(action=action, outcome=outcome).inc()
        if moved_bytes:
            self.runs_bytes.labels(action=action).inc(moved_bytes)

    def set_counts(self, gauge: Gauge, counts: Mapping[str, int]) -> None:
        """Replace all values of a gauge with one label."""
        gauge.clear()
        for label, count in counts.items():
            gauge.labels(label).set(count)

    def families(self) -> Iterable[Metric]:
        """Every figure with its name, type, meaning and values."""
        return self._registry.collect()

    def render(self) -> bytes:
        """The whole page."""
        return generate_latest(self._registry)
