"""How is a Spark session started? Jars, Java, options, and its errors as ours."""
