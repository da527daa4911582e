"""What runs now, and for all else, why not? Rows in, a plan with reasons out. Pure."""
