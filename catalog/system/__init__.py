"""Where is what we know kept? In seven Delta tables that are managed like any other.

Doors: `base` (the SystemStore port), `store` (delta-rs), `fake` (in memory), `rows` (the tables' own rows),
`query` (SQL without a JVM), `export` (JSON), `care` (compaction, vacuum, log), `backup`, `verify`, `repair`.
Behind them: `schema` and `codec` (how rows are stored), `snapshot`, `view`, `files` (reading), `patch`,
`commits`, `handles`, `migrate` (writing).
"""
