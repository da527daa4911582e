"""What is true?

Which tables are managed, what their logs say, what their owners asked for, and who may ask. No JVM here, and
no decisions about work: the planner in `lakewarden.jobs` makes those from the values this room hands out.

Doors
    model, errors, clock, policies   frozen values every room shares; pure
    formats/                         reading a table's log (`TableReader`)
    system/                          the seven system tables (`SystemStore`); the only writer to them
    state/                           lease, inbox, run queue (`Leases`, `Inbox`, `Queue`); the only door to SQLAlchemy
    metastore/                       the Hive metastore (`Metastore`); the only door to Thrift
    registry/                        use cases: convert, register, adopt, drop, govern
"""
