"""Parts of a result: kinds of failures, repeated reasons, slices of cases, and how far the best model is ahead."""
