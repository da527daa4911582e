"""Where does this content come from?

Doors
    record   what a governed write says in its commit: value and JSON; pure
    rows     from commits to rows of `lakewarden.lineage`; pure
    streams  what batches of streaming queries read, from their offsets; pure
    graph    the version graph of a fleet, from those rows and from commits; pure
"""
