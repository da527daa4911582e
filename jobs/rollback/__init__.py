"""What has to be undone together with a bad write, to which versions, and how is that done?

Deciding
    request   what somebody asks for: seeds, consents, choices; pure
    facts     what a plan has to know of each table beside the version graph; pure
    plan      request, graph and facts in, a `RollbackPlan` out; pure
    render    the plan as tree, mermaid and JSON; pure
Doing
    step      what is done to one table: value and JSON; pure
    journal   the rows of `lakewarden.rollbacks` behind every step
    verify    is the table still what the plan speaks of, and is every file there?
    records   what commits of ours say of their lineage, where they are no RESTORE; pure
    act       one table's restore, files taken out or added again, and taking it back
    saga      the whole: go on, forwards or back
    run       the saga as a run of the queue
"""
