"""What does an upsert do, and which files can it leave alone? Options, schemas and facts of the source in, one MERGE
out. Pure.

Doors: `upsert_options` (what is asked for), `statement` (how it is done).
"""
