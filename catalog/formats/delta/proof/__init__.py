"""Is it proved before it is deleted? What single files and whole checkpoints really hold."""
