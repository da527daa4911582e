"""How do the system tables survive damage? Backup, verification, repair, each by content."""
