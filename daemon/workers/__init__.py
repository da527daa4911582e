"""Who keeps worker processes? A pool of them, a host that has nothing else to do, and what became of
runs whose worker is gone."""
