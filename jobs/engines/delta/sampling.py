"""From a sample of whole files to the table: how many distinct values a column has. Pure.

Files are not random rows: a date column has few values per file and others in each, a flag the same in all. So the
question asked is not how often a value was seen, but in how many of the sampled files.
"""

from typing import Final

__all__ = ["distinct_in_table"]

_STEPS: Final = 60
"""Halvings of the interval: more than a double's precision needs."""


def distinct_in_table(
    *, seen: float, incidences: float, sampled_files: int, all_files: int, rows: int
) -> int:
    """Distinct values of a column in the whole table, between `seen` and `rows`.

    `seen` is the number of distinct values in the sampled files together, `incidences` the sum of the
    distinct values of each. Every value is taken to lie in a share p of the files, and in one at least. Then
    `incidences / seen = m p / (1 - (1 - p)^m)` for m sampled files gives p, and `incidences / (m p)` the number of
    values: `seen` if each is everywhere, `seen * all / sampled` if each is in one file only.
    """
    if seen <= 0 or sampled_files <= 0:
        return 0
    if sampled_files >= all_files:
        return round(min(seen, rows))
    per_value = min(max(incidences / seen, 1.0), float(sampled_files))
    low, high = 1 / all_files, 1.0
    for _ in range(_STEPS):
        share = (low + high) / 2
        if _files_per_seen_value(share, sampled_files) < per_value:
            low = share
        else:
            high = share
    estimate = max(incidences, seen) / (sampled_files * high)
    return round(min(max(estimate, seen), rows))


def _files_per_seen_value(share: float, files: int) -> float:
    """Of values that lie in this share of all files: in how many sampled ones is a value that was seen at all."""
    return files * share / (1 - (1 - share) ** files)
