"""Statistics of runs: intervals, pass@k, paired tests. docs/statistics.md explains them.

All functions are pure. Intervals and tests are two-sided at 95 %. An undefined value is None, never NaN, and the result
has a note that gives the reason. `benchmarks/coverage.py` simulates the coverage of every interval. scipy takes a third
of a second to import, so only the functions that need it import it.
"""
