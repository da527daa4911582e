"""Which table is each column of? Decided by each dialect's own scoping, before anything is rewritten."""
