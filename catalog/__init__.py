"""What is true?

Which tables are managed? What do their logs say, and what did their owners ask for? Who may ask? No JVM here, and no
decisions about work: the planner in `lakewarden.jobs` makes those from the values this room hands out.

Doors:
    `errors`, `clock`, `model`, `policy`   values that every room shares; pure
    `formats`                              reading a table's log (`TableReader`)
    `system`                               the seven system tables (`SystemStore`); the only writer to them
    `state`                                lease, inbox, run queue (`Leases`, `Inbox`, `Queue`); on SQLAlchemy
    `metastore`                            the Hive metastore (`Metastore`), over Thrift
    `lineage`                              which version was made from which
    `validation`                           findings about a table
    `registry`                             use cases: register, convert, adopt, drop, govern
"""
