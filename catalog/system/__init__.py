"""Where is what we know kept? In seven Delta tables that are managed like any other.

Doors: `port` (the SystemStore port), `store` (on delta-rs), `own_rows` (the tables' own rows), `query` (SQL without a
JVM), `export` (JSON), `maintenance` (compaction, vacuum, log), `recovery` (backup, verification, repair).
Behind them: `schema` and `codec` (how rows are stored), `snapshot`, `view`, `data_files` (reading), `patch`, `commits`,
`handles`, `migrate` (writing).
"""
