"""What do the offsets of Iceberg's source mean, and how do streams go on after a rollback?"""
