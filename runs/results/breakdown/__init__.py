"""Details of a result: kinds of failures, repeated reasons, slices of cases, latencies, and leads of the best model."""
