"""What happens in a user's own Spark session? Governed writes, pins, listeners."""
