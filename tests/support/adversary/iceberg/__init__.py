"""Iceberg tables in the adversary's world: a reader, a book and a judge of their own, strangers who write by Iceberg's
library in Java, by Spark and (where it is installed) by pyiceberg, and holes of that side."""
