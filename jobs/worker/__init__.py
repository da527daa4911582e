"""Who takes runs from the queue? The worker process, its loop, one run from claim to finish."""
