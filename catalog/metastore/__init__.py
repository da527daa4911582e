"""What does the Hive metastore say, and what should it say?

Doors: `base` (the Metastore port and its values), `hive` (the real one), `fake` (the same in memory), `diff`
(pure: what an entry should say, and how it differs), `enlist` (entries of the system tables), `recorded`
(pure: the statistics an entry carries). `connection` and `wire` are the only users of the thrift client.
"""
