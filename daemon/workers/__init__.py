"""Who keeps worker processes? A pool of them, and what became of runs whose worker is gone."""
