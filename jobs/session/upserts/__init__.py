"""How does an upsert run in a session? The source is kept and looked at, the target found or made, one MERGE run."""
