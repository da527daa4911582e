"""How does a table come under management, change there, and leave it again?

Each use case is one compare-and-set on `lakewarden.tables`, decided on one version of it; what follows (the health
row, the audit entry) can be lost in a crash and is made good by the next sweep.
Doors: `desk` (the ports), `register`, `convert`, `remove`, `govern` (policy, pause, hold, owner).
"""
