"""What does a governed statement ask for? Text to typed statements (pure), for the CLI,
Python and Spark sessions alike.

Doors: `parser` (parse), `statements` (the values).
"""
