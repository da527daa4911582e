"""What `/metrics` tells of a gateway. Names are a contract: docs/reference/metrics.md."""

from collections.abc import Iterable
from functools import partial
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Metric, ProcessCollector, generate_latest

__all__ = ["GatewayMetrics"]

_SERIES: Final = 1_000
"""So many pairs of user and address have a series of their own: strangers choose both."""
_OTHERS: Final = "(others)"


class GatewayMetrics:
    """The gateway's figures, in a registry of their own."""

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        counter = partial(Counter, registry=registry)
        self.refused_logins = counter(
            "lakewarden_gateway_refused_logins",
            "Logins that were refused, by the user that was claimed and the client's address.",
            ["user", "address", "reason"],
        )
        self.refused_statements = counter(
            "lakewarden_gateway_refused_statements", "Statements that their user may not run.", ["user"]
        )
        self._pairs: set[tuple[str, str]] = set()

    def refused_login(self, *, user: str, address: str, reason: str) -> None:
        """One more; under `(others)` once there are too many users and addresses."""
        pair = user, address
        if pair not in self._pairs and len(self._pairs) >= _SERIES:
            pair = _OTHERS, _OTHERS
        self._pairs.add(pair)
        self.refused_logins.labels(*pair, reason).inc()

    def families(self) -> Iterable[Metric]:
        """Every figure with its name, type, meaning and values."""
        return self._registry.collect()

    def render(self) -> bytes:
        """The whole page."""
        return generate_latest(self._registry)
