"""docs/reference/metrics.md: every figure of `/metrics`, from the daemon's registry."""

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.metrics import MetricWrapperBase

from lakewarden.daemon.telemetry.gateway_metrics import GatewayMetrics
from lakewarden.daemon.telemetry.metrics import Metrics
from support.reference.meanings import NOTICE, cell, meant

__all__ = ["metrics_page"]

LABELS = {
    "outcome": "How it ended; the meaning of the figure, or `lakewarden.runs`, says which there are.",
    "state": "The state of a table (`active`, `quarantined`, ...).",
    "severity": "The severity of a finding (`info`, `warning`, `error`).",
    "action": "The action of a run (`vacuum`, `compact`, ...).",
    "sink": "Where lineage events go: the sink's name.",
    "user": "The user; of a login: who was claimed to be connecting, `(others)` beyond 1,000 of these.",
    "address": "The client's address.",
    "reason": "Why it was refused.",
}
_INTRO = """\
# Metrics

`GET /metrics` on `http.host` and `http.port`, in the text format of Prometheus. A counter's name ends with
`_total`, and each counter and histogram has a `_created` time beside it; a histogram has `_bucket`, `_sum`
and `_count`. The names are a contract. Those named `lakewarden_gateway_...` are a gateway's, on
`gateway.metrics_port`.

| name | type | labels | meaning |
|---|---|---|---|
"""
_LABELS = """
## Labels

| label | meaning |
|---|---|
"""


def metrics_page() -> str:
    """The page. Raises `Undocumented` for a figure or a label without a meaning."""
    kinds, names = (Metrics(), GatewayMetrics()), set[str]()
    labelled = {
        described.name: one._labelnames
        for figures in kinds
        for one in vars(figures).values()
        if isinstance(one, MetricWrapperBase)
        for described in one.describe()
    }
    lines = []
    for figure in _ours_first(kinds):
        meaning = meant("metrics", [figure.name], {figure.name: figure.documentation})[figure.name]
        labels = labelled.get(figure.name, ())
        names.update(labels)
        name = f"{figure.name}_total" if figure.type == "counter" else figure.name
        shown = ", ".join(f"`{label}`" for label in labels)
        lines.append(f"| `{name}` | {figure.type} | {shown} | {cell(meaning)} |")
    told = [f"| `{label}` | {cell(LABELS[label])} |" for label in meant("labels", sorted(names), LABELS)]
    return "\n".join([NOTICE, _INTRO + "\n".join(lines), _LABELS.rstrip("\n"), *told]) + "\n"


def _ours_first(kinds: tuple[Metrics, GatewayMetrics]) -> Iterator[Metric]:
    every = {one.name: one for figures in reversed(kinds) for one in figures.families()}
    return iter(sorted(every.values(), key=lambda one: (not one.name.startswith("lakewarden"), one.name)))
