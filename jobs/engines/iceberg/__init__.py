"""How are Iceberg tables changed? By Spark and Iceberg's own library, each commit made once, on exactly one head."""
