"""How does a call get to its user's own engine, a gateway of that user alone with a Spark of its own?

Doors: `engines` (the gateway's side), `relayed` (the engine's).
"""
