"""Comparisons of two models, and of several runs and models at once; the gates that decide on them."""
