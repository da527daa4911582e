"""When, and who?

One leader among the daemons runs the cycle: claim hints, observe, plan, enqueue, record. It starts and watches
the workers, and answers people on the command line and over HTTP.

Doors:
    `cli`            the `lakewarden` command
    `gateway`        HiveServer2 for warehouse clients, with `client` for those in Python
    `attach`         a user's own Spark session
    `usecases`       what can be asked, by any of these
    `control`        the leader's loop, and one turn of it
    `settings`       every setting with its unit, its default and where its value came from
    `installation`   the composition root: the only place that constructs concrete components
    `process`        good processes, and a real Hive metastore in a folder for demos and tests
"""
