"""What state is a table in? Read from its log alone: no Spark, no JVM.

Doors: `base` (the TableReader port and its values) and one reader per format. Formats are strangers to one another.
"""
