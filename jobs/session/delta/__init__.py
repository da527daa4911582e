"""How does a user's session read and write Delta tables? By Delta's own plans and transactions, known here alone.

Door: `delta_sessions`.
"""
