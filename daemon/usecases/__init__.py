"""What can be asked of an installation? Use cases that every surface shares."""
