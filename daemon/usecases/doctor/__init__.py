"""What is set up wrong, and what mends it? Checks, one by one, each with an answer."""
