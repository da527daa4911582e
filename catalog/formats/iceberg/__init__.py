"""What does Iceberg's metadata say of a table? Read from its JSON and Avro files, from the one file that is head's.

Specification: https://iceberg.apache.org/spec/

Doors: `reader.IcebergReader`, `iceberg_format.ICEBERG_FORMAT`.
"""
