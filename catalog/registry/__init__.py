"""How does a table come under management, change there, and leave it again?

Each use case is one compare-and-set on `lakewarden.tables`, decided on one version of it; what follows (the health
row, the audit entry) can be lost in a crash and is made good by the next sweep.
Doors: `service` (the ports), `register`, `batch`, `convert`, `removal`, `governance` (policy, pause, hold, owner),
`marks`, `rollback_quarantine`, `discovery`.
"""
