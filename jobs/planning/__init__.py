"""What is due, and why, or why not? Rows in, a plan with reasons out. Pure."""
