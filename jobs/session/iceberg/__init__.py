"""Which snapshot of an Iceberg table does a statement read? The one that was there when it was judged.

Door: `snapshot_reads`.
"""
