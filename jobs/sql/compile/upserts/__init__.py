"""Which plain MERGE does what INSERT ... ON CONFLICT, REPLACE, UPSERT and UPDATE ... ELSE INSERT say? Pure.

Doors: `upsert_drafts` (text to a draft), `merging` (draft and schemas to a step).
"""
