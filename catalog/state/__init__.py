"""What is intended right now? Lease, inbox and run queue: a cache that can be deleted without losing a fact.

Doors: `port` (ports and values), `db` (the database), `lease`, `inbox`, `queue`, `run_log`, `bookmarks` (the ports
on it).
"""
