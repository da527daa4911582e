"""How is it done to a Delta table? By Spark, and by delta-rs where no data is touched."""
