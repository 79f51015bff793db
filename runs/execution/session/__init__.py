"""One execution of a run by one process: what it opens, its lease, budget and stages."""
