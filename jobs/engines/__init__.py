"""Who does the heavy work? Engines behind the port that executors see."""
