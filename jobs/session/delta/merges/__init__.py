"""MERGEs by a transaction of Delta's own: what is common to tables with buckets and to those without."""
