"""What is a Spark session told, so that Delta commits as we want? Stamped, on the version that was read, in buckets."""
