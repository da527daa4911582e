"""Which plain MERGE does what INSERT ... ON CONFLICT, REPLACE, UPSERT and UPDATE ... ELSE INSERT say? Pure.

Doors: `reading` (text to a draft), `merging` (draft and schemas to a step).
"""
