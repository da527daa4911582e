"""An oracle of rollback plans by a stranger: written from the documentation, by somebody who had not read the source.

`oracle` is docs/rollback.md as recursions over the commits of a `world`, as simple as can be. `lake` makes
random worlds (`steps`) real: Delta tables written by delta-rs as any foreign program writes them, with
lineage records in the commits, or without, short ones and false ones. `commands` runs the product's own
commands, and is all that touches it. `game` asks for plans, pastes the next commands that they print until
they can be applied, and `compare`s each with what it had to say;
`hunt` goes through seeds and leaves out steps as long as a difference stays.

What is compared: tables of the plan, targets, tainted versions and what each had read, unknown commits, clean, kept and
columns' commits that would be lost, what could be added again, what blocks, who waits, waves, exit codes,
consents. Where the documentation leaves two readings, the one taken is said in `oracle`, next to the rule.
"""
