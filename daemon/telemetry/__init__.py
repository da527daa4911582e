"""How does the daemon tell what it does? Logs, metrics, probes, webhooks, lineage events."""
