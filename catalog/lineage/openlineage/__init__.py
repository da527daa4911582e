"""How do other tools read our lineage? Versions as OpenLineage events. Pure."""
