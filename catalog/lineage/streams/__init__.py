"""What did a stream's batches read? Offsets, checkpoints, and what sessions noted."""
