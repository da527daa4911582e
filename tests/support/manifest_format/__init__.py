"""A table format of the tests alone: Parquet files and one manifest, to show that a format needs no line outside its
folder. Versions are numbered with gaps, `main` can move back without a new version, other refs protect theirs.

Doors: `reader` (the TableReader), `manifest` (what lies in `manifest/<generation>.json`).
"""
