"""What does a Delta log say? Replayed by us from JSON commits and checkpoints, with any features it may use.

delta-rs is not used here: it refuses tables whose features it cannot read, hides removed
files and the borders between commits. Protocol: https://github.com/delta-io/delta/blob/master/PROTOCOL.md

Doors: `reader.DeltaReader`, `reader.DELTA_FORMAT`.
"""
