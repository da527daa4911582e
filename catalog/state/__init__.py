"""What is intended right now? Lease, inbox and run queue: a cache that can be deleted without losing a fact.

Doors: `base` (ports and values), `db` (the only door to SQLAlchemy).
"""
