"""What does a log say of a table's health and of its columns? Pure."""
