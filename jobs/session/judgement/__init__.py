"""What does a statement do, by its plan, and may its user? Lists say it of each kind of statement and of functions."""
