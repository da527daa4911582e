"""What is asked of lineage? Edges around a table, streams, writes that left no record."""
