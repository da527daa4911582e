"""Which plain MERGE does what a MERGE with queries, or of another dialect, says? Pure."""
