"""How does a user's session read and write Iceberg tables? At the snapshot that was there when a statement was judged.

Door: `iceberg_sessions`.
"""
