"""Examples that run: the demo, and the real data it uses."""
