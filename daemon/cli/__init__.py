"""How does a person talk to lakewarden? The command line: reads well, prints JSON alone on stdout, exits by contract.

Doors: `app` (the command tree; commands load when they are called), `output` (tables, JSON, YAML, CSV).
"""
