"""How does a person order work and wait for it? Conversions, purges, leaving, single runs."""
