"""What has to be undone together with a bad write, and to which versions?

Doors
    request   what somebody asks for: seeds, consents, choices; pure
    facts     what a plan has to know of each table beside the version graph; pure
    plan      request, graph and facts in, a `RollbackPlan` out; pure
    render    the plan as tree, mermaid and JSON; pure
"""
