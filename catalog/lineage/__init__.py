"""Where does this content come from?

Doors:
    `versions`      what each version of a table is made of, by its commits; pure
    `edges`         from versions to rows of `lakewarden.lineage`; pure
    `recording`     which versions have no rows yet
    `queries`       what a table comes from, and what comes from it; pure
    `graph`         the version graph of a fleet; pure
    `streams`       what batches of streaming queries read
    `restores`, `reverted_reads`   what was taken back, and who had read it
"""
