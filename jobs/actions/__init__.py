"""What can be done to a table? Actions as values, and what became of one whose worker is gone. Pure."""
