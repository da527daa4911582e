"""MERGE: the clauses of one, read in its dialect, and the plain MERGE that does it, whose conditions ask no queries."""
