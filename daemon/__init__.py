"""When, and who?

One leader among the daemons runs the cycle: claim hints, observe, plan, enqueue, record. It starts and watches
the workers, and answers people on the command line and over HTTP.

Doors
    cli/            the `lakewarden` command
    settings        every knob with its unit, its default and where its value came from
    wiring          the composition root: the only place that constructs concrete components
    service, cycle  the loop, and one turn of it
    embedded        a real Hive metastore in a directory, for demos and tests
"""
