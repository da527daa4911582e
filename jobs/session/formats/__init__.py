"""What does a user's session ask a table format about the plans of its statements? Ports, which the room of each format
implements, and the values that they answer with.

Doors: `session_format`, `shapes`, `table_commits`, `row_changes`.
"""
