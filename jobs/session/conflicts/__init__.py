"""What does a governed write do that loses a race, or executors with rows that it keeps? It looks which commit won, and
tries again."""
