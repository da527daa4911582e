"""Who reads what users send? Processes that can be killed: statements, and system tables for their queries.

Doors: `readers` for the gateway; `process` is run by it.
"""
