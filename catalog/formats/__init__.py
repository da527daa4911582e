"""What state is a table in? Read from its log alone: no Spark, no JVM.

Doors: `port` (the TableReader port and its values), `registry` (which formats there are), `spec` (what makes one).
Formats are strangers to one another.
"""
