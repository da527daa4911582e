"""Which tables have the catalogs that the settings declare, and which metadata file is head's of each?

Doors: `declaration` (what the settings say), `port`, `catalogs` (opens them).
"""
