"""An adversary: random histories of commands, cycles, workers, strangers and accidents,
and what must hold all the same.

It looks at the product from outside. `reading`, `book`, `deletions`, `invariants` and `stranger` import nothing of it
(tests/unit/house/test_adversary_apart.py holds that); `stage` drives the real commands, cycles and workers in
this process; `moves` is what can happen, `play` lets it happen, judges after every step, and shrinks what was
found; `holes` takes fixes out again, so that the adversary shows that it would find them.
"""
