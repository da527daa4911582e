"""What is a run given, and what must it ask before it acts? Ports, the guard, the table as it is found."""
