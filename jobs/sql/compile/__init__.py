"""Which plain statements do what a warehouse's UPDATE or DELETE says? One statement and the schemas of its tables in,
typed steps out. Pure.

Doors: `reading`, `merges` and `upserts.upsert_drafts` (text to a draft that names its tables), `compiler` (draft and
schemas to steps), `values`.
"""
