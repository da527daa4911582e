"""What to do?

Deciding is pure (`planner.plan(world, now) -> Plan`), doing is elsewhere: a worker process claims a run, checks
that the table still is at the version the run was decided on, and executes it on Spark or, for commits to the
log alone, with delta-rs.

Doors
    actions, rules, planner, explain   a world of rows in, a plan with reasons out; pure
    sql/                               governed SQL: text in, typed statements out; pure
    base                               the `Engine` port and what an executor is given
    engine/                            Spark; the only door to PySpark
    runner, worker                     claim, check, execute, classify, record
"""
