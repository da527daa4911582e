"""What does a governed write do when somebody else commits first? It looks which commit that was, and tries again."""
