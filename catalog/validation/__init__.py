"""Is a table sound, and does it agree with what was promised about it? Findings out of what was read.

Doors: `checks.CHECKS` (every check with its tier, severity, sentences and hint), `on_change.on_change_findings`,
`daily.daily_findings`. docs/reference/checks.md is made from the registry.
"""
