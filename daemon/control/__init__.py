"""What does a leading daemon do, beat by beat? The cycle, its clock, leadership, what follows from runs."""
