"""What to do?

Deciding is pure (a world of rows in, a plan with reasons out), doing is elsewhere: a worker process claims a run,
checks that the table still is at the version the run was decided on, and executes it on Spark or, for commits to the
log alone, with delta-rs.

Doors:
    `actions`     what can be done to a table, one file per action; pure
    `planning`    what runs now, and for all else, why not; pure
    `runs`        the `Engine` port, and what an executor is given and asks
    `executors`   how each action is done
    `engines`     Spark and delta-rs behind the port
    `worker`      claim, check, execute, classify, record
    `rollback`    a bad write undone together with all that depends on it
    `sql`         governed SQL: text in, typed statements out; pure
    `session`     governed writes in a user's own Spark session, with `upsert`
"""
