"""What do the offsets of Delta's source mean, and how do streams go on after a rollback?"""
