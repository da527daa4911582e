"""What do MERGEs by a transaction of Delta's own have in common, with buckets or without?"""
