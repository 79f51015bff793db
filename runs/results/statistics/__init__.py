"""Statistics of runs: intervals, pass@k, paired tests. docs/statistics.md explains them.

    mean_intervals        mean over cases with its interval: `mean_estimate` computes accuracy and its 95 % interval
    proportion_intervals  Wilson's and Agresti and Coull's intervals of a proportion
    pass_at_k             pass@k and pass^k
    paired                difference of two models on the same cases: interval, test, Holm's correction
    power                 smallest difference that a paired comparison can detect
    confidence_level      the level of 95 % that all of these share

All functions are pure. Intervals and tests are two-sided at 95 %. An undefined value is None, never NaN, and the result
has a note that gives the reason. `benchmarks/interval_coverage.py` simulates the coverage of every interval. scipy
takes a third of a second to import, so only the functions that need it import it.
"""
