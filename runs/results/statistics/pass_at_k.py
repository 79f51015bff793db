"""Estimates over several attempts at a case."""

import math


def pass_at_k(n: int, c: int, k: int) -> float | None:
    """Return the chance that at least one of *k* attempts passes, if *c* of *n* did; None if n < k.

    The unbiased estimate 1 - C(n-c, k) / C(n, k) of Chen et al., arXiv 2107.03374.
    """
    return None if n < k else 1 - math.comb(n - c, k) / math.comb(n, k)


def pass_hat_k(n: int, c: int, k: int) -> float | None:
    """Return the chance that all of *k* attempts pass, if *c* of *n* did; None if n < k.

    pass^k = C(c, k) / C(n, k) of Yao et al., arXiv 2406.12045.
    """
    return None if n < k else math.comb(c, k) / math.comb(n, k)
