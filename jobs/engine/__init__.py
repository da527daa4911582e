"""Spark: the only door to PySpark, and the jars it needs.

Everything here runs in a worker process or in a user's own session, never in the daemon.
"""
