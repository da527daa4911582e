"""What does a plan read, and at which versions? Pinned before it runs, and looked up in what Spark really executed."""
