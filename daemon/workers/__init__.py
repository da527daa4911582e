"""Who keeps worker processes? A pool of workers, a host for them alone, and the fate of runs whose worker is gone."""
