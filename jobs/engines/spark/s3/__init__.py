"""How does a session work on S3? Hadoop's S3A, and a LogStore under whose commits no other writer's gets lost."""
