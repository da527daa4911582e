"""What does the Hive metastore say, and what should it say?

Thrift's client is used by `thrift_pool`, `hive` and `thrift_tables` alone.

Doors: `port` (the Metastore port and its values), `hive` (the real one), `sync_plan` (what an entry should say, and
how it differs; pure), `entry_statistics` (the statistics an entry carries; pure), `lookup` (what a user pointed at),
`table_heads` (heads that it keeps).
"""
