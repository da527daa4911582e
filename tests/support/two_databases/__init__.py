"""The same statements on Spark, governed, and on a real PostgreSQL."""
